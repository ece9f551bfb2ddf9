"""`MlpRegressor`: a number between public bounds, by a dense net with hidden layers.

Trained by noisy gradients (`ptklib.models.sgd`). Its feature is the prediction, or the last hidden
layer (``output="hidden"``): what one model has learned for another to use.

**Proof note.** That of `sgd.learner`. It needs a delta.

Reasons: CONFIG_INVALID, and those of `sgd.learner`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ptklib.models.labels import Label, NumberLabel
from ptklib.models.mlp.layers import HiddenLayers, Output
from ptklib.models.model import Model
from ptklib.models.sgd.heads import Squared
from ptklib.models.sgd.network import Activation, Network
from ptklib.models.sgd.plan import SgdPlan
from ptklib.models.sgd.settings import NoisySteps
from ptklib.price_first import PriceFirst
from ptklib.ptk import Arrays, Tags

__all__ = ["MlpRegressor"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MlpRegressor(HiddenLayers, PriceFirst[SgdPlan], Model):
    """A multilayer perceptron for numbers, with differential privacy.

    See the module for the proof note.
    """

    kind: ClassVar[str] = "mlp_regressor"
    tags: ClassVar[Tags] = Tags(supervised=True, needs_delta=True)

    lower: float  # bounds of the label
    upper: float
    records: int  # how many are expected, at least about: public
    hidden: tuple[int, ...] = (64,)
    activation: Activation = "relu"
    output: Output = "prediction"
    training: NoisySteps = field(default_factory=NoisySteps)

    def check(self) -> None:
        """Layers and numbers within limits."""
        super().check()
        self._check_layers(self.network)
        self._settles()

    @property
    def target(self) -> Label:
        """A number between the bounds."""
        return self._number

    @cached_property
    def _number(self) -> NumberLabel:
        return NumberLabel(self.label, self.lower, self.upper)

    @cached_property
    def network(self) -> Network:
        """Hidden layers, one score."""
        head = Squared()
        return Network(self.rows.width, self.hidden, self.activation, head, self.rows.bound)

    def feature_names(self) -> tuple[str, ...]:
        """Of the prediction, or ``<prefix>_hidden_<number>``."""
        return self._prefixed(self._given_names(self.target.names()))

    def _feature_rows(self, arrays: Arrays, rows: Floats) -> Floats:
        return self._given_rows(arrays, rows)

    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        return self._number.predictions(self._scores(arrays, rows)[:, 0])
