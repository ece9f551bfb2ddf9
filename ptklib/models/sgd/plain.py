"""The same net trained without privacy: gradients of a batch in plain float32.

For comparison: what privacy costs in time and in accuracy. Nothing here is differentially private.
"""

from __future__ import annotations

import numpy as np

from ptklib.models.sgd.heads import Labels
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.whole import Floats

__all__ = ["PlainSums"]

_AT_ONCE = 1 << 18


class PlainSums:
    """The sum of the gradients of a batch, into one vector."""

    def __init__(self, network: Network) -> None:
        """Room for as many rows at once as stay near the processor."""
        self._network = network
        widest = max(max(shape) for shape in network.shapes)
        self.rows_at_once = max(32, min(1024, _AT_ONCE // widest))
        rows = self.rows_at_once
        self._outputs = [np.empty((rows, width), np.float32) for width in network.hidden]
        self._inputs = [np.ones((rows, width + 1), np.float32) for width in network.hidden]
        self._sum = np.empty(network.size, np.float32)
        self._part = np.empty(network.size, np.float32)

    def sums(self, parameters: Floats, rows: Floats, labels: Labels) -> Floats:
        """Of these records, in a vector that the next call reuses."""
        weights = self._network.matrices(parameters)
        self._sum[:] = 0
        for start in range(0, len(rows), self.rows_at_once):
            here = slice(start, start + self.rows_at_once)
            into = self._sum if start == 0 else self._part
            self._pass(weights, rows[here], labels[here], self._network.matrices(into))
            if start:
                self._sum += self._part
        return self._sum

    def _pass(
        self, weights: list[Floats], rows: Floats, labels: Labels, into: list[Floats]
    ) -> None:
        n, network = len(rows), self._network
        inputs = [rows]
        for place, width in enumerate(network.hidden):
            out, values = self._outputs[place][:n], self._inputs[place][:n]
            np.matmul(inputs[-1], weights[place], out=out)
            if network.activation == "relu":
                np.clip(out, 0, None, out=values[:, :width])
            else:
                np.tanh(out, out=values[:, :width])
            inputs.append(values)
        errors = network.head.slopes(inputs[-1] @ weights[-1], labels)
        for place in range(network.layers - 1, 0, -1):
            np.matmul(inputs[place].T, errors, out=into[place])
            values, room = inputs[place][:, :-1], self._outputs[place - 1][:n]
            np.matmul(errors, weights[place][:-1].T, out=room)
            # What went in is overwritten by its slope.
            if network.activation == "relu":
                np.multiply(room, values > 0, out=room)
            else:
                np.multiply(values, values, out=values)
                np.subtract(np.float32(1), values, out=values)
                np.multiply(room, values, out=room)
            errors = room
        np.matmul(rows.T, errors, out=into[0])
