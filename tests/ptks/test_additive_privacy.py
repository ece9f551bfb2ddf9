"""The Additive PTK: what it claims to spend, and the sensitivities behind the claim.

Audits of whole trainings, with half of the noise planted too, are in tests/auditing/test_kinds.py.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptklib.auditing.tape import record, replay
from ptklib.columns.keys import Categories
from ptklib.errors import InvalidInput
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.ptks.additive import Additive
from ptklib.ptks.additive.boosting import Boosting
from ptklib.ptks.additive.link import REACH, link_of
from ptklib.ptks.binned.codes import STEPS, Number
from ptklib.ptks.binned.target import Classes, Steps, Target
from ptklib.testing import ptk_privacy_checks
from ptklib.testing.ptk_checks import check_ptk

A = Number(column="a", lower=0, upper=10, bins=4)
B = Categories(column="b", values=("x", "y"))
CLASSES, RANGE = Classes("y", ("p", "q")), Steps("y", 0.0, 1.0)


def make(**options: Any) -> Additive:
    body: dict[str, Any] = {"inputs": (A, B), "label": "y", "classes": ("p", "q"), **options}
    if "lower" in body:
        body["classes"] = None
    return Additive(**body)


@pytest.mark.parametrize("records", [1, 5])
@pytest.mark.parametrize("rounds", [None, 1, 7])
@pytest.mark.parametrize("target", [{}, {"lower": 0, "upper": 1}])
def test_the_price_is_exactly_epsilon(
    target: dict[str, Any], rounds: int | None, records: int
) -> None:
    cost = make(rounds=rounds, **target).cost("0.7", records_per_unit=records)
    assert cost.basic() == (Fraction("0.7"), Fraction(0))


@pytest.mark.parametrize(("target", "weight"), [({}, 1), ({"lower": 0, "upper": 1}, STEPS)])
def test_each_release_has_the_share_and_the_sensitivity_of_the_proof_note(
    target: dict[str, Any], weight: int
) -> None:
    plan = make(rounds=5, **target)._plan(1, 0, 3)
    assert plan.whole == LaplaceRelease(epsilon="0.05", sensitivity=3 * weight)
    assert plan.tables == LaplaceRelease(epsilon="0.45", sensitivity=3 * weight * 2)
    # Five rounds of two inputs.
    assert plan.sums == LaplaceRelease(epsilon="0.05", sensitivity=3 * STEPS // 2)


@pytest.mark.parametrize("records", [1, 5])
def test_gaussian_releases_together_cost_what_is_claimed(records: int) -> None:
    ptk = make(mechanism="gaussian", rounds=7)
    claim = ptk.cost(1, "1e-6", records_per_unit=records)
    assert 0.9999 < claim.epsilon("1e-6") <= 1
    plan = ptk._plan(1, "1e-6", records)
    releases = [plan.whole, plan.tables, *[plan.sums] * 14]
    assert all(isinstance(one, GaussianRelease) for one in releases)
    spent = sum(Fraction(one.cost.mu_squared()) for one in releases)
    claimed = claim.mu_squared()
    assert isinstance(claimed, Fraction)
    assert claimed * Fraction("0.999999") < spent <= claimed
    reach = [float(one.sensitivity) for one in releases[:3]]
    for found, moved in zip(reach, (records, records * 2**0.5, records * REACH), strict=True):
        assert 0 <= found - moved < 1e-4 * moved


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("count", [1, 100, 256])
def test_rounds_that_are_not_given_make_no_more_releases_than_may_be_asked_for(
    mechanism: str, count: int
) -> None:
    inputs = tuple(Number(column=f"x{place}", lower=0, upper=1, bins=2) for place in range(count))
    ptk = make(inputs=inputs, mechanism=mechanism)
    for epsilon in ("0.1", "3"):
        rounds = ptk._plan(epsilon, "1e-6", 1).rounds
        make(inputs=inputs, mechanism=mechanism, rounds=rounds)


def test_a_delta_is_asked_for() -> None:
    ptk = make(mechanism="gaussian")
    assert ptk.tags.needs_delta
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        ptk.cost(1)


@pytest.mark.parametrize("rows", [0, 200])
def test_a_training_makes_the_releases_that_were_priced_whatever_the_data(rows: int) -> None:
    ptk = make(rounds=3)
    example = ptk.example(200)
    tape, _ = record(lambda: ptk.train_dp([example.slice(0, rows)], epsilon=1))
    plan = ptk._plan(1, 0, 1)
    made = [entry.mechanism for entry in tape.entries]
    assert made == [plan.whole, plan.tables, *[plan.sums] * 6]


@pytest.mark.parametrize("target", [CLASSES, RANGE])
def test_a_prediction_adds_half_a_record_at_most(target: Target) -> None:
    link = link_of(target)
    assert np.array_equal(link.halves, np.rint(link.halves))
    assert np.abs(link.halves).max() == REACH == STEPS // 2
    assert np.all(np.diff(link.predictions) > 0)
    found = link.halves[link.places(np.array([-(2**30), 2**30], dtype=np.int32))]
    assert found.tolist() == [-REACH, REACH]


scores = st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=30)


@given(held=scores, added=st.integers(-(2**20), 2**20), code=st.integers(0, 4))
def test_a_record_moves_the_sums_of_one_bin_by_its_own_prediction(
    held: list[int], added: int, code: int
) -> None:
    """Whatever the others are; what they add does not change."""
    codes = np.array([[place % 5 for place in range(len(held))]], dtype=np.uint8)
    more = np.append(codes, [[code]], axis=1).astype(np.uint8)

    def sums(codes: Any, listed: list[int]) -> Any:
        label = np.zeros(len(listed), dtype=np.int32)
        boosting = Boosting(CLASSES, (5,), (True,), codes, label)
        return boosting._sums(np.array(listed, dtype=np.int32), 0)

    moved = sums(more, [*held, added]) - sums(codes, held)
    assert np.count_nonzero(moved) <= 1
    assert np.abs(moved).sum() == abs(moved[code]) <= REACH


def test_a_state_follows_from_what_was_released() -> None:
    """All of it: two trainings that are told the same end at the same, whatever their records."""
    ptk = make(rounds=2)
    one, other = ptk.example(50, seed=1), ptk.example(80, seed=2)
    tape, first = record(lambda: ptk.train_dp([one], epsilon=1))
    _, second = replay(tape, lambda: ptk.train_dp([other], epsilon=1))
    assert {name: array.tobytes() for name, array in first.items()} == {
        name: array.tobytes() for name, array in second.items()
    }


def test_records_without_a_label_change_nothing_that_is_released() -> None:
    ptk = make(rounds=2)
    example = ptk.example(60)
    unknown = example.set_column(
        example.schema.get_field_index("y"), "y", pa.array([None, "z"] * 30, pa.string())
    )
    inputs = []
    for batches in ([example], [example, unknown]):
        tape, _ = record(partial(ptk.train_dp, batches, epsilon=1))
        inputs.append([entry.given for entry in tape.entries[:2]])
    for without, with_unknown in zip(*inputs, strict=True):
        assert np.array_equal(without, with_unknown)


# Audits of fewer runs than usual: those of test_kinds are of everything that is released.
@pytest.mark.parametrize(
    "options",
    [{"lower": 0, "upper": 1, "rounds": 1}, {"mechanism": "gaussian", "rounds": 1}],
)
def test_the_contract_is_kept(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptk_privacy_checks, "_RUNS", 200)
    monkeypatch.setattr(ptk_privacy_checks, "_FIRST_RUNS", 150)
    check_ptk(make(**options))
