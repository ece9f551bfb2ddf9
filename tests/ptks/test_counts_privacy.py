"""The counts PTK under audit: the contract holds, worst-case neighbours stay within the claim, half
the noise is caught.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.columns.keys import Bins, Categories, IntegerRange
from ptklib.ptks.counts import FEW_LINES, Counts
from ptklib.ptks.counts.budget import CountReleases
from ptklib.ptks.tables.hashing import Hashed
from ptklib.testing.audit import AuditResult, audit_epsilon
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk

ZONE = IntegerRange(column="zone", first=0, last=2)
CITY = Categories(column="city", values=("a", "b"))
USER = Hashed(column="user", width=3, rows=2)
CLICK = IntegerRange(column="click", first=0, last=1)
EPSILON = 2
RUNS = 2000

VARIANTS = {
    "two keys, three classes, gaussian": Counts(
        keys=(ZONE, Bins(column="age", edges=(0, 18, 65))),
        label=IntegerRange(column="rank", first=1, last=3),
        mechanism="gaussian",
        cell_bits=32,
    ),
    "hashed rows": Counts(keys=(USER,), label=CLICK, statistics=("probability",), prefix="x"),
}


class HalfNoise(Counts):
    """Lays half of the noise that it is priced for."""

    def _noise(self, made: CountReleases, noise: Any) -> Any:
        return super()._noise(self._plan(2 * EPSILON, 0, 1), noise)


class OneTable(Counts):
    """Takes its tables for one: each has the noise of the whole budget."""

    def _noise(self, made: CountReleases, noise: Any) -> Any:
        scale = len(self.keys)
        return super()._noise(self._plan(scale * EPSILON, 0, 1), noise)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_contract_is_kept(name: str) -> None:
    check_ptk(VARIANTS[name])


def audit(ptk: Counts, records: int = 1, *, wide: bool = False) -> AuditResult:
    """Add ``records`` equal records to none: the pair in which every table moves by all of them,
    and in one cell each.
    """
    record = {"zone": 1, "city": "b", "user": "me", "click": 1}
    pair = [[], [pa.RecordBatch.from_pylist([record] * records)]]
    moved = np.flatnonzero(ptk.exact(pair[1])["cells"])
    made = ptk._plan(EPSILON, 0, records)
    ends = [table.stop for table in ptk._tables] + ([ptk.cells] if wide else [])
    scales = np.array(
        [float(made.releases[int(np.searchsorted(ends, one, side="right"))].scale) for one in moved]  # type: ignore[union-attr]
    )
    source = SeededSource(11)

    def runs(side: int, count: int) -> Any:
        found = np.array(
            [
                ptk.train_dp(pair[side], epsilon=EPSILON, records_per_unit=records, noise=source)[
                    "cells"
                ][moved]
                for _ in range(count)
            ]
        )
        # The log-likelihood ratio of the pair: no test can tell it apart better.
        return ((np.abs(found) - np.abs(found - records)) / scales).sum(axis=1).round(9)

    with planted_noise():
        return audit_epsilon(runs, 0, 1, count=RUNS, confidence=0.95)


@pytest.mark.parametrize(("records", "weights"), [(1, None), (3, (1, 3, 2))])
def test_the_worst_neighbours_stay_within_the_claim(records: int, weights: Any) -> None:
    found = audit(Counts(keys=(ZONE, CITY, USER), label=CLICK, weights=weights), records)
    assert not found.contradicts(EPSILON)
    assert found.lower_bound > 0.4 * EPSILON


def test_the_class_totals_are_paid_for() -> None:
    ptk = Counts(keys=(Hashed(column="user", width=FEW_LINES),), label=CLICK)
    assert ptk.cells == 2 * (FEW_LINES + 2)
    found = audit(ptk, wide=True)
    assert not found.contradicts(EPSILON)
    assert found.lower_bound > 0.6 * EPSILON


@pytest.mark.parametrize("broken", [HalfNoise, OneTable])
def test_too_little_noise_is_caught(broken: type[Counts]) -> None:
    assert audit(broken(keys=(ZONE, CITY), label=CLICK)).contradicts(EPSILON)
