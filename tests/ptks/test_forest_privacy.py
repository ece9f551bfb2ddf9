"""The Forest PTK: what it claims to spend, the sensitivities behind the claims, and audits that
catch half of the noise.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptklib.columns.keys import Categories, IntegerRange
from ptklib.errors import InvalidInput
from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.mechanisms.selection import NoisyMax
from ptklib.privacy.noise.source import BitSource
from ptklib.ptks.binned.codes import STEPS, Number
from ptklib.ptks.binned.records import count_tables, read
from ptklib.ptks.binned.target import Classes
from ptklib.ptks.forest import Forest
from ptklib.ptks.forest.records import count_leaves, drawn_trees
from ptklib.ptks.forest.splits import (
    HALF_RANGE_CLASSES,
    HALF_RANGE_STEPS,
    class_purity,
    grow_privately,
    step_purity,
)
from ptklib.testing import ptk_privacy_checks
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.distributions import check_scale, discrete_laplace_cdf
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk, list_checks

A = Number(column="a", lower=0, upper=10, bins=4)
B = Categories(column="b", values=("x", "y"))
SPLITS: tuple[Any, ...] = ("guided", "random", "exponential", "margin")


def make(**options: Any) -> Forest:
    body: dict[str, Any] = {
        "inputs": (A, B),
        "label": "y",
        "classes": ("p", "q"),
        "trees": 2,
        "depth": 2,
        **options,
    }
    if "lower" in body:
        body["classes"] = None
    return Forest(**body)


@pytest.mark.parametrize("records", [1, 5])
@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("target", [{}, {"lower": 0, "upper": 1}])
def test_the_price_is_exactly_epsilon_and_delta(
    splits: Any, target: dict[str, Any], records: int
) -> None:
    delta = Fraction(1, 10**6) if splits == "margin" else Fraction(0)
    ptk = make(splits=splits, split_share=0.3, depth=3, **target)
    assert ptk.cost("0.7", delta, records_per_unit=records).basic() == (Fraction("0.7"), delta)
    assert ptk.tags.needs_delta == (splits == "margin")


def test_each_mechanism_has_the_share_and_the_sensitivity_of_the_proof_note() -> None:
    unit = make(trees=3, split_share=0.25)._plan(1, 0, 4)
    assert unit.tables == LaplaceRelease(epsilon="0.25", sensitivity=4 * 2)
    assert unit.leaves == LaplaceRelease(epsilon="0.75", sensitivity=4)
    target = make(lower=0, upper=1, splits="exponential", depth=5)._plan(1, 0, 4)
    assert target.levels == (NoisyMax(epsilon="0.1", sensitivity=4 * STEPS**2 // 2),) * 5
    assert target.leaves == LaplaceRelease(epsilon="0.5", sensitivity=4 * STEPS)
    margin = make(splits="margin", depth=5)._plan(1, "1e-6", 4)
    assert (
        margin.levels
        == (LargeMargin(epsilon="0.1", delta="5e-8", sensitivity=4 * HALF_RANGE_CLASSES),) * 5
    )


@pytest.mark.parametrize("splits", ["guided", "random"])
@pytest.mark.parametrize("records", [1, 5])
def test_gaussian_noise_is_calibrated_over_all_trees_and_inputs(splits: Any, records: int) -> None:
    ptk = make(splits=splits, mechanism="gaussian", trees=7, split_share=0.2)
    assert 0.9999 < ptk.cost(1, "1e-6", records_per_unit=records).epsilon("1e-6") <= 1
    plan = ptk._plan(1, "1e-6", records)
    assert isinstance(plan.leaves, GaussianRelease)
    assert 0 <= float(plan.leaves.sensitivity) - records * 7**0.5 < 1e-4
    if splits == "guided":
        assert isinstance(plan.tables, GaussianRelease)
        assert 0 <= float(plan.tables.sensitivity) - records * 2**0.5 < 1e-4
        mu = [float(one.cost.mu_squared()) for one in (plan.tables, plan.leaves)]
        assert mu[0] / sum(mu) == pytest.approx(0.2)


@pytest.mark.parametrize("way", [{"splits": "margin"}, {"mechanism": "gaussian"}])
def test_a_delta_is_asked_for(way: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        make(**way).cost(1)


counts = st.lists(st.integers(0, 400), min_size=2, max_size=5)


@settings(max_examples=300, deadline=None)
@given(counts, st.integers(0, 4))
def test_a_record_raises_the_impurity_of_classes_by_zero_to_two(
    side: list[int], place: int
) -> None:
    before = np.array(side, dtype=np.int64)
    after = before.copy()
    after[place % len(side)] += 1
    # The impurity in units: those of the records minus the score.
    rise = (after.sum() - before.sum()) * HALF_RANGE_CLASSES - (
        class_purity(after) - class_purity(before)
    )
    assert 0 <= rise <= 2 * HALF_RANGE_CLASSES


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, STEPS), max_size=60), st.integers(0, STEPS))
def test_a_record_raises_the_squared_error_by_zero_to_the_square_of_the_range(
    side: list[int], added: int
) -> None:
    before, after = (
        np.array([len(one), sum(one)], dtype=np.int64) for one in (side, [*side, added])
    )
    rise = added**2 - int(step_purity(after) - step_purity(before))
    assert 0 <= rise <= 2 * HALF_RANGE_STEPS


def test_the_ranges_are_reached_and_purities_are_exact() -> None:
    one_class, other = np.array([9999, 0]), np.array([9999, 1])
    rise = HALF_RANGE_CLASSES - (class_purity(other) - class_purity(one_class))
    assert rise > 1.99 * HALF_RANGE_CLASSES
    low, high = np.array([999, 0]), np.array([1000, STEPS])
    assert STEPS**2 - (step_purity(high) - step_purity(low)) > 1.99 * HALF_RANGE_STEPS
    generator = np.random.default_rng(1)
    for _ in range(50):
        n = generator.integers(0, 2**30, 3)
        total = max(1, sum(map(int, n)))
        assert class_purity(n) == 1024 * sum(int(x) ** 2 for x in n) // total
        weight = int(generator.integers(0, STEPS * int(n[0]) + 1))
        assert step_purity(np.array([n[0], weight])) == weight**2 // max(1, int(n[0]))


@pytest.mark.parametrize("target", [{}, {"lower": 0, "upper": 1}])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("odd", [False, True])
def test_a_record_moves_tables_and_leaves_by_the_sensitivity(
    target: dict[str, Any], mechanism: Any, odd: bool
) -> None:
    ptk = make(trees=5, splits="random", mechanism=mechanism, **target)
    data = ptk.example(200)
    more = ptk.example(1, seed=7)
    if odd:
        more = pa.RecordBatch.from_pydict({"a": [np.nan], "b": ["?"], "y": more.column("y")})
    found = []
    for batches in ([data], [data, more]):
        codes, label = read(ptk.inputs, ptk._target, batches)
        with planted_noise():
            tree = (
                drawn_trees(codes.shape[1], 5, SeededSource(3)) if mechanism == "laplace" else None
            )
        leaves = count_leaves(ptk._target, ptk._splits({}), codes, label, tree)
        found.append((count_tables(ptk._target, ptk._sizes, codes, label), leaves))
    weight = STEPS if target else 1
    tables, moved = (after - before for before, after in zip(*found, strict=True))
    assert np.all(tables >= 0)
    assert np.all(moved >= 0)
    assert tables.sum() == 2 * weight
    assert moved.sum() == (5 if mechanism == "gaussian" else 1) * weight
    # In one tree, or once in each.
    assert set(moved.sum(axis=(1, 2)).tolist()) <= {0, weight}


def test_trees_are_drawn_evenly_and_each_record_for_itself() -> None:
    with planted_noise():
        drawn = drawn_trees(70_000, 7, SeededSource(1))
        fewer = drawn_trees(69_999, 7, SeededSource(1))
    assert np.array_equal(drawn[:-1], fewer)
    share = np.bincount(drawn, minlength=7) / 10_000
    assert np.all(np.abs(share - 1) < 0.05)


def test_every_cell_has_noise_of_the_stated_scale() -> None:
    ptk = make(trees=60, depth=10, splits="guided", split_share=0.5)
    arrays = ptk.train_dp([], epsilon="0.2", records_per_unit=2)
    check_scale(
        lambda count: arrays["leaves"].ravel()[:count], discrete_laplace_cdf, 20, count=100_000
    )
    wide = make(
        inputs=tuple(IntegerRange(column=f"c{n}", first=0, last=3999) for n in range(10)),
        depth=1,
        trees=1,
    )
    noisy = replace(wide, splits="guided").train_dp([], epsilon=1)["tables"]
    check_scale(lambda count: noisy.ravel()[:count], discrete_laplace_cdf, 20, count=80_000)


def release_runs(
    release: LaplaceRelease, pair: tuple[NDArray[Any], NDArray[Any]], noise: BitSource
) -> Any:
    """Runs of a release of the first or second vector, as the log-likelihood ratio of the two."""

    def runs(side: int, count: int) -> NDArray[np.float64]:
        noisy = release.release(np.tile(pair[side], (count, 1)), source=noise).values
        ratio = np.abs(noisy - pair[0]).sum(axis=1) - np.abs(noisy - pair[1]).sum(axis=1)
        return np.asarray(ratio, dtype=np.float64)

    return runs


@pytest.mark.parametrize("part", ["tables", "leaves"])
def test_releases_are_no_more_telling_than_they_claim_and_half_the_noise_is_caught(
    part: str,
) -> None:
    ptk = make(splits="guided", trees=3, inputs=(A, B, IntegerRange(column="c", first=0, last=1)))
    plan = ptk._plan(2, 0, 1)
    data, more = ptk.example(30), ptk.example(1, seed=4)
    vectors = []
    for batches in ([data], [data, more]):
        codes, label = read(ptk.inputs, ptk._target, batches)
        if part == "tables":
            made = count_tables(ptk._target, ptk._sizes, codes, label)
        else:
            tree = np.arange(codes.shape[1]) % 3
            made = count_leaves(ptk._target, np.zeros((3, 3, 2), np.int32), codes, label, tree)
        vectors.append(made.ravel())
    release = getattr(plan, part)
    halved = LaplaceRelease(epsilon=2 * release.epsilon, sensitivity=release.sensitivity)
    with planted_noise():
        for one, caught in ((release, False), (halved, True)):
            runs = release_runs(one, (vectors[0], vectors[1]), SeededSource(11))
            found = audit_epsilon(runs, 0, 1, count=40_000, confidence=0.999)
            assert found.contradicts(1.0) == caught
            assert found.lower_bound > (1.3 if caught else 0.7)


@pytest.mark.parametrize(("share", "caught"), [(1, False), (4, True)])
def test_chosen_splits_are_no_more_telling_than_they_claim(share: int, caught: bool) -> None:
    """The record is impure on one side of the first input and pure on that of the second: their
    scores part by the range.
    """
    codes = np.array([[1] * 300 + [0] * 10, [0] * 299 + [1] * 11], np.uint8)
    label = np.array([0] * 300 + [1] * 10, np.int32)
    pair = [
        (codes, label),
        (np.column_stack([codes, [1, 1]]), np.append(label, 1).astype(np.int32)),
    ]
    # Noisy max with a quarter of the sensitivity has a quarter of the noise: the mistake that must
    # show.
    level = NoisyMax(epsilon=1, sensitivity=HALF_RANGE_CLASSES // share)
    source = SeededSource(2)

    def runs(side: int, count: int) -> NDArray[np.int64]:
        mine, classes = pair[side]
        options: dict[str, Any] = {
            "trees": 1,
            "sizes": np.array([2, 2]),
            "count": 2,
            "seed": 0,
            "noise": source,
        }
        tree = np.zeros(mine.shape[1], np.intp)
        learned = Classes("y", ("p", "q"))
        return np.array(
            [
                grow_privately([level], learned, mine, classes, tree, **options)[0, 0, 0]
                for _ in range(count)
            ]
        )

    with planted_noise():
        found = audit_epsilon(runs, 0, 1, count=2000, confidence=0.99)
    assert found.contradicts(1.0) == caught
    assert found.lower_bound > 0.4


# Audits of fewer runs than usual, and of two ways to choose splits: `tests/auditing` audits all, and
# the mechanisms have their own above.
@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({"splits": "random", "output": "leaves"}, 800),
        ({"splits": "guided", "lower": 0, "upper": 1, "depth": 1}, 200),
        ({"splits": "exponential", "depth": 1}, 0),
        ({"splits": "margin", "depth": 1}, 0),
        ({"splits": "guided", "mechanism": "gaussian", "depth": 1}, 0),
    ],
)
def test_the_contract_is_kept(
    options: dict[str, Any], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptk_privacy_checks, "_RUNS", runs)
    audits = [name for name in list_checks(make(**options)) if name.startswith("audit")]
    check_ptk(make(**options), leave_out=() if runs else audits)
