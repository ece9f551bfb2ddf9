"""`check_ptk` lets right PTKs pass and catches every broken one, by the right check and in plain
words.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.ptk import Tags
from ptklib.ptks.statistics import Statistics
from ptklib.testing import ptk_privacy_checks
from ptklib.testing.ptk_checks import CheckReport, PtkCheckFailed, check_ptk, list_checks
from tests.ptks.broken import BROKEN, Average

ZONES = IntegerRange(column="zone", first=0, last=9)
VALUE: dict[str, Any] = {"value": "speed", "lower": -20.0, "upper": 100.0}
VARIANTS = {
    "counts": Statistics(keys=(ZONES,), statistics=("count",)),
    "counts gaussian": Statistics(
        keys=(Categories(column="city", values=("a", "b", "c")),),
        statistics=("count",),
        mechanism="gaussian",
    ),
    "means": Statistics(
        keys=(TimePart(column="time", part="weekday"),), statistics=("mean", "count"), **VALUE
    ),
    "means gaussian": Statistics(
        keys=(Bins(column="age", edges=(0, 18, 65, 120)),),
        statistics=("mean",),
        mechanism="gaussian",
        **VALUE,
    ),
    "variances": Statistics(
        keys=(Categories(column="city", values=(3, 5, 8)),),
        statistics=("sum", "variance"),
        prefix="x",
        **VALUE,
    ),
    "variances gaussian": Statistics(
        keys=(ZONES,),
        statistics=("count", "sum", "mean", "variance"),
        mechanism="gaussian",
        resolution=0.5,
        **VALUE,
    ),
    "two keys": Statistics(
        keys=(TimePart(column="time", part="hour"), ZONES), statistics=("mean",), **VALUE
    ),
}


AUDITS = ("audit", "audit_user", "audit_residues")
# The others release the same sums by the same two mechanisms.
AUDITED = ("counts", "variances gaussian")


@pytest.mark.parametrize("name", VARIANTS)
def test_statistics_pass(name: str) -> None:
    left_out = () if name in AUDITED else AUDITS
    report = check_ptk(VARIANTS[name], leave_out=left_out)
    assert not [one for one in report.outcomes if one.problem]
    assert [one.name for one in report.outcomes if one.skipped] == sorted(
        left_out, key=list_checks(VARIANTS[name]).index
    )


def test_the_ptk_that_the_broken_ones_are_made_of_passes() -> None:
    assert check_ptk(Average()).failed == ()


@pytest.mark.parametrize(
    ("kind", "check", "words"), BROKEN, ids=[kind.__name__ for kind, _, _ in BROKEN]
)
def test_a_broken_ptk_is_caught(kind: type[Average], check: str, words: str) -> None:
    with pytest.raises(PtkCheckFailed) as caught:
        check_ptk(kind())
    found = {one.name: one.problem or "" for one in caught.value.report.failed}
    assert check in found, found
    assert words in found[check]
    assert f"FAILED  {check}: " in str(caught.value)


class HalfSigma(Statistics):
    """Half of the Gaussian noise that it is charged for."""

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        return super()._plan(epsilon, delta, records_per_unit).cost

    def _plan(self, epsilon: Number, delta: Number, records_per_unit: int) -> GaussianRelease:
        made = super()._plan(epsilon, delta, records_per_unit)
        assert isinstance(made, GaussianRelease)
        return GaussianRelease(sigma=made.sigma / 2, sensitivity=made.sensitivity)


def test_half_of_the_gaussian_noise_is_caught() -> None:
    # The audit of one record misses it one time in many; then that of a user's records does not.
    with pytest.raises(PtkCheckFailed, match=r"FAILED  audit(_user)?: adding \d record") as caught:
        check_ptk(HalfSigma(keys=(ZONES,), statistics=("mean",), mechanism="gaussian", **VALUE))
    assert [one.name for one in caught.value.report.failed] in (["audit"], ["audit_user"])


def test_every_check_but_two_has_a_broken_ptk() -> None:
    # Not seen to fail: audit_user (the audit with more records, run only if that holds) and
    # state_round_trip.
    caught = {check for _, check, _ in BROKEN} | {"audit_user", "state_round_trip"}
    assert set(list_checks(Average())) == caught


def test_checks_are_chosen_by_tags() -> None:
    class Plain(Average):
        tags = Tags(units=("event",))

    left_out = set(list_checks(Average())) - set(list_checks(Plain()))
    assert left_out == {
        "merge",
        "combine",
        "foreign_previous",
        "exact_minimiser",
        "records_per_unit",
        "audit_user",
    }


def test_checks_are_left_out_by_name_and_the_report_says_so() -> None:
    class Unpriced(Average):
        def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
            return super().cost(2 * Fraction(epsilon), delta, records_per_unit=records_per_unit)

    with pytest.raises(PtkCheckFailed, match="cost_before_data"):
        check_ptk(Unpriced(), leave_out=AUDITS)
    report = check_ptk(Unpriced(), leave_out=("cost_before_data", "records_per_unit", *AUDITS))
    assert "skipped cost_before_data: left out as asked" in str(report)
    with pytest.raises(InvalidInput, match="leave_out names noise: the checks of"):
        check_ptk(Average(), leave_out=("noise", "audit"))


@pytest.fixture
def short_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits that could catch little, for what is not about them."""
    monkeypatch.setattr(ptk_privacy_checks, "_RUNS", 200)
    monkeypatch.setattr(ptk_privacy_checks, "_FIRST_RUNS", 100)


@pytest.mark.usefixtures("short_audits")
def test_outside_a_test_one_check_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    report = check_ptk(Average())
    assert isinstance(report, CheckReport)
    assert [one.name for one in report.outcomes if one.skipped] == ["noise_from_the_source"]
    assert "while a pytest test runs" in str(report)


@pytest.mark.usefixtures("short_audits")
def test_data_may_be_given_and_must_be_enough() -> None:
    table = pa.table({"speed": np.linspace(0, 100, 200), "other": ["text"] * 200})
    assert check_ptk(Average(), data=table).failed == ()
    with pytest.raises(InvalidInput, match="DATA_TOO_SMALL"):
        check_ptk(Average(), data=table.slice(0, 10))

    class Silent(Average):
        def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
            return None

    with pytest.raises(InvalidInput, match="DATA_NEEDED"):
        check_ptk(Silent())
