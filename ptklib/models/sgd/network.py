"""A dense net: widths, an activation, and what is asked of it; its parameters as one vector.

Layer l has a matrix with a row for each of its inputs and, from the second layer on, one more for a
constant 1: rows of records bring their own. A net without hidden layers is a linear, logistic or
softmax model. Everything here is public.

Reasons: none of its own; kinds check their fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ptklib.models.sgd.heads import Head
from ptklib.models.sgd.whole import Floats

__all__ = ["MAX_HIDDEN", "MAX_WEIGHT", "Activation", "Network"]

Activation = Literal["relu", "tanh"]

# With weights of at most 2**10 and so few layers no number of a pass leaves float32.
MAX_HIDDEN = 4
MAX_WEIGHT = 2.0**10


@dataclass(frozen=True)
class Network:
    """What is trained.

    ``bound`` is the largest length of a row of inputs.
    """

    inputs: int
    hidden: tuple[int, ...]
    activation: Activation
    head: Head
    bound: float

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Of the matrix of each layer."""
        widths = (self.inputs, *self.hidden, self.head.outputs)
        return tuple(
            (width + (place > 0), widths[place + 1]) for place, width in enumerate(widths[:-1])
        )

    @property
    def layers(self) -> int:
        """How many matrices there are."""
        return len(self.shapes)

    @cached_property
    def size(self) -> int:
        """How many parameters there are."""
        return sum(rows * columns for rows, columns in self.shapes)

    def matrices(self, flat: Floats) -> list[Floats]:
        """Views into a vector of parameters (or of gradients), layer by layer."""
        made, start = [], 0
        for rows, columns in self.shapes:
            stop = start + rows * columns
            made.append(flat[start:stop].reshape(rows, columns))
            start = stop
        return made

    def initial(self, seed: int) -> Floats:
        """Where training starts: nothing where one layer is all, else random weights by a public
        seed, those of the last layer nothing.
        """
        flat = np.zeros(self.size, dtype=np.float32)
        generator = np.random.Generator(np.random.Philox(key=seed))
        gain = 2.0 if self.activation == "relu" else 1.0
        for matrix in self.matrices(flat)[:-1]:
            spread = np.sqrt(gain / len(matrix))
            matrix[:] = generator.standard_normal(matrix.shape) * spread
        return flat
