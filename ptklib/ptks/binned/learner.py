"""Kinds that learn a label from binned inputs: what additive models and forests share.

**Proof note.** Nothing is released here: columns, sizes and invented records follow from the
configuration, and `BinnedLearner.loss` is raw, of each record by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.ptk import Arrays, Batches
from ptklib.ptks.binned.checks import target_of
from ptklib.ptks.binned.codes import Feature
from ptklib.ptks.binned.records import pieces
from ptklib.ptks.binned.target import Target

__all__ = ["BinnedLearner"]

Floats = NDArray[np.float64]

_ROWS_AT_ONCE, _ANSWERS_AT_ONCE = 1 << 16, 1 << 22


class BinnedLearner(ABC):
    """Inputs, target and loss. Stands before `Ptk` among the bases of a kind."""

    inputs: tuple[Feature, ...]
    label: str
    classes: tuple[str, ...] | tuple[int, ...] | None
    lower: float | None
    upper: float | None

    @abstractmethod
    def _predictor(self, arrays: Arrays) -> Callable[[pa.RecordBatch], Floats]:
        """What gives the shares of the channels of the target for records: [records, channels]."""

    @abstractmethod
    def validate(self, arrays: Arrays) -> None:
        """See `Ptk.validate`."""

    @cached_property
    def _target(self) -> Target:
        """What is learned."""
        return target_of(self.label, self.classes, self.lower, self.upper)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """Bins of each input, with the unknown one."""
        return tuple(input_.size + 1 for input_ in self.inputs)

    @property
    def _rows_at_once(self) -> int:
        """Records whose answers fit a cache."""
        return max(1, min(_ROWS_AT_ONCE, _ANSWERS_AT_ONCE // self._target.channels))

    def columns(self) -> tuple[str, ...]:
        """The input columns, then the label."""
        return (*self.feature_columns(), self.label)

    def feature_columns(self) -> tuple[str, ...]:
        """The input columns."""
        return tuple(dict.fromkeys(input_.column for input_ in self.inputs))

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules of the kind."""
        self.validate(arrays)
        predicted, losses = self._predictor(arrays), [np.zeros(0)]
        for piece in pieces(batches, self._rows_at_once):
            label, bad = self._target.read(piece)
            losses.append(np.where(bad, 0.0, self._target.losses(predicted(piece), label)))
        return np.clip(np.concatenate(losses), 0.0, 1.0)

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Uniform inputs; the label follows the first one, half of the time."""
        generator = np.random.default_rng(seed)
        columns = {input_.column: input_.example(rows, generator) for input_ in self.inputs}
        first = self.inputs[0]
        place = np.minimum(first.codes(columns[first.column]) / first.size, 1 - 1e-9)
        follows = generator.uniform(0, 1, rows) < 1 / 2
        place = np.where(follows, place, generator.uniform(0, 1, rows))
        if self.classes is None:
            assert self.lower is not None
            assert self.upper is not None
            width = self.upper - self.lower
            columns[self.label] = pa.array(self.lower + width * np.round(place, 1))
        else:
            classes = [self.classes[int(position * len(self.classes))] for position in place]
            columns[self.label] = pa.array(classes)
        return pa.RecordBatch.from_pydict(columns)
