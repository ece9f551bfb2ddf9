"""`LogisticRegression`: the chance of the second of two classes, from a weighted sum of the row.

Trained by noisy gradients (`ptklib.models.sgd`): batches of records, the sum of their clipped
gradients, noise. The loss is convex, so a few dozen large steps and an average of the weights do.
``penalty`` shrinks weights; with noise it is hardly needed, since few steps shrink as well.

**Proof note.** That of `sgd.learner`. It needs a delta.

Reasons: CONFIG_INVALID, and those of `sgd.learner`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ptklib.config import demand
from ptklib.models.labels import ClassLabel, Label
from ptklib.models.model import Model
from ptklib.models.sgd import heads
from ptklib.models.sgd.learner import NetLearner
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.plan import SgdPlan
from ptklib.models.sgd.settings import MAX_RECORDS, NoisySteps
from ptklib.price_first import PriceFirst
from ptklib.ptk import Arrays, Tags

__all__ = ["LogisticRegression"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LogisticRegression(NetLearner, PriceFirst[SgdPlan], Model):
    """Logistic regression with differential privacy.

    See the module for the proof note.
    """

    kind: ClassVar[str] = "logistic_regression"
    tags: ClassVar[Tags] = Tags(supervised=True, mergeable=True, needs_delta=True)

    classes: tuple[str, ...] | tuple[int, ...]  # two
    records: int  # how many are expected, at least about: public
    penalty: float = 0.0
    training: NoisySteps = field(default_factory=NoisySteps)

    def check(self) -> None:
        """Two classes, and numbers within limits."""
        super().check()
        demand(
            len(self.classes) == 2,
            f"classes must be two, got {len(self.classes)}: take softmax_regression for more",
            field="classes",
        )
        demand(
            1 <= self.records <= MAX_RECORDS,
            f"records must be from 1 to {MAX_RECORDS}, got {self.records}",
            field="records",
        )
        demand(0 <= self.penalty <= 1, "penalty must be from 0 to 1", field="penalty")
        self._settles()

    @cached_property
    def target(self) -> Label:
        """One of two classes."""
        return ClassLabel(self.label, self.classes)

    @cached_property
    def network(self) -> Network:
        """One layer, one score."""
        return Network(self.rows.width, (), "relu", heads.Logistic(), self.rows.bound)

    @property
    def _penalty(self) -> float:
        return self.penalty

    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        scores = np.clip(self._scores(arrays, rows)[:, 0], -500.0, 500.0)
        chances = 1 / (1 + np.exp(-scores))
        return np.stack([1 - chances, chances], axis=1)
