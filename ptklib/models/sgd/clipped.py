"""The sum of clipped gradients of a batch, exactly: whole numbers, and no rounding in any sum.

For each record a forward and a backward pass give, at every layer, a row a of whole inputs and a
row e of errors. The gradient of the layer is their outer product, so its length is \\|a\\| \\|e\\|
(*ghost norms*: no gradient is ever written out). From the lengths follows one factor for each
record, by which its gradient is no longer than the clipping norm C; the factor goes into the errors,
which are rounded to whole numbers d, and the gradient that is summed is the outer product of a and
d: whole numbers of the `unit` C / `CLIP`. The sum over the batch is one matrix product of each
layer.

**Proof note.** *Unit:* one record. *Sensitivity:* adding or removing a record moves the sum by at
most `CLIP` units in L2, over all layers together, exactly and whatever the weights:

1. *Length.* For each record \\|a\\|^2 and \\|d\\|^2 are sums of squares of whole numbers. The first is
   exact (`whole`), the second errs by less than the part that `_guard` grants, their products are
   made in float64 and the check asks for 2**-40 more than is needed. A record for which the sum over the layers of
   \\|a\\|^2 \\|d\\|^2 is not **surely** within CLIP^2, or is not a number, counts as nothing: its d is
   set to 0. So the bound holds for what is summed, not for what should have been.
2. *Sum.* At most `ROWS` records are summed by one float32 product. Each of their entries is at most
   CLIP, so no partial sum is above `EXACT`, and all of them are exact in any order. These sums are
   added in float64, exact below 2**53, which no number of records reaches: 2**37 of them would.
3. *On its own.* What is summed for a record depends on that record and on public numbers (weights,
   the step) alone; it is the same to the last bit wherever the record stands, however many there
   are and however many threads multiply. Products are exact, hence of one value (`whole`); errors
   come from `heads`; what is left are single operations on elements, which IEEE 754 rounds
   correctly, look-ups, and sums of squares along a row, made by the same loop for each row: these
   alone rest on how numpy is built, and `steady` tries them before the first batch.

Without 3 a record could move the rounding of every other record of its batch, and the sensitivity
would be that of the batch. Without 2 the order of a sum would tell how many there are.

Clipping *by layers* takes a factor for each layer, from its own norm C_l; C is then the root of the
sum of their squares, and the check of 1 is the same. *Cost:* none here: `noise` adds it.

Rounding d adds to its length. So factors aim a little below C (`_aim`): by what rounding is
expected to add and three of its standard deviations. Before rounding, all errors of an output are
moved by the same public fraction, another one at each step: what is small is not lost but comes
through at some steps. Memory depends on the net alone: a batch is taken in pieces.

Reasons: ARITHMETIC_UNSTEADY.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ptklib.errors import InsecureNoise
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.heads import UNIT, Labels
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.whole import CLIP, LENGTH, ROWS, Floats, whole_weights

__all__ = ["ClippedSums", "steady"]

Doubles = NDArray[np.float64]

# Golden ratio and a relative of it: fractions of steps and of outputs that never repeat for long.
_STEP, _PLACE = 0.6180339887498949, 0.7548776662466927
_MOST_FACTOR = 2.0**60
_MOST_SQUARE = CLIP * CLIP * (1 - 2.0**-40)


class ClippedSums:
    """Sums of clipped gradients, batch by batch.

    ``clip`` is C, or the C_l of each layer. See the module for the proof note.
    """

    def __init__(self, network: Network, clip: tuple[float, ...]) -> None:
        """Room for the net, and for as many records at once as stay near the processor."""
        steady()
        self._network, self._forward = network, Forward(network)
        self.rows_at_once = self._forward.rows_at_once
        self._joint = len(clip) == 1
        norm = math.hypot(*clip)
        self.unit = norm / CLIP
        self._shares = [1.0] if self._joint else [part / norm for part in clip]
        self._widths = [columns for _, columns in network.shapes]
        self._guards = [_guard(width) for width in self._widths]
        self._whole = np.empty(network.size, np.float32)
        self._weights = network.matrices(self._whole)
        self._part = np.zeros(network.size, np.float32)
        self._parts = network.matrices(self._part)
        self.total: Doubles = np.zeros(network.size)
        self._pending = 0
        self._moves: list[Floats] = []
        self._back = [np.empty((self.rows_at_once, width), np.float32) for width in network.hidden]
        self._places = [
            np.arange(columns, dtype=np.float64) * _PLACE for _, columns in network.shapes
        ]

    def begin(self, parameters: Floats, step: int) -> None:
        """A new batch, at these weights."""
        for given, whole in zip(
            self._network.matrices(parameters), range(self._network.layers), strict=True
        ):
            self._forward.units[whole] = whole_weights(given, self._weights[whole])
        self._moves = [
            np.asarray((places + step * _STEP) % 1.0, dtype=np.float32) for places in self._places
        ]
        self.total[:] = 0
        self._pending = 0

    def add(self, rows: Floats, squares: Doubles, labels: Labels) -> None:
        """Records of the batch: whole rows of inputs, their squared lengths, and labels."""
        most = self.rows_at_once
        for start in range(0, len(rows), most):
            here = slice(start, start + most)
            self._add(rows[here], squares[here], labels[here])

    def finish(self) -> Doubles:
        """The sum over the batch, in `unit`; the next batch reuses it."""
        self._flush()
        return self.total

    def _add(self, rows: Floats, squares: Doubles, labels: Labels) -> None:
        layers = self._forward.run(rows, squares, self._weights)
        errors, units = self._errors(layers[-1].scores, labels)
        self._round(errors, units)
        for start in range(0, len(rows), ROWS):
            here = slice(start, min(start + ROWS, len(rows)))
            if self._pending + here.stop - start > ROWS:
                self._flush()
            for layer, error, part in zip(layers, errors, self._parts, strict=True):
                _add_product(layer.inputs[here], error[here], part, fresh=not self._pending)
            self._pending += here.stop - start

    def _flush(self) -> None:
        if self._pending:
            np.add(self.total, self._part, out=self.total)
            self._pending = 0

    def _errors(self, scores: Floats, labels: Labels) -> tuple[list[Floats], list[Doubles]]:
        """At each layer: errors, and what 1 of them is for each record (one number where it is the
        same for all).
        """
        n, network, forward = len(labels), self._network, self._forward
        errors = [network.head.errors(scores, labels)]
        units: list[Doubles] = [np.array(UNIT)]
        for place in range(network.layers - 1, 0, -1):
            whole, unit = errors[0], units[0]
            if place < network.layers - 1:
                whole, unit = forward.shortened(whole, unit)
            room = self._back[place - 1][:n]
            np.matmul(whole, self._weights[place][:-1].T, out=room)
            forward.through(place, room)
            errors.insert(0, room)
            units.insert(0, unit * forward.units[place])
        return errors, units

    def _round(self, errors: list[Floats], units: list[Doubles]) -> None:
        """Clip and round errors in place; see the proof note, 1."""
        layers = self._forward.layers
        worths = [unit * layer.unit / self.unit for unit, layer in zip(units, layers, strict=True)]
        lengths = [
            layer.squares * _squares(error) * (worth * worth)
            for error, worth, layer in zip(errors, worths, layers, strict=True)
        ]
        factors = self._factors(lengths)
        sizes = np.zeros(len(errors[0]))
        for error, worth, layer, factor, move, guard in zip(
            errors, worths, layers, factors, self._moves, self._guards, strict=True
        ):
            scale = np.minimum(factor * worth, _MOST_FACTOR).astype(np.float32)
            np.multiply(error, scale[:, None], out=error)
            np.add(error, move, out=error)
            np.floor(error, out=error)
            sizes += layer.squares * _squares(error) * guard
        # What is not a number is not within it either.
        if not sizes.max(initial=0.0) <= _MOST_SQUARE:
            over = np.flatnonzero(~(sizes <= _MOST_SQUARE))
            for error in errors:
                error[over] = 0

    def _factors(self, lengths: list[Doubles]) -> list[Doubles]:
        """By what each record's errors are multiplied at each layer, from squared lengths."""
        squares = [layer.squares for layer in self._forward.layers]
        grown = [square * width for square, width in zip(squares, self._widths, strict=True)]
        if self._joint:
            reach = _aim(1.0, _total(grown), _total(squares))
            length = np.sqrt(np.maximum(_total(lengths), 1.0))
            return [np.minimum(1.0, reach / length)] * len(lengths)
        return [
            np.minimum(1.0, _aim(share, more, square) / np.sqrt(np.maximum(length, 1.0)))
            for length, share, more, square in zip(
                lengths, self._shares, grown, squares, strict=True
            )
        ]


