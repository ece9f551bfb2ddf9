"""Families for the promises: a PTK that has to be measured, records for it, and its label where it
has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from examples.ptks.profile import CASES
from ptklib.ptk import Ptk

__all__ = ["FAMILIES", "Family", "blinded"]

_KINDS = ("clusters", "covariance", "embeddings", "forest")


@dataclass(frozen=True)
class Family:
    """A name of `CASES`, or records of a file."""

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
        if not self.ptk.tags.supervised:
            return None
        label = getattr(self.ptk, "label", None)
        return label if isinstance(label, str) else getattr(label, "column", None)

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
def _case(name: str):  # type: ignore[no-untyped-def]
    return CASES[name]()


def FAMILIES(data: Path | None) -> Iterator[Family]:  # noqa: N802
    """All families: made-up records, and those of files where there are some."""
    for kind in _KINDS:
        yield Family(kind)
    if data is not None:
        yield from ()


def blinded(family: Family, table: pa.Table) -> pa.Table:
    """Records whose inputs are all alike: what is learnt of them is the best constant."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        one = column if name == family.label else pa.array([column[0].as_py()] * table.num_rows)
        columns[name] = one
    return pa.table(columns)


Maker = Callable[[], Family]
