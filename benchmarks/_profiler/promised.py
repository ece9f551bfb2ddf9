"""Families for the promises: a PTK that has to be measured, records for it, and its label where it
has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from examples.ptks.profile import CASES, Case
from profiler.measuring.constant import label_of
from ptklib.ptk import Ptk
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.forest import Forest
from ptklib.ptks.vectors import Bounded

__all__ = ["Family", "families"]

_KINDS = ("additive", "clusters", "covariance", "embeddings", "forest")
# Public bounds of census columns, and of the city.
_CENSUS = {
    "age": (0.0, 100.0),
    "education_num": (0.0, 16.0),
    "capital_gain": (0.0, 20_000.0),
    "hours_per_week": (0.0, 100.0),
}
_CITY = {"pickup_longitude": (-74.05, -73.75), "pickup_latitude": (40.6, 40.9)}


@dataclass(frozen=True)
class Family:
    """Made-up records of one of `CASES`, or records of a file and a PTK for them."""

    name: str
    records: pa.Table | None = field(default=None, repr=False, compare=False)
    made: Ptk | None = None

    @property
    def ptk(self) -> Ptk:
        """What is trained."""
        return self.made or _case(self.name).ptk

    @property
    def delta(self) -> str | int:
        """For Gaussian noise."""
        return "1e-6" if self.ptk.tags.needs_delta else 0

    @property
    def label(self) -> str | None:
        """The column that a supervised PTK learns."""
        return label_of(self.ptk)

    def draw(self, rng: np.random.Generator, rows: int) -> pa.Table:
        """Records; of a file, with replacement."""
        if self.records is None:
            return _case(self.name).rows(rows, rng)
        held = rng.integers(0, self.records.num_rows, rows)
        return self.records.take(pa.array(held)).combine_chunks()

    def test(self, rows: int) -> pa.Table:
        """The same records for everybody: the risk is the loss on them."""
        return self.draw(np.random.default_rng(77), rows)


@cache
def _case(name: str) -> Case:
    return CASES[name]()


def families(data: Path | None) -> Iterator[Family]:
    """Made-up records of each kind, and those of files where there are some."""
    for kind in _KINDS:
        yield Family(kind)
    if data is None:
        return
    census = pq.read_table(data / "tabular" / "adult.parquet", columns=[*_CENSUS, "income"])
    income = pc.cast(pc.equal(census.column("income"), ">50K"), pa.int64())
    columns = {name: pc.cast(census.column(name), pa.float64()) for name in _CENSUS}
    inputs = tuple(
        Number(column=name, lower=lower, upper=upper) for name, (lower, upper) in _CENSUS.items()
    )
    forest = Forest(inputs=inputs, label="rich", classes=(0, 1))
    yield Family("forest on census", pa.table(columns | {"rich": income}), forest)
    city = pq.read_table(data / "taxi" / "yellow_2016H1_lonlat.parquet", columns=list(_CITY))
    values = tuple(
        Bounded(column=name, lower=lower, upper=upper) for name, (lower, upper) in _CITY.items()
    )
    yield Family("clusters of pickups", city, Clusters(values=values, clusters=6))
