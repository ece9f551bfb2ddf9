"""A PTK for pipelines under test: the mean of a number between 0 and 1, with as much more noise as
is asked for, so that budget and records matter. Its loss is the squared distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.ledger.queries import block_view
from ptklib.ledger.slices import WHOLE, TagRange
from ptklib.pipelines.held import HeldStream
from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk, Tags, check_arrays

UNIT = 1000


@dataclass(frozen=True, kw_only=True)
class Rough(Ptk):
    """Laplace noise for a sensitivity that is ``rough`` times what it has to be."""

    kind: ClassVar[str] = "rough"
    tags: ClassVar[Tags] = Tags(supervised=True)
    rough: int = 1
    fails: bool = False

    def columns(self) -> tuple[str, ...]:
        return ("y",)

    def _release(self, epsilon: Number, records_per_unit: int) -> LaplaceRelease:
        reach = 2 * UNIT * self.rough * records_per_unit
        return LaplaceRelease(epsilon=epsilon_exact(epsilon), sensitivity=reach)

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        return self._release(epsilon, records_per_unit).cost

    def train_dp(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number = 0,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        values = _values(batches)
        if self.fails:
            raise ValueError(f"the first value is {values[0]}")
        totals = [int(np.rint(values * UNIT).sum()), UNIT * len(values)]
        told = self._release(epsilon, records_per_unit).release(totals, source=noise).values
        mean = float(told[0]) / max(float(told[1]), UNIT)
        return {"mean": np.array([min(1.0, max(0.0, mean))])}

    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        return np.square(_values(batches) - float(arrays["mean"][0]))

    def feature_names(self) -> tuple[str, ...]:
        return ("mean",)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        return pa.table({"mean": np.full(len(table), arrays["mean"][0])})

    def validate(self, arrays: Arrays) -> None:
        check_arrays(arrays, {"mean": ("float64", (1,))}, kind=self.kind)


def _values(batches: Batches) -> NDArray[np.float64]:
    parts = [batch.column("y").to_numpy() for batch in batches]
    return np.concatenate([np.zeros(0), *parts])


def records(count: int, seed: int, mean: float = 0.8) -> pa.Table:
    """Numbers of this mean: the best loss that there is is about 0.02."""
    spread = np.random.default_rng(seed).normal(mean, 0.15, count)
    return pa.table({"y": np.clip(spread, 0.0, 1.0)})


def true_loss(arrays: Arrays, mean: float = 0.8) -> float:
    return float(Rough().loss(arrays, records(200_000, 10**6, mean).to_batches()).mean())


def spent_at(stream: HeldStream, block: str, tags: TagRange = WHOLE) -> list[float]:
    """What the book of a pure stream has for each range of tags of a block that lies within some
    tags, in epsilon.
    """
    view = block_view(stream._book, stream.stream, block)
    return [losses[0] / 1e9 for known, losses in view.losses if known.overlaps(tags)]
