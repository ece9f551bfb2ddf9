"""From noisy gradients to weights: momentum, learning rates, averages. All of it
post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ptklib.models.sgd.network import MAX_WEIGHT
from ptklib.models.sgd.whole import Floats

__all__ = ["Decay", "Optimiser", "Place"]

Decay = Literal["constant", "linear", "cosine"]

# The power by which later weights count more in an average.
_LATER = 3.0


@dataclass
class Place:
    """Where a run is: the weights, what they move by, and their average."""

    parameters: Floats
    velocity: Floats
    average: Floats

    @classmethod
    def at(cls, parameters: Floats) -> Place:
        """The start."""
        return cls(parameters.copy(), np.zeros_like(parameters), parameters.copy())


@dataclass(frozen=True)
class Optimiser:
    """How weights follow gradients."""

    learning_rate: float
    momentum: float = 0.0
    nesterov: bool = False
    decay: Decay = "constant"
    penalty: float = 0.0
    averaging: bool = False

    def move(self, place: Place, gradient: Floats, step: int, steps: int) -> None:
        """One step; ``gradient`` may be overwritten."""
        if self.penalty:
            gradient += np.float32(self.penalty) * place.parameters
        if self.momentum:
            place.velocity *= np.float32(self.momentum)
            place.velocity += gradient
            if self.nesterov:
                gradient += np.float32(self.momentum) * place.velocity
            else:
                np.copyto(gradient, place.velocity)
        gradient *= np.float32(-self.rate(step, steps))
        place.parameters += gradient
        np.clip(place.parameters, -MAX_WEIGHT, MAX_WEIGHT, out=place.parameters)
        if self.averaging:
            share = np.float32((_LATER + 1) / (step + _LATER + 1))
            np.subtract(place.parameters, place.average, out=gradient)
            gradient *= share
            place.average += gradient

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of a step."""
        done = step / steps
        if self.decay == "linear":
            return self.learning_rate * (1 - done)
        if self.decay == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate

    def result(self, place: Place) -> Floats:
        """The weights that are kept at the end."""
        return place.average if self.averaging else place.parameters