def _aim(share: float, grown: Doubles, squares: Doubles) -> Doubles:
    """The length in units to clip to, so that rounding rarely makes it more than its share: what
    it surely is not, or what it is not with three standard deviations.
    """
    most = CLIP * share
    surely = np.maximum(most - np.sqrt(grown), most / 2)
    left = most * most - grown / 4 - (3 * most) * np.sqrt(squares)
    return np.maximum(surely, np.sqrt(np.maximum(left, 0.0)))


def _total(parts: list[Doubles]) -> Doubles:
    made = parts[0]
    for part in parts[1:]:
        made = made + part
    return made


def _squares(rows: Floats) -> Doubles:
    """The squared length of each row."""
    made: Doubles = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
    return made


def _guard(width: int) -> float:
    """What a float32 sum of so many squares is short of at most, whatever its order: a square and
    each of its sums are rounded by less than one part in 2**24.
    """
    return 1 + (width + 2) * 2.0**-23


def _add_product(inputs: Floats, errors: Floats, into: Floats, *, fresh: bool) -> None:
    """The sum over records of the outer products of their rows: exact, see the proof note, 2."""
    if fresh:
        np.matmul(inputs.T, errors, out=into)
    else:
        made = blas.sgemm(1.0, errors.T, inputs.T, 1.0, into.T, 0, 1, 1)
        if not np.shares_memory(made, into):
            into[:] = made.T


@lru_cache(maxsize=1)
def steady() -> None:
    """Refuse a platform on which the sum of squares of a row depends on where the row stands."""
    generator = np.random.Generator(np.random.Philox(key=1))
    for width in (1, 2, 3, 7, 10, 16, 33, 100, 1000, 1001):
        rows = generator.standard_normal((37, width)).astype(np.float32)
        whole = _squares(rows)
        alone = np.array([_squares(row[None].copy())[0] for row in rows])
        moved = np.concatenate([_squares(rows[5:].copy()), _squares(rows[:5].copy())])
        if not (np.array_equal(whole, alone) and np.array_equal(moved, np.roll(whole, -5))):
            raise InsecureNoise(
                "ARITHMETIC_UNSTEADY",
                "numpy adds up the rows of a matrix by where they stand on this machine, which the "
                "proof of clipped sums does not allow; install another version of numpy",
            )


assert LENGTH * LENGTH <= ROWS * CLIP
