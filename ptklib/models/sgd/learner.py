"""Models that are nets trained by noisy gradients: what logistic and softmax regression and
multilayer perceptrons share.

**Proof note.** *Unit, neighbours:* one record, or a user with at most ``records_per_unit`` records,
added or removed. *Sensitivity, cost:* those of `run`, with batches and noise as priced by `plan`. A
record without a label is dropped: that is of the record alone. ``previous`` gives the first
weights: post-processing. *Memory:* rows in float32 and a fixed number of bytes for each record
(`encoded`); batches are taken in pieces, so how many records a batch happens to have takes no room.

Predictions come from weights as they are, in float64 and on grids, so that no row moves another.

Reasons: PTK_MISMATCH, DELTA_NEEDED, those of `settings`, `plan` and `checkpoint`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.models.inputs import STEPS
from ptklib.models.labels import ClassLabel, Label
from ptklib.models.products import exact_product, on_grid
from ptklib.models.rows import InputRows
from ptklib.models.sgd.checkpoint import CheckpointFile
from ptklib.models.sgd.encoded import RECORD_BYTES, SHELF_BYTES, EncodedRecords, Encoder
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.plan import SgdPlan, plan_of
from ptklib.models.sgd.run import Run
from ptklib.models.sgd.settings import NoisySteps, SettledRun, settled
from ptklib.price_first import Budget, Given, windows_after
from ptklib.privacy.amounts import Number
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, check_arrays

__all__ = ["NetLearner", "chances_of"]

Floats = NDArray[np.float64]

# Places of what goes into a layer when predicting.
_BITS = 26
# Of a parameter, in training: weights, moves, averages, sums, noise, and their copies.
_PARAMETER_BYTES = 64
# Of a number that goes through a net, for the records that are taken at once.
_PASS_BYTES = 64
_NOISE_BYTES = 8 << 20
_ANY_BUDGET = Budget(Fraction(1), Fraction(1, 10**6), 1)


class NetLearner(ABC):
    """A net as a model. Stands before `PriceFirst` and `Model` among the bases of a kind."""

    kind: ClassVar[str]
    records: int
    training: NoisySteps
    rows: InputRows

    @property
    @abstractmethod
    def target(self) -> Label:
        """See `Model`."""

    @property
    @abstractmethod
    def network(self) -> Network:
        """What is trained."""

    @property
    def _penalty(self) -> float:
        """A penalty on squared weights."""
        return 0.0

    def _mechanisms(self, budget: Budget) -> SgdPlan:
        return plan_of(self._settled(budget).pace, budget)

    def _settled(self, budget: Budget) -> SettledRun:
        return settled(self.training, self.network, self.records, budget, penalty=self._penalty)

    def _settles(self) -> None:
        """Refuse settings that do not fit the net; for `check`."""
        self._settled(_ANY_BUDGET)

    def _train(self, given: Given[SgdPlan]) -> Arrays:
        return self._trained(given, None)

    def train_resumably(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number,
        file: CheckpointFile,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        """`Ptk.train_dp`, keeping checkpoints in a file; where the file has one of the same run,
        the steps that are left.

        Spends ``cost(epsilon, delta, ...)`` once, however often it is stopped and taken up.
        """
        plan = self._mechanisms(Budget.of(epsilon, delta, records_per_unit))
        if previous is not None:
            self.validate(previous)
        return self._trained(Given(plan, batches, previous, noise), file)

    def _trained(self, given: Given[SgdPlan], file: CheckpointFile | None) -> Arrays:
        network, plan = self.network, given.plan
        chosen = self._settled(plan.budget)
        run = Run(network, plan, chosen.optimiser, chosen.clip, self.records, self.training.seed)
        start = None if given.previous is None else self._flat(given.previous)
        weights = run.train(self._encoded(given.batches), start=start, noise=given.noise, file=file)
        windows = windows_after(given.previous)
        if start is not None and network.layers == 1:
            # Every window counts alike: the mean of minimisers, which need not be far from the
            # minimiser of all. Nets with hidden layers have no such mean: the last window counts.
            weights = start + (weights - start) / np.float32(windows[0])
        layers = enumerate(network.matrices(weights))
        made = {f"layer_{place}": matrix.astype(np.float64) for place, matrix in layers}
        return {**made, "windows": windows}

    def validate(self, arrays: Arrays) -> None:
        """Layers of the right shapes, finite; a number of windows."""
        check_arrays(arrays, self._wanted, kind=self.kind)

    def working_bytes(self, records: int) -> int:
        """Rows in float32 and what goes with them, the net several times, and a piece of a
        batch."""
        network = self.network
        at_once = Forward(network).rows_at_once
        widths = network.inputs + sum(network.hidden) + network.head.outputs
        return (
            self.rows.reading_bytes()
            + (4 * network.inputs + RECORD_BYTES) * records
            + 3 * SHELF_BYTES
            + _NOISE_BYTES
            + _PARAMETER_BYTES * network.size
            + _PASS_BYTES * at_once * widths
        )

    @cached_property
    def _wanted(self) -> Mapping[str, tuple[str, tuple[int, ...]]]:
        layers = {
            f"layer_{place}": ("float64", shape) for place, shape in enumerate(self.network.shapes)
        }
        return {**layers, "windows": ("int64", (1,))}

    def _flat(self, arrays: Arrays) -> NDArray[np.float32]:
        layers = [arrays[f"layer_{place}"].ravel() for place in range(self.network.layers)]
        return np.concatenate(layers).astype(np.float32)

    def _encoded(self, batches: Batches) -> EncodedRecords:
        encoder = Encoder(self.rows.width, Forward(self.network).bits[0])
        for piece in self.rows.pieces(batches):
            labels, missing = self._labels(piece)
            steps = self.rows.steps(piece)
            if missing is not None:
                steps, labels = steps[~missing], labels[~missing]
            encoder.add(steps, labels)
        return encoder.done()

    def _labels(self, piece: pa.RecordBatch) -> tuple[Floats, NDArray[np.bool_] | None]:
        if isinstance(self.target, ClassLabel):
            codes, missing = self.target.codes(piece)
            return codes.astype(np.float64), missing
        steps, missing = self.target.steps(piece)
        return steps / STEPS, missing

    def _scores(self, arrays: Arrays, rows: Floats) -> Floats:
        """What comes out of the last layer."""
        values, most, unit = self._hidden(arrays, rows, self.network.layers - 1)
        last = arrays[f"layer_{self.network.layers - 1}"]
        return exact_product(values, last, unit=unit, most=most)

    def _hidden(self, arrays: Arrays, rows: Floats, layers: int) -> tuple[Floats, float, float]:
        """What goes into a layer, its largest entry and its unit."""
        values, most, unit, bound = rows, 1.0, 1 / STEPS, self.network.bound
        for place in range(layers):
            weights = arrays[f"layer_{place}"]
            made = exact_product(values, weights, unit=unit, most=most)
            if self.network.activation == "tanh":
                made, most = np.tanh(made), 1.0
                bound = math.sqrt(made.shape[1] + 1)
            else:
                np.maximum(made, 0.0, out=made)
                lengths = np.sqrt(np.square(weights).sum(axis=0)) * bound
                most = 2.0 ** math.ceil(math.log2(max(1.0, float(lengths.max()))))
                bound = math.sqrt(1 + float(np.square(lengths).sum()))
            values, unit = on_grid(made, most=most, bits=_BITS)
            values = np.hstack([values, np.ones((len(values), 1))])
        return values, most, unit


def chances_of(scores: Floats) -> Floats:
    """The chance of each class, row by row: one column after the other, since a sum may round by
    how many rows there are.
    """
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    total = np.zeros(len(powers))
    for column in powers.T:
        total += column
    return np.asarray(powers / total[:, None])
