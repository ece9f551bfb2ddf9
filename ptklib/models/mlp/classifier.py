"""`MlpClassifier`: the chance of each class, by a dense net with hidden layers.

Trained by noisy gradients (`ptklib.models.sgd`). Its features are chances of classes, or the last
hidden layer (``output="hidden"``): what one model has learned for another to use.

**Proof note.** That of `sgd.learner`. It needs a delta.

Reasons: CONFIG_INVALID, and those of `sgd.learner`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ptklib.models.labels import ClassLabel, Label
from ptklib.models.mlp.layers import HiddenLayers, Output
from ptklib.models.model import Model
from ptklib.models.sgd.heads import Softmax
from ptklib.models.sgd.learner import chances_of
from ptklib.models.sgd.network import Activation, Network
from ptklib.models.sgd.plan import SgdPlan
from ptklib.models.sgd.settings import NoisySteps
from ptklib.price_first import PriceFirst
from ptklib.ptk import Arrays, Tags

__all__ = ["MlpClassifier"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MlpClassifier(HiddenLayers, PriceFirst[SgdPlan], Model):
    """A multilayer perceptron for classes, with differential privacy.

    See the module for the proof note.
    """

    kind: ClassVar[str] = "mlp_classifier"
    tags: ClassVar[Tags] = Tags(supervised=True, needs_delta=True)

    classes: tuple[str, ...] | tuple[int, ...]
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

    @cached_property
    def target(self) -> Label:
        """One of the classes."""
        return ClassLabel(self.label, self.classes)

    @cached_property
    def network(self) -> Network:
        """Hidden layers, a score for each class."""
        head = Softmax(self.target.channels)
        return Network(self.rows.width, self.hidden, self.activation, head, self.rows.bound)

    def feature_names(self) -> tuple[str, ...]:
        """Of chances, or ``<prefix>_hidden_<number>``."""
        return self._prefixed(self._given_names(self.target.names()))

    def _feature_rows(self, arrays: Arrays, rows: Floats) -> Floats:
        return self._given_rows(arrays, rows)

    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        return chances_of(self._scores(arrays, rows))
