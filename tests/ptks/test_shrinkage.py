"""Means of groups that are pulled together: never much worse than the better one of not pulling at
all and of the mean of all, and no promise is broken by it.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.ptks.statistics import TARGETS, Statistics
from ptklib.ptks.statistics.served import NoisyTable
from ptklib.ptks.tables import remembered, shrinkage
from ptklib.ptks.tables.keys import IntegerRange
from ptklib.ptks.tables.shrinkage import TableNoise, pulled_means

Floats = NDArray[np.float64]

ZONES = IntegerRange(column="zone", first=0, last=19)
# Groups, records of each, how sizes differ, how means differ, by how much: noise is 1 record.
FAMILIES = [
    (size, records, sizes, shape, spread)
    for size in (60, 300)
    for records in (10, 100, 1000)
    for sizes in ("even", "lognormal")
    for shape in ("normal", "outliers")
    for spread in (0.03, 0.2)
]
LAPLACE = TableNoise(variance=2.0, places=(0.0, 1.0), windows=1.0)


def make(**options: Any) -> Statistics:
    given: dict[str, Any] = {"keys": (ZONES,), "value": "speed", "lower": -20, "upper": 60}
    return Statistics(**{"statistics": ("mean",), **given, **options})


def rides(rows: int = 600, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    zones = np.minimum(generator.geometric(0.2, rows) - 1, 19)
    return pa.table({"zone": zones, "speed": generator.normal(zones, 5)})


def plain_means(counts: Floats, totals: Floats) -> Floats:
    middle = totals.sum() / counts.sum()
    divided = np.divide(totals, counts, out=np.full(len(counts), middle), where=counts > 0)
    return np.asarray(np.clip(divided, 0, 1))


def errors(family: tuple[int, int, str, str, float], seeds: int) -> tuple[float, float, float]:
    """Root mean squares over groups, in the mean over seeds: pulled, plain, and the mean of all."""
    size, records, sizes, shape, spread = family
    generator = np.random.default_rng(size + records + int(1000 * spread))
    roots = np.zeros(3)
    for _ in range(seeds):
        shares = generator.lognormal(0, 1, size) if sizes == "lognormal" else np.ones(size)
        count = np.maximum(1, np.rint(shares / shares.mean() * records))
        away = generator.normal(0, 1, size)
        if shape == "outliers":
            away = np.where(generator.random(size) < 0.1, away * 3, away * 0.3)
        means = np.clip(0.4 + spread * away, 0, 1)
        low = count * (1 - means) + generator.laplace(0, 1, size)
        high = count * means + generator.laplace(0, 1, size)
        pulled = pulled_means(low + high, high, LAPLACE)
        assert pulled is not None
        whole = np.full(size, high.sum() / (low + high).sum())
        for place, found in enumerate((pulled, plain_means(low + high, high), whole)):
            roots[place] += np.sqrt(np.square(found - means).mean())
    return tuple((roots / seeds).tolist())


def test_pulled_means_are_as_good_as_the_better_simple_way_on_every_family() -> None:
    ratios = []
    for family in FAMILIES:
        pulled, plain, whole = errors(family, 20 if family[0] < 100 else 8)
        ratios.append(pulled / min(plain, whole))
        assert ratios[-1] <= 1.02, family
    # Where both simple ways are about as bad, it is better than both.
    assert min(ratios) < 0.6
    assert np.mean(ratios) < 0.92


@pytest.mark.parametrize("windows", [1.0, 7.0])
def test_the_mixture_has_the_variance_and_the_tails_of_the_noise(windows: float) -> None:
    mixture = shrinkage.tails_of(windows)
    variance = sum(share * square for square, share in mixture)
    fourth = 3 * sum(share * square**2 for square, share in mixture)
    assert (variance, fourth) == pytest.approx((1.0, 3 + 3 / windows))
    assert shrinkage.tails_of(np.inf) == ((1.0, 1.0),)


def test_nothing_is_pulled_without_noise_and_everything_without_a_spread() -> None:
    counts = np.full(50, 100.0)
    totals = np.linspace(40, 60, 50)
    assert pulled_means(counts, totals, replace(LAPLACE, variance=0.0)) is None
    assert pulled_means(-counts, totals, LAPLACE) is None
    little = pulled_means(counts, totals, replace(LAPLACE, variance=1e-6))
    assert little == pytest.approx(totals / 100, abs=1e-5)
    much = pulled_means(counts, totals, replace(LAPLACE, variance=1e4))
    assert much == pytest.approx(np.full(50, 0.5), abs=0.01)


def test_a_large_table_is_pulled_like_a_small_one() -> None:
    """In pieces, and with spreads weighed by a part of the groups."""
    generator = np.random.default_rng(2)
    counts = np.full(30_000, 20.0) + generator.laplace(0, 1, 30_000)
    totals = counts * 0.3 + generator.normal(0, 1.0, 30_000)
    whole = pulled_means(counts, totals, LAPLACE)
    part = pulled_means(counts[:3000], totals[:3000], LAPLACE)
    assert whole is not None
    assert part is not None
    assert np.abs(whole[:3000] - part).max() < 0.02


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("target", [0.02, TARGETS])
def test_a_promised_error_holds_for_the_one_key_that_is_far_from_all_others(
    mechanism: Any, target: float
) -> None:
    """All other keys are alike, so the table says that a far one is noise; its mean is one at
    which a pull does most harm.
    """
    ptk = make(mechanism=mechanism, keys=(IntegerRange(column="zone", first=0, last=99),))
    delta = 0 if mechanism == "laplace" else "1e-6"
    (needed,) = ptk.analytic_profile(target, ["0.5"], delta)
    assert needed is not None
    cost: Any = ptk.cost("0.5", delta)
    scale = float(cost.scale if mechanism == "laplace" else cost.sigma) / ptk.steps
    generator = np.random.default_rng(3)
    draw = generator.laplace if mechanism == "laplace" else generator.normal
    table = NoisyTable(
        mechanism=mechanism,
        degree=1,
        unit=1 / ptk.steps,
        variance=scale**2 * (2 if mechanism == "laplace" else 1),
        windows=1.0,
        share=0.01,
    )
    draws, count = 400, np.full(100, needed / 100)
    for far in (1.05, 1.5, 2.0, 3.0):
        means = np.full(100, 0.1)
        means[0] += far * target
        missed = free = 0
        for _ in range(draws):
            low = count * (1 - means) + draw(0, scale, 100)
            high = count * means + draw(0, scale, 100)
            found = table.means(plain_means(low + high, high), low + high, high)
            missed += abs(found[0] - means[0]) > target
            pulled = pulled_means(low + high, high, table._noise)
            assert pulled is not None
            free += abs(pulled[0] - means[0]) > target
        # Five in a hundred are allowed; three standard errors of so many draws.
        assert missed / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)
        if far == 1.05:
            assert free / draws > 0.3  # without room the promise would be broken


def test_features_and_losses_speak_of_the_served_mean_and_sums_of_the_plain_one() -> None:
    ptk, table = make(statistics=("mean", "sum", "count"), prefix=""), rides()
    arrays = ptk.train_dp(table.to_batches(), epsilon=0.1)
    zones = pa.table({"zone": np.arange(20)})
    told = ptk.features(arrays, zones).to_pydict()
    plain = ptk.features({name: arrays[name] for name in ("totals", "windows")}, zones).to_pydict()
    assert np.ptp(told["mean"]) < np.ptp(plain["mean"])
    assert (told["sum"], told["count"]) == (plain["sum"], plain["count"])
    steps = np.rint((np.clip(table["speed"].to_numpy(), -20, 60) + 20) / 80 * ptk.steps)
    means = (np.array(told["mean"])[table["zone"].to_numpy()] + 20) / 80
    wanted = np.square(steps / ptk.steps - means)
    assert ptk.loss(arrays, table.to_batches()) == pytest.approx(wanted, abs=1e-9)


def test_who_needs_no_promise_of_single_keys_says_so_with_the_share() -> None:
    """The share of all records: then no key is meant."""
    counts, totals = np.full(40, 400.0), 160 + np.random.default_rng(4).laplace(0, 10, 40)
    table = NoisyTable(
        mechanism="laplace", degree=1, unit=1e-3, variance=200.0, windows=1.0, share=1 / 40
    )
    plain = plain_means(counts, totals)
    assert np.abs(table.means(plain, counts, totals) - plain).max() < 0.003
    free = replace(table, share=1.0).means(plain, counts, totals)
    assert np.ptp(free) < np.ptp(plain) / 2


def test_a_state_that_does_not_tell_its_noise_is_served_as_it_was_and_so_is_a_sum_with_it() -> None:
    ptk, batches = make(), rides().to_batches()
    new = ptk.train_dp(batches, epsilon=1)
    assert new["variance"] == pytest.approx([2.0], rel=1e-6)
    twice = ptk.train_dp(batches, epsilon=1, previous=new)
    assert twice["variance"] == pytest.approx([4.0], rel=1e-6)
    old = {name: new[name] for name in ("totals", "windows")}
    ptk.validate(old)
    assert set(ptk.train_dp(batches, epsilon=1, previous=old)) == {"totals", "windows"}
    for first, second in ((old, new), (new, old)):
        both = ptk.combined([(Fraction(1), first), (Fraction(1), second)])
        assert set(both) == {"totals", "windows"}
    for wrong in (np.array([-1.0]), np.array([np.nan]), np.ones(2), np.ones(1, np.int64)):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            ptk.validate({**new, "variance": wrong})
    counting = make(statistics=("count",), value=None, lower=None, upper=None)
    assert set(counting.train_dp(batches, epsilon=1)) == {"totals", "windows"}


def test_tables_are_remembered_while_their_totals_live_and_never_where_these_may_change() -> None:
    ptk = make()
    arrays = dict(ptk.train_dp(rides().to_batches(), epsilon=2))
    zones = pa.table({"zone": np.arange(20)})
    before = len(remembered._made)
    arrays["totals"] = arrays["totals"].copy()
    first = ptk.features(arrays, zones)
    assert len(remembered._made) == before
    arrays["totals"].flags.writeable = False
    for _ in range(2):
        assert ptk.features(arrays, zones).equals(first)
    assert len(remembered._made) == before + 1
    assert not make(min_share=1.0).features(arrays, zones).equals(first)
    del arrays
    gc.collect()
    assert len(remembered._made) == before
