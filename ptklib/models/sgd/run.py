"""The steps of a run: a batch, its clipped sum, noise, a move; as many as are priced.

The gradient is the noisy sum over *rate times the public number of records*, never over the size of
a batch, which is private. An empty batch is a sum of nothing with the same noise.

**Proof note.** *Unit:* one record; a user with as many records as the plan says. *Cost:* that of
the plan. A step releases the clipped sum of its batch (`clipped`: whole numbers, moved by at most
CLIP) with the noise of its stage (`noise`); batches are as priced (`members`). Weights, averages
and the result are functions of these releases and of public numbers. The number of steps is fixed
before; a run that is taken up again makes those that are not done (`checkpoint`).

*Threads.* The products of a run are narrow: threads that share one wait for each other, and on two
cores, one of them busy, a run took twenty times as long. Workers of a store have one thread by their
environment; elsewhere `threadpoolctl`, which comes with scikit-learn, is asked for one. No product
depends on how many there are (`clipped`).

Reasons: CHECKPOINT_MISMATCH.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.models.sgd.checkpoint import Checkpoint, CheckpointFile
from ptklib.models.sgd.clipped import ClippedSums
from ptklib.models.sgd.encoded import EncodedRecords
from ptklib.models.sgd.members import (
    KEY_BYTES,
    PoissonBatches,
    TaggedBatches,
    new_key,
    tags_of,
)
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.noise import StepNoise
from ptklib.models.sgd.optimiser import Optimiser, Place
from ptklib.models.sgd.plan import SgdPlan
from ptklib.models.sgd.whole import Floats
from ptklib.privacy.noise.source import BitSource

__all__ = ["Run"]

_TAGGED_AT_ONCE = 1 << 12
_NO_KEYS = (bytes(KEY_BYTES), bytes(KEY_BYTES))


@dataclass(frozen=True)
class Run:
    """A run before its data.

    ``expected`` is the public number of records; ``clip`` the norm, or one for each layer.
    """

    network: Network
    plan: SgdPlan
    optimiser: Optimiser
    clip: tuple[float, ...]
    expected: int
    seed: int

    def train(
        self,
        data: EncodedRecords,
        *,
        start: Floats | None = None,
        noise: BitSource | None = None,
        file: CheckpointFile | None = None,
    ) -> Floats:
        """The weights after all steps, or after those that are left."""
        first = self.network.initial(self.seed) if start is None else start
        digest = self._digest(first)
        kept = file.read() if file is not None else None
        if kept is None:
            keys = _NO_KEYS
            if self._tagged:
                keys = (new_key(noise), new_key(noise))
            kept = Checkpoint(0, Place.at(first), keys, digest)
        kept.check(digest)
        with _one_thread():
            return self._steps(kept, data, noise, file)

    @property
    def _tagged(self) -> bool:
        return self.plan.pace.batching == "tags" and self.plan.pace.rate != 1

    def _steps(
        self,
        kept: Checkpoint,
        data: EncodedRecords,
        noise: BitSource | None,
        file: CheckpointFile | None,
    ) -> Floats:
        place, keys = kept.place, kept.keys
        sums, noises = (
            ClippedSums(self.network, self.clip),
            StepNoise(self.network.size, self.plan.records, noise),
        )
        poisson = PoissonBatches(len(data), self.plan.pace.rate, noise)
        tags = self._tags(data, keys[0]) if self._tagged else None
        dealt: TaggedBatches | None = None
        gradient = np.empty(self.network.size, dtype=np.float32)
        worth = sums.unit / (float(self.plan.pace.rate) * self.expected)
        for step in range(kept.step, self.plan.steps):
            if tags is not None:
                turn = step % self.plan.pace.batches
                if turn == 0 and step:
                    keys, dealt = (keys[0], new_key(noise)), None
                dealt = dealt or TaggedBatches(tags, keys[1], self.plan.pace.batches)
                members = dealt.batch(turn)
            else:
                members = poisson.batch()
            total = self._summed(sums, place, data, members, step)
            np.add(total, noises.draw(*self.plan.multiplier(step)), out=total)
            np.multiply(total, worth, out=gradient, casting="unsafe")
            self.optimiser.move(place, gradient, step, self.plan.steps)
            done = step + 1
            if file is not None and (done % file.every_steps == 0 or done == self.plan.steps):
                file.keep(Checkpoint(done, place, keys, kept.digest))
        return self.optimiser.result(place)

    def _tags(self, data: EncodedRecords, key: bytes) -> NDArray[np.uint64]:
        made = [np.zeros(0, dtype=np.uint64)]
        for rows, _, labels in data.pieces(None, _TAGGED_AT_ONCE):
            made.append(tags_of(rows, labels, key))
        return np.concatenate(made)

    def _summed(
        self,
        sums: ClippedSums,
        place: Place,
        data: EncodedRecords,
        members: NDArray[np.intp],
        step: int,
    ) -> NDArray[np.float64]:
        sums.begin(place.parameters, step)
        # Rising places of all records are the records as they are.
        some = None if len(members) == len(data) else members
        for rows, squares, labels in data.pieces(some, sums.rows_at_once):
            sums.add(rows, squares, labels)
        return sums.finish()

    def _digest(self, first: Floats) -> bytes:
        """Of everything that the weights depend on but records and noise."""
        public = (
            self.network,
            self.plan.pace,
            self.plan.records,
            self.optimiser,
            self.clip,
            self.expected,
            self.seed,
        )
        return hashlib.sha256(repr(public).encode() + first.tobytes()).digest()


@contextmanager
def _one_thread() -> Iterator[None]:
    """See *Threads*; nothing is changed where `threadpoolctl` is not installed."""
    try:
        control: Any = importlib.import_module("threadpoolctl")
    except ImportError:
        yield
        return
    with control.threadpool_limits(1):
        yield
