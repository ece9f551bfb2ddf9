"""The forward pass of a net on whole numbers, and what the backward pass needs of it.

Inputs of the first layer are whole numbers of 2**-bits, the same for all records. Scores of a layer
are a product of whole numbers: exact. What goes into the next layer is

* *ReLU*: positive scores with a 1 beside them, as whole numbers of the power of two by which the
  largest of the row has ``bits`` places, so a row keeps its precision whatever its size;
* *tanh*: the value at the score rounded to 1/64, looked up, in whole numbers of 2**-bits.

Rows are no longer than `whole.LENGTH`, by the choice of ``bits``. Errors that go further down than
one layer are rounded in the same way (`shortened`).

**Proof note.** *Unit:* one record. *On its own:* products are exact; the rest is look-ups,
comparisons, maxima and single correctly rounded operations on elements, so every row depends on its
own record and on public numbers alone, to the last bit. *Cost:* none here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.models.sgd.network import Network
from ptklib.models.sgd.whole import LENGTH, MAX_BITS, Floats, bits_of

__all__ = ["Forward", "Layer"]

Doubles = NDArray[np.float64]

# Numbers held at once for each layer: what is worked on stays near the processor.
_AT_ONCE = 1 << 17
_LEAST_ROWS, _MOST_ROWS = 32, 1024
_GRID, _REACH = 64, 9


@dataclass
class Layer:
    """What went into a layer: whole numbers of ``unit``, their squared lengths, and the scores that
    came out.
    """

    inputs: Floats
    squares: Doubles
    unit: Doubles
    scores: Floats


class Forward:
    """The pass and its room. ``units`` are those of the whole weights of each layer."""

    def __init__(self, network: Network) -> None:
        """Room for as many records at once as stay near the processor."""
        self._network = network
        self.units = [1.0] * network.layers
        self.layers: list[Layer] = []
        bounds = [network.bound, *(math.sqrt(width + 1) for width in network.hidden)]
        self.bits = [
            bits_of(bound, columns, network.layers)
            for bound, (_, columns) in zip(bounds, network.shapes, strict=True)
        ]
        # Rows of records are not copied: they count as little.
        widest = max((*network.hidden, network.head.outputs, network.inputs // 2))
        self.rows_at_once = max(_LEAST_ROWS, min(_MOST_ROWS, _power(_AT_ONCE // widest)))
        rows = self.rows_at_once
        self._scores = [np.empty((rows, width), np.float32) for width in network.hidden]
        self._inputs = [np.empty((rows, width + 1), np.float32) for width in network.hidden]
        self._slopes = [np.empty((rows, width), np.float32) for width in network.hidden]
        self._tables = [self._table(bits) for bits in self.bits[1:]]

    def run(self, rows: Floats, squares: Doubles, weights: list[Floats]) -> list[Layer]:
        """Of at most `rows_at_once` records, with whole weights."""
        inputs, unit = rows, np.array(2.0 ** -self.bits[0])
        self.layers = []
        for place in range(self._network.layers):
            last = place == self._network.layers - 1
            out = None if last else self._scores[place][: len(rows)]
            scores = np.matmul(inputs, weights[place], out=out)
            worth = unit * self.units[place]
            self.layers.append(Layer(inputs, squares, unit, scores))
            if last:
                np.multiply(scores, _column(worth), out=scores)
            else:
                inputs, squares, unit = self._activated(place, scores, worth)
        return self.layers

    def through(self, place: int, errors: Floats) -> None:
        """Multiply errors of the inputs of a layer by the slope of the activation, in place."""
        values = self.layers[place].inputs[:, :-1]
        slopes = self._slopes[place - 1][: len(errors)]
        if self._network.activation == "relu":
            # Whole numbers of at least 0.
            np.clip(values, 0, 1, out=slopes)
        np.multiply(errors, slopes, out=errors)

    def shortened(self, errors: Floats, unit: Doubles) -> tuple[Floats, Doubles]:
        """Errors as rows of whole numbers that are no longer than `LENGTH`, and their units."""
        bits = min(MAX_BITS, math.floor(math.log2(LENGTH / math.sqrt(errors.shape[1]))))
        largest = np.maximum(errors.max(axis=1), -errors.min(axis=1)).astype(np.float64)
        _, exponents = np.frexp(largest)
        shift = np.where(largest > 0, bits - exponents.astype(np.float64), 0.0)
        made = errors * np.exp2(shift).astype(np.float32)[:, None]
        return np.rint(made, out=made), unit * np.exp2(-shift)

    def _activated(
        self, place: int, scores: Floats, worth: Doubles
    ) -> tuple[Floats, Doubles, Doubles]:
        inputs, bits = self._inputs[place][: len(scores)], self.bits[place + 1]
        values = inputs[:, :-1]
        if self._network.activation == "tanh":
            self._looked_up(place, scores, worth, values)
            inputs[:, -1] = 2.0**bits
            unit: Doubles = np.array(2.0**-bits)
        else:
            np.clip(scores, 0, None, out=scores)
            largest = np.maximum(scores.max(axis=1) * worth, 1.0)
            _, exponents = np.frexp(largest)
            shift = np.exp2(bits - exponents.astype(np.float64))
            np.multiply(scores, (shift * worth).astype(np.float32)[:, None], out=values)
            inputs[:, -1] = shift
            np.rint(inputs, out=inputs)
            unit = 1 / shift
        return inputs, np.einsum("ij,ij->i", inputs, inputs).astype(np.float64), unit

    def _looked_up(self, place: int, scores: Floats, worth: Doubles, values: Floats) -> None:
        np.multiply(scores, _column(worth * _GRID), out=scores)
        np.clip(scores, -_GRID * _REACH, _GRID * _REACH, out=scores)
        np.rint(scores, out=scores)
        places = (scores + np.float32(_GRID * _REACH)).astype(np.intp)
        values[:], slopes = (table[places] for table in self._tables[place])
        self._slopes[place][: len(scores)] = slopes

    def _table(self, bits: int) -> tuple[Floats, Floats]:
        """Values of tanh in whole numbers of 2**-bits, and its slopes."""
        values = np.tanh(np.arange(-_GRID * _REACH, _GRID * _REACH + 1) / _GRID)
        return (
            np.rint(values * 2.0**bits).astype(np.float32),
            (1 - values * values).astype(np.float32),
        )


def _column(values: Doubles) -> Floats:
    """A number for each record, as a factor of its row."""
    return np.asarray(values, dtype=np.float32).reshape(-1, *([1] * values.ndim))


def _power(most: int) -> int:
    """The largest power of two that is at most this."""
    return 1 << (max(1, most).bit_length() - 1)
