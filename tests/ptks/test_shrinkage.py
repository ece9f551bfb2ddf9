"""Means of groups that are pulled together: never much worse than the better one of not pulling at
all and of the mean of all, and no promise is broken by it.
"""

from __future__ import annotations

import gc
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.ptks.statistics import TARGETS, Statistics
from ptklib.ptks.statistics.served import NoisyTable
from ptklib.ptks.tables import remembered
from ptklib.ptks.tables.samples import reach, reaches
from ptklib.ptks.tables.shrinkage import TableNoise, pulled_means
from ptklib.ptks.tables.shrinkage.few_records import FewRecords, _hats
from ptklib.ptks.tables.shrinkage.models import FAR, PriorModel, prior
from ptklib.ptks.tables.shrinkage.noise import tails

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


# Families of a few groups: spreads from a fortieth of the noise to forty times it. No prior of
# spreads has less than 1.14 (7 groups) and 1.08 (10) in the worst case: see `shrinkage.models`.
@pytest.mark.parametrize(("size", "worst", "middling"), [(7, 1.3, 1.06), (24, 1.1, 1.0)])
def test_a_few_groups_are_served_about_as_well_as_they_can_be(
    size: int, worst: float, middling: float
) -> None:
    generator = np.random.default_rng(size)
    ratios = []
    for power in np.arange(-5.0, 5.5, 1.0):
        squares = np.zeros(3)
        for _ in range(150):
            means = np.clip(0.4 + 0.01 * 2**power * generator.normal(0, 1, size), 0, 1)
            low = 100 * (1 - means) + generator.laplace(0, 1, size)
            high = 100 * means + generator.laplace(0, 1, size)
            pulled = pulled_means(low + high, high, LAPLACE)
            assert pulled is not None
            whole = np.full(size, high.sum() / (low + high).sum())
            for place, found in enumerate((pulled, plain_means(low + high, high), whole)):
                squares[place] += np.square(found - means).mean()
        ratios.append(np.sqrt(squares[0] / squares[1:].min()))
    assert max(ratios) <= worst
    assert np.exp(np.log(ratios).mean()) <= middling


