"""What a net is asked for: scores become errors, as whole numbers of `UNIT`.

* `Softmax`: one score for each class, the chance of a class minus whether it was it.
* `Logistic`: one score, the chance of the second class minus whether it was it.
* `Squared`: one score, how far it is from the number, at most `_FARTHEST` either way. Labels are
  between -1 and 1.

Chances are **looked up**: a score is rounded to 1/`_GRID` and the value taken from a table. So the
error of a record is the same to the last bit wherever the record stands in a batch, which curves
that are computed many at a time do not promise.

**Proof note.** *Unit:* one record. *On its own:* every step is a comparison, a look-up, one
correctly rounded operation of an element, or a sum of whole numbers that float32 holds, so an error
depends on the scores and the label of its record alone. *Length:* at most 2 in each case, so a row
of errors is at most `whole.LENGTH` long. *Cost:* none here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ptklib.models.sgd.whole import EXACT, Floats

__all__ = ["UNIT", "Head", "Labels", "Logistic", "Softmax", "Squared"]

UNIT = 2.0**-11

# Scores are told apart by 1/_GRID, and not beyond _REACH.
_GRID, _REACH = 64, 24
_FARTHEST = 2.0

Labels = NDArray[np.float32]


class Head(Protocol):
    """From scores to errors."""

    @property
    def outputs(self) -> int:
        """How many scores there are."""

    def errors(self, scores: Floats, labels: Labels) -> Floats:
        """The derivative of the loss of each record by its scores, in whole numbers of `UNIT`.

        ``scores`` may be overwritten.
        """

    def slopes(self, scores: Floats, labels: Labels) -> Floats:
        """The same as it is, not on a grid: for training without privacy."""


@dataclass(frozen=True)
class Softmax:
    """One of several classes; labels are places from 0."""

    outputs: int

    def errors(self, scores: Floats, labels: Labels) -> Floats:
        """See `Head`."""
        scores -= scores.max(axis=1, keepdims=True)
        np.multiply(scores, np.float32(-_GRID), out=scores)
        np.minimum(scores, np.float32(_GRID * _REACH), out=scores)
        places = np.rint(scores, out=scores).astype(np.intp)
        weights = np.take(self._table, places, out=scores, mode="clip")
        # Whole numbers that sum to less than 2**24.
        scale = np.float32(1 / UNIT) / weights.sum(axis=1, keepdims=True)
        np.multiply(weights, scale, out=weights)
        weights[np.arange(len(labels)), labels.astype(np.intp)] -= np.float32(1 / UNIT)
        return np.rint(weights, out=weights)

    def slopes(self, scores: Floats, labels: Labels) -> Floats:
        """See `Head`."""
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        scores[np.arange(len(labels)), labels.astype(np.intp)] -= 1
        return scores

    @cached_property
    def _table(self) -> Floats:
        most = min(1 << 16, EXACT // (2 * self.outputs))
        steps = np.arange(_GRID * _REACH + 1) / _GRID
        return np.asarray(np.rint(most * np.exp(-steps)), dtype=np.float32)


@dataclass(frozen=True)
class Logistic:
    """One of two classes; labels are 0 and 1."""

    @property
    def outputs(self) -> int:
        """One."""
        return 1

    def errors(self, scores: Floats, labels: Labels) -> Floats:
        """See `Head`."""
        np.multiply(scores, np.float32(_GRID), out=scores)
        np.clip(scores, -_GRID * _REACH, _GRID * _REACH, out=scores)
        np.rint(scores, out=scores)
        scores += np.float32(_GRID * _REACH)
        chances = np.take(self._table, scores.astype(np.intp), out=scores, mode="clip")
        chances -= labels[:, None] * np.float32(1 / UNIT)
        return np.rint(chances, out=chances)

    def slopes(self, scores: Floats, labels: Labels) -> Floats:
        """See `Head`."""
        np.clip(scores, -_REACH, _REACH, out=scores)
        np.negative(scores, out=scores)
        np.exp(scores, out=scores)
        scores += np.float32(1)
        np.reciprocal(scores, out=scores)
        scores -= labels[:, None]
        return scores

    @cached_property
    def _table(self) -> Floats:
        steps = np.arange(-_GRID * _REACH, _GRID * _REACH + 1) / _GRID
        return np.asarray(1 / (1 + np.exp(-steps)) / UNIT, dtype=np.float32)


@dataclass(frozen=True)
class Squared:
    """A number from -1 to 1; half the squared distance."""

    @property
    def outputs(self) -> int:
        """One."""
        return 1

    def errors(self, scores: Floats, labels: Labels) -> Floats:
        """See `Head`."""
        made = self.slopes(scores, labels)
        np.clip(made, -_FARTHEST, _FARTHEST, out=made)
        np.multiply(made, np.float32(1 / UNIT), out=made)
        return np.rint(made, out=made)

    def slopes(self, scores: Floats, labels: Labels) -> Floats:
        """See `Head`."""
        scores -= labels[:, None]
        return scores