def rare(generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Large groups with a rate near 0, and groups of one to four records, a third of them with a
    rate of 1; noise of a third of a record.
    """
    counts = np.append(np.full(60, 300.0), generator.integers(1, 5, 60))
    sure = np.append(np.zeros(60, dtype=bool), generator.random(60) < 1 / 3)
    hits = np.where(sure, counts, generator.binomial(counts.astype(int), 0.002))
    noise = generator.laplace(0, 1 / 3, (2, 120))
    return hits / counts, counts - hits + noise[0], hits + noise[1]


def test_small_groups_far_from_all_others_stay_where_they_are() -> None:
    generator = np.random.default_rng(9)
    quiet = replace(LAPLACE, variance=2 / 9)
    squares = np.zeros(3)
    for _ in range(40):
        means, low, high = rare(generator)
        pulled = pulled_means(low + high, high, quiet)
        assert pulled is not None
        whole = np.full(120, high.sum() / (low + high).sum())
        for place, found in enumerate((pulled, plain_means(low + high, high), whole)):
            squares[place] += np.square(found - means).mean()
    # The mean of all is nearly four times as bad.
    assert np.sqrt(squares[0] / squares[1:].min()) <= 1.2


def few(**options: Any) -> FewRecords:
    given: dict[str, Any] = {
        "middle": 0.3,
        "shifts": np.array([0.0, 0.02]),
        "spreads": np.array([0.1, 0.01]),
        "average": 3.0,
        "most": 10.0,
        "variance": 2.0,
        "mixture": None,
    }
    return FewRecords(**{**given, **options})


def test_a_mean_of_few_records_is_that_of_the_whole_plane_of_counts_and_means() -> None:
    """Against a fine grid of numbers of records and of means, and a prior on both."""
    model = PriorModel(far=0.0)
    ends = np.array([[0.5, 4.0], [-1.0, 2.0], [3.0, -2.0], [4.0, 3.0]])
    (found,), _ = few().posterior(ends.sum(axis=1), ends[:, 1], (model,))
    numbers, means = np.linspace(0.005, 16, 3000)[:, None], np.linspace(0, 1, 401)
    usual = 0.9 * np.exp(-numbers / 3) / 3 + 0.1 / (1 + numbers) / np.log1p(16 * 1.1)
    near = np.zeros(401)
    for wide, part in FAR:
        cut = np.exp(-np.square(means - 0.3) / (2 * wide * 0.01)) / np.sqrt(wide * 0.01 * 2 * np.pi)
        cut *= 1 / 400
        above = [math.erfc(away / np.sqrt(2 * wide * 0.01)) / 2 for away in (0.3, 0.7)]
        cut[[0, -1]] += above
        near += part * cut
    wanted = []
    for low, high in ends:
        noise = np.abs(low - numbers * (1 - means)) + np.abs(high - numbers * means)
        plane = np.exp(-noise) * usual * near
        wanted.append((plane * means).sum() / plane.sum() - 0.3)
    assert found[:, 0] == pytest.approx(wanted, abs=0.02)


def test_very_many_small_groups_are_read_from_a_table_of_the_same_means() -> None:
    generator = np.random.default_rng(5)
    side = few()
    counts, totals = generator.uniform(-2, 10, 400), np.zeros(400)
    totals = counts * generator.uniform(0, 1, 400)
    (exact,), _ = side.posterior(counts, totals, (PriorModel(),))
    (lattice,), _ = side.posterior(*side.lattice, (PriorModel(),))
    for column in range(2):
        read = side.between(counts, totals, lattice[:, column])
        assert np.abs(read - exact[:, column]).max() < 0.01
    sizes = generator.poisson(3, 20_000)
    high = generator.binomial(sizes, 0.3) + generator.laplace(0, 1, 20_000)
    low = sizes * 0.7 + generator.laplace(0, 1, 20_000)
    whole = pulled_means(low + high, high, LAPLACE)
    part = pulled_means((low + high)[:8000], high[:8000], LAPLACE)
    assert whole is not None
    assert part is not None
    assert np.abs(whole[:8000] - part).max() < 0.03


@pytest.mark.parametrize("windows", [4.0, np.inf])
def test_other_noise_of_small_groups_is_a_mixture(windows: float) -> None:
    """The likelihood of the mixture is its density, and heavy tails pull more."""
    side = few(mixture=tails(windows))
    noise = np.array([0.0, 1.0, -3.0])
    wanted = sum(
        share * np.exp(-np.square(noise) / (2 * 2 * tail)) / np.sqrt(tail)
        for tail, share in tails(windows)
    )
    assert side._log_density(noise) == pytest.approx(np.log(wanted))
    (found,), _ = side.posterior(np.array([6.0]), np.array([6.0]), (PriorModel(),))
    assert 0 < found[0, 1] < found[0, 0] < 0.7


def test_weights_of_the_grid_keep_the_mean_of_a_normal_far_thinner_than_its_steps() -> None:
    grid = np.linspace(0, 1, 11)
    for centre, deviation in ((0.33, 1e-7), (0.33, 0.02), (0.52, 0.1)):
        weights = _hats(grid, centre, deviation)
        assert weights.sum() == pytest.approx(1)
        assert weights @ grid == pytest.approx(centre, abs=1e-3)
        assert weights.min() > -1e-12


def test_spreads_near_the_noise_are_unlikely_beforehand() -> None:
    odds = prior(np.array([1e-6, 0.2, 0.99]))
    assert odds[1] < odds[2] - 4 < odds[0] - 3


@pytest.mark.parametrize("windows", [1.0, 7.0])
def test_the_mixture_has_the_variance_and_the_tails_of_the_noise(windows: float) -> None:
    mixture = tails(windows)
    variance = sum(share * square for square, share in mixture)
    fourth = 3 * sum(share * square**2 for square, share in mixture)
    assert (variance, fourth) == pytest.approx((1.0, 3 + 3 / windows))
    assert tails(np.inf) == ((1.0, 1.0),)


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
@pytest.mark.parametrize("others", [0.1, 0.45])
def test_a_promised_error_holds_for_the_one_key_that_is_far_from_all_others(
    mechanism: Any, target: float, others: float
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
    draws, count = 300, np.full(100, needed / 100)
    for far in (1.05, 1.5, 2.0, 3.0):
        means = np.full(100, others)
        means[0] += far * target
        missed = free = 0
        for _ in range(draws):
            low = count * (1 - means) + draw(0, scale, 100)
            high = count * means + draw(0, scale, 100)
            found = table.means(plain_means(low + high, high), low + high, high)
            missed += abs(found[0] - means[0]) > target
            if far == 1.05:
                pulled = pulled_means(low + high, high, table._noise)
                assert pulled is not None
                free += abs(pulled[0] - means[0]) > target
        # Five in a hundred are allowed; three standard errors of so many draws.
        assert missed / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)
        if far == 1.05:
            assert free / draws > 0.15  # without room the promise would be broken


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_reaches_less_far_along_a_mean_inside_the_range(mechanism: str) -> None:
    """At the ends as far as a promise says; in between as far as draws do."""
    generator = np.random.default_rng(6)
    draw = generator.laplace if mechanism == "laplace" else generator.normal
    noise = draw(0, 1, (2, 400_000))
    far = reaches(mechanism, 1)
    assert far[-1] == reach(mechanism, 1)
    assert np.all(np.diff(far) > 0)
    for place in (0, 100, 200, 256):
        weight = 0.5 + place / 512
        beyond = np.abs(weight * noise[0] - (1 - weight) * noise[1]) > far[place]
        assert beyond.mean() == pytest.approx(0.05, abs=0.002)
    assert np.all(reaches(mechanism, 2) == reach(mechanism, 2))


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
    promised = 400 + 4 * np.sqrt(200 * 2 * 40) / 40
    room = (table.reach - table.along(plain, np.full(40, promised))) / promised
    assert 0.01 < room.min() < room.max() < 0.026
    moved = np.abs(table.means(plain, counts, totals) - plain)
    assert np.all(moved <= room + 1e-9)
    assert np.any(moved > 0.9 * room)
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
