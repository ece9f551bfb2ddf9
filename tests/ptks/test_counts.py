"""The counts PTK: exact tables, the sensitivity and the price it claims, its noise, and the rules
it states.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import DiscreteLaplaceCost, GaussianCost
from ptklib.privacy.noise.sampler import discrete_laplace, rounded_gaussian
from ptklib.ptks.counts import FEW_LINES, Counts, estimate
from ptklib.ptks.counts import samples as counts_profile
from ptklib.ptks.counts.tables import TOP_32
from ptklib.ptks.tables.hashing import Hashed
from ptklib.ptks.tables.samples import smallest_count
from ptklib.testing.distributions import check_scale, discrete_laplace_cdf, rounded_gaussian_cdf

CITY = Categories(column="city", values=("a", "b", "c"))
AGE = Bins(column="age", edges=(0, 18, 65, 120))
USER = Hashed(column="user", width=11, rows=2, salt=5)
CLICK = IntegerRange(column="click", first=0, last=1)
WIDE = Hashed(column="user", width=5 * FEW_LINES)


def make(**options: Any) -> Counts:
    given: dict[str, Any] = {"keys": (CITY, AGE, USER), "label": CLICK, **options}
    return Counts(**given)


def rows(*records: tuple[Any, Any, Any, Any]) -> list[pa.RecordBatch]:
    kinds = {"city": pa.string(), "age": pa.float64(), "user": pa.string(), "click": pa.int64()}
    columns = [
        pa.array([one[place] for one in records], kind) for place, kind in enumerate(kinds.values())
    ]
    return [pa.RecordBatch.from_arrays(columns, names=list(kinds))]


def state(ptk: Counts, cells: Any, variance: float = 0.0) -> dict[str, Any]:
    arrays = dict(ptk.exact([]))
    arrays["cells"] = np.asarray(cells).astype(arrays["cells"].dtype)
    arrays["variances"] = np.full_like(arrays["variances"], variance)
    return arrays


def test_exact_cells_are_the_plain_tables() -> None:
    generator = np.random.default_rng(1)
    records = [
        (
            [None, "a", "b", "c", "d"][generator.integers(5)],
            [None, -1.0, 5.0, 18.0, 120.0, 130.0, np.nan][generator.integers(7)],
            [None, "u", "v", "w"][generator.integers(4)],
            [None, 0, 1, 2][generator.integers(4)],
        )
        for _ in range(1500)
    ]
    ptk = make()
    wanted: dict[str, Any] = {
        name: np.zeros((size, 2), np.int64)
        for name, size in (("city", 4), ("age", 4), ("0", 12), ("1", 12))
    }
    bins: dict[Any, int] = {5.0: 0, 18.0: 1, 120.0: 2}
    for city, age, user, click in records:
        if click not in (0, 1):
            continue
        wanted["city"]["abc".index(city) if city in ("a", "b", "c") else 3, click] += 1
        wanted["age"][bins.get(age, 3), click] += 1
        for row, codes in enumerate(USER.row_codes(pa.array([user], pa.string()))):
            wanted[str(row)][codes[0], click] += 1
    found = ptk.exact(pa.Table.from_batches(rows(*records)).to_batches(max_chunksize=101))["cells"]
    assert np.array_equal(found, np.concatenate([one.ravel() for one in wanted.values()]))


@pytest.mark.parametrize("bits", [32, 64])
def test_many_records_are_counted_like_few(bits: Any) -> None:
    """Tables that are smaller and larger than the pieces, several pieces, and labels that are not
    known.
    """
    count, generator = 150_000, np.random.default_rng(2)
    table = pa.table(
        {"zone": generator.integers(0, 7, count), "user": generator.integers(0, 10**6, count)}
    )
    labels = generator.integers(0, 3, count)
    table = table.append_column("click", pa.array(labels))
    keys = (IntegerRange(column="zone", first=0, last=6), Hashed(column="user", width=50_000))
    ptk = make(keys=keys, cell_bits=bits)
    found = ptk.exact(table.to_batches(max_chunksize=140_000))["cells"]
    known = labels < 2
    assert found.dtype == np.dtype(f"int{bits}")
    zones = np.bincount(table["zone"].to_numpy()[known] * 2 + labels[known], minlength=16)
    assert np.array_equal(found[:16], zones)
    (codes,) = keys[1].row_codes(table["user"].chunk(0))
    assert np.array_equal(
        found[16:], np.bincount(codes[known] * 2 + labels[known], minlength=2 * 50_001)
    )


@settings(max_examples=60, deadline=None)
@given(
    city=st.sampled_from([None, "a", "c", "z"]),
    age=st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    user=st.one_of(st.none(), st.text(max_size=20)),
    click=st.one_of(st.none(), st.integers(-1, 2)),
    wide=st.booleans(),
)
def test_a_record_adds_one_to_one_cell_of_every_table(
    city: Any, age: Any, user: Any, click: Any, wide: bool
) -> None:
    """The sensitivity: one in each table for a known label, nothing otherwise."""
    ptk = make(keys=(WIDE,)) if wide else make()
    base = rows(("a", 3.0, "x", 1))
    moved = ptk.exact([*base, *rows((city, age, user, click))])["cells"] - ptk.exact(base)["cells"]
    sizes = [2 * (WIDE.width + 1), 2] if wide else [8, 8, 24, 24]
    for table in np.split(moved, np.cumsum(sizes)[:-1]):
        assert table.min() >= 0
        assert table.sum() == (1 if click in (0, 1) else 0)


@pytest.mark.parametrize("records", [1, 5])
def test_the_price_is_exactly_epsilon(records: int) -> None:
    plain = make(keys=(CITY, AGE))
    cost = plain.cost("0.3", records_per_unit=records)
    assert cost == DiscreteLaplaceCost(scale=2 * records / Fraction("0.3"), sensitivity=2 * records)
    for ptk in (
        plain,
        make(),
        make(weights=(1, 0.3, 7)),
        make(keys=(WIDE,)),
        make(keys=(WIDE, CITY)),
    ):
        assert ptk.cost("0.3", records_per_unit=records).basic() == (Fraction("0.3"), Fraction(0))


def scales_of(ptk: Counts, records: int) -> list[Any]:
    made: Any = ptk._plan(1, 0, records)
    return [one.scale for one in made.releases]


def test_the_budget_is_split_by_weight_and_then_by_row() -> None:
    assert scales_of(make(), 2) == [6, 6, 12]
    assert scales_of(make(weights=(2, 1, 1)), 1) == [2, 4, 8]
    # The class totals have a tenth of the weight of a key.
    assert scales_of(make(keys=(WIDE,)), 1) == [Fraction(11, 10), 11]
    assert scales_of(make(keys=(WIDE, CITY)), 1) == [2, 2]


@pytest.mark.parametrize("options", [{}, {"weights": (1, 0.3, 7)}, {"keys": (WIDE,)}])
def test_gaussian_tables_spend_no_more_than_the_price(options: dict[str, Any]) -> None:
    ptk = make(mechanism="gaussian", **options)
    cost = ptk.cost(1, "1e-6", records_per_unit=3)
    assert isinstance(cost, GaussianCost)
    assert 0.999 < cost.epsilon("1e-6") <= 1
    made: Any = ptk._plan(1, "1e-6", 3)
    spent = [(Fraction(3) / one.sigma) ** 2 for one in made.releases]
    tables = [table.rows for table in ptk._tables] + [1] * (len(spent) - len(ptk._tables))
    total = sum(mu * number for mu, number in zip(spent, tables, strict=True))
    assert cost.mu_squared() * (1 - Fraction(1, 10**9)) < total <= cost.mu_squared()
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        ptk.cost(1)
    assert ptk.tags.needs_delta
    assert not make().tags.needs_delta


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_every_cell_has_noise_of_the_stated_scale(mechanism: Any, bits: Any) -> None:
    """The first key, the second with a third of the weight, and the totals, each by itself; and
    what the state says of it.
    """
    keys = (Hashed(column="user", width=49_999), Hashed(column="other", width=49_999))
    ptk = make(keys=keys, mechanism=mechanism, weights=(3, 1), cell_bits=bits)
    delta = 0 if mechanism == "laplace" else "1e-6"
    releases = ptk._plan("0.5", delta, 2).releases
    law: Any = discrete_laplace_cdf if mechanism == "laplace" else rounded_gaussian_cdf
    for place, release in enumerate(releases[:2]):
        part = slice(place * 100_000, (place + 1) * 100_000)
        scale = float(getattr(release, "scale" if mechanism == "laplace" else "sigma"))
        runs: list[Any] = []

        def draw(count: int, part: slice = part, runs: list[Any] = runs) -> Any:
            runs.append(ptk.train_dp([], epsilon="0.5", delta=delta, records_per_unit=2))
            return runs[-1]["cells"][part][:count].astype(np.int64)

        check_scale(draw, law, scale, count=100_000)
        assert runs[0]["cells"][part].var() == pytest.approx(runs[0]["variances"][place], rel=0.05)
    totals = np.array(
        [ptk.train_dp([], epsilon="0.5", delta=delta)["cells"][-2:] for _ in range(8)]
    )
    assert len(np.unique(totals)) > 8
    assert ptk.exact([])["cells"].shape == (200_002,)


def test_windows_add_up_and_get_better() -> None:
    generator = np.random.default_rng(3)
    ptk = make(keys=(CITY,), statistics=("probability",))
    truth = {"a": 0.2, "b": 0.5, "c": 0.9}
    table = pa.table({"city": list(truth)})
    errors = []
    for _ in range(20):
        arrays, found = None, []
        for _ in range(16):
            cities = generator.choice(list(truth), 60)
            clicks = (generator.random(60) < [truth[one] for one in cities]).astype(np.int64)
            batch = pa.RecordBatch.from_pydict({"city": cities, "click": clicks})
            arrays = ptk.train_dp([batch], epsilon="0.3", previous=arrays)
            made = ptk.features(arrays, table)["city_probability_1"].to_numpy()
            found.append(np.abs(made - list(truth.values())).mean())
        errors.append(found)
        assert arrays is not None
        assert arrays["windows"].tolist() == [16]
        assert arrays["variances"] == pytest.approx([16 * ptk._plan("0.3", 0, 1).variances[0]])
    first, last = np.mean(errors, axis=0)[[0, -1]]
    assert last < first / 2


def test_previous_cells_are_added_and_stop_at_the_limit() -> None:
    for bits, limit in ((32, TOP_32), (64, 2**60)):
        ptk = make(keys=(CITY,), cell_bits=bits)
        before = state(ptk, [limit, -limit, 5, 0, 0, 0, 0, 0])
        batch = rows(*[("a", 1.0, "x", 0)] * 40, *[("b", 1.0, "x", 0)] * 3)
        found = ptk.train_dp(batch, epsilon=100, previous=before)["cells"]
        assert found[0] == limit
        assert found[1] == -limit
        assert found[2] == 8
        assert before["cells"][2] == 5


@pytest.mark.parametrize("count", [9, 900])
def test_cells_of_32_bits_stop_instead_of_wrapping_around_in_one_window(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    # As after two thousand million records: few of them here go one by one, many through a table of
    # their own.
    ptk = make(keys=(CITY,), cell_bits=32)
    full = np.full(ptk.cells, 2**31 - 4, dtype=np.int32)
    full[2:] = 0
    monkeypatch.setattr(Counts, "_noise", lambda *_: full.copy())
    found = ptk.train_dp(rows(*[("a", 1.0, "x", 0)] * count, ("b", 1.0, "x", 0)), epsilon=1)[
        "cells"
    ]
    assert found.tolist() == [TOP_32, TOP_32, 1, 0, 0, 0, 0, 0]


def test_cells_of_32_bits_are_held_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptklib.ptks.counts.ptk.STRETCH", 100)
    ptk = make(keys=(CITY,), cell_bits=32)
    monkeypatch.setattr(
        Counts, "_noise", lambda *_: np.full(ptk.cells, TOP_32 - 250, dtype=np.int32)
    )
    batches = rows(*[("a", 1.0, "x", 0)] * 100) * 5
    assert ptk.train_dp(batches, epsilon=1)["cells"][:2].tolist() == [TOP_32, TOP_32 - 250]


def test_exact_probabilities_are_plain_shares_and_counts_plain_counts() -> None:
    ptk = make(keys=(CITY,), label=Categories(column="click", values=(0, 1, 5)))
    arrays = ptk.exact(
        rows(*[("a", 1.0, "x", 0)] * 3, ("a", 1.0, "x", 5), ("b", 1.0, "x", 1), ("z", 1.0, "x", 5))
    )
    one, two, three, other = ptk.features(
        arrays, pa.table({"city": ["a", "b", "c", None]})
    ).to_pylist()
    assert [one[f"city_count_{name}"] for name in (0, 1, 5)] == [3, 0, 1]
    assert [one[f"city_probability_{name}"] for name in (0, 1, 5)] == [0.75, 0, 0.25]
    assert two["city_probability_1"] == 1
    # Never seen: the prior. Null and outside the domain are one value, which was seen.
    assert [three[f"city_probability_{name}"] for name in (0, 1, 5)] == pytest.approx(
        [0.5, 1 / 6, 1 / 3]
    )
    assert other["city_probability_5"] == 1
    assert [three["city_count_0"], other["city_count_5"]] == [0, 1]


def test_a_rare_value_falls_back_to_the_prior_as_its_noise_says() -> None:
    """The formula of the module, by hand; more noise, more prior."""
    ptk = make(keys=(CITY,), statistics=("probability",))
    cells = [900, 100, 30, 10, 0, 0, -4, -2]
    prior = 108 / 1034
    rooms = 2 * prior * (1 - prior)
    found = []
    for variance in (0.0, 8.0, 800.0):
        made = ptk.features(state(ptk, cells, variance), pa.table({"city": ["a", "b", "c", "?"]}))
        values = made["city_probability_1"].to_numpy()
        noise = variance * 2 * (prior**2 + (1 - prior) ** 2)
        shares = np.array([1 - prior, prior])
        lines = np.array(cells, float).reshape(4, 2)
        trust = estimate.spread_weights(lines, shares, variance)
        assert trust.sum() == pytest.approx(1)
        weight = np.sum(trust * 40**2 / (40**2 + noise / (estimate.SPREADS * rooms)))
        pulled = prior + weight * (10 / 40 - prior)
        exact = estimate.untouched(lines, variance)[40]
        assert values[1] == pytest.approx(pulled + exact * (10 / 40 - pulled))
        # An empty cell and one below zero have the prior.
        assert values[2:] == pytest.approx([prior, prior])
        found.append(values[1])
    assert found[0] == pytest.approx(0.25)
    assert found[0] > found[1] > found[2] > prior


def test_a_cell_below_zero_counts_as_none_in_a_single_row() -> None:
    """A line of -4 and 2 is read as 0 and 2; in rows of a hash, by its sum."""
    lines, prior = np.array([[0.0, 2.0], [-4.0, 2.0], [-9.0, 2.0]]), np.array([0.9, 0.1])
    weights = np.asarray(estimate.SPREADS[4] == estimate.SPREADS, dtype=np.float64)
    single = estimate.probabilities(lines, prior, 8.0, weights, np.zeros(9))
    assert single[0, 1] > 0.11
    assert np.ptp(single, axis=0).max() == 0
    several = estimate.probabilities(lines, prior, 8.0, weights)
    assert several[1:, 1].tolist() == pytest.approx([0.1, 0.1])
    # Where noise is as good as nothing, with the plain shares.
    sure = estimate.probabilities(lines, prior, 8.0, weights, np.ones(9))
    assert sure[:, 1].tolist() == [1, 1, 1]


def test_pure_noise_is_nearly_the_prior_and_hardly_a_count() -> None:
    """Cutting at zero would give each empty cell a third of the noise, and probabilities of 0 or
    1.
    """
    ptk = make(keys=(Hashed(column="user", width=20_000),))
    batch = rows(*[("a", 1.0, f"u{place % 4}", int(place % 10 == 0)) for place in range(20_000)])
    arrays = ptk.train_dp(batch, epsilon=1)
    unseen = ptk.features(arrays, pa.table({"user": [f"other-{place}" for place in range(5000)]}))
    probability, count = unseen["user_probability_1"].to_numpy(), unseen["user_count_1"].to_numpy()
    # Four values whose probabilities differ by a ninth of the most that they could.
    assert np.abs(probability - 0.1).mean() < 0.02
    assert probability.min() >= 0
    assert count.min() >= 0
    cut = np.maximum(arrays["cells"][1:-2:2], 0)
    assert count.mean() < 0.65 * cut.mean()
    seen = ptk.features(arrays, pa.table({"user": ["u0", "u1"]}))
    # u0 and u2 are clicked on: every tenth place is even.
    assert seen["user_probability_1"].to_numpy() == pytest.approx([0.2, 0], abs=0.01)
    assert seen["user_count_0"].to_numpy() == pytest.approx([4000, 5000], abs=30)


def test_rows_are_combined_by_their_median() -> None:
    key = Hashed(column="user", width=4, rows=3)
    ptk = make(keys=(key,), statistics=("count",))
    places = [row[0] for row in key.row_codes(pa.array(["me"]))]
    cells = np.zeros((3, 5, 2), np.int64)
    for row, value in enumerate((7, 1000, 9)):
        cells[row, places[row], 1] = value
    made = ptk.features(state(ptk, cells.ravel()), pa.table({"user": ["me"]}))
    assert made["user_count_1"].to_pylist() == [9]


def test_few_rows_and_many_rows_have_the_same_features() -> None:
    """Large frames look all lines up once, small ones only their own."""
    ptk = make(
        keys=(
            CITY,
            Hashed(column="user", width=300),
            USER.__class__(column="age", width=40, rows=3),
        )
    )
    table = pa.table(
        {
            "city": [*"abcd"] * 30_000,
            "user": [f"u{place % 77}" for place in range(120_000)],
            "age": np.arange(120_000) % 50,
        }
    )
    batch = table.append_column("click", pa.array(np.arange(120_000) % 2))
    arrays = ptk.train_dp(batch.to_batches(), epsilon=1)
    whole = ptk.features(arrays, table)
    for start in (0, 5, 100_000):
        assert ptk.features(arrays, table.slice(start, 3)).equals(
            whole.slice(start, 3).combine_chunks()
        )


def test_the_loss_is_half_the_brier_score_averaged_over_keys() -> None:
    ptk = make(keys=(CITY, AGE))
    arrays = ptk.exact(rows(("a", 5.0, "x", 0), ("a", 20.0, "x", 1), ("b", 20.0, "x", 1)))
    losses = ptk.loss(
        arrays,
        rows(("a", 20.0, "x", 1), ("b", 5.0, "x", 1), ("a", 5.0, "x", None), ("a", 5.0, "x", 2)),
    )
    # City a: 1/2. Age 20: 1. City b: 1. Age 5: 0, so the score of a one is 1.
    assert losses == pytest.approx([(0.25 + 0) / 2, (0 + 1) / 2, 0, 0])
    assert ptk.tags.exact_minimiser
    assert not make().tags.exact_minimiser


@pytest.mark.parametrize("wide", [False, True])
def test_the_loss_of_wide_and_narrow_tables_agrees(wide: bool) -> None:
    """Those of many lines are read record by record."""
    key = Hashed(column="user", width=40_000 if wide else 64)
    ptk = make(keys=(key,))
    batch = rows(*[("a", 1.0, f"u{place % 9}", place % 2) for place in range(300)])
    arrays = ptk.train_dp(batch, epsilon=1)
    found = ptk.loss(arrays, batch)
    made = ptk.features(arrays, pa.Table.from_batches(batch))["user_probability_1"].to_numpy()
    assert found == pytest.approx(np.square(made - np.arange(300) % 2))


def test_names_say_column_part_statistic_and_class() -> None:
    keys = (CITY, TimePart(column="at", part="hour"), TimePart(column="at", part="weekday"))
    assert make(keys=keys, prefix="x", statistics=("probability",)).feature_names() == tuple(
        f"x_{key}_probability_{one}"
        for key, one in product(("city", "at_hour", "at_weekday"), (0, 1))
    )
    assert make(keys=keys).columns() == ("city", "at", "click")
    assert make(label=Bins(column="click", edges=(0, 0.5, 2))).classes == ("0", "1")
    assert make(label=IntegerRange(column="click", first=-1, last=1)).classes == ("-1", "0", "1")


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("target", [0.02, 0.2])
def test_the_profile_is_kept_and_not_wasteful(mechanism: Any, classes: int, target: float) -> None:
    """The worst shares at the promised number of records: at least 95% keep the target, and fewer
    with much less.
    """
    label = IntegerRange(column="click", first=0, last=classes - 1)
    ptk = make(keys=(CITY, AGE), label=label, mechanism=mechanism, min_share=0.1)
    delta = 0 if mechanism == "laplace" else "1e-6"
    (needed,) = ptk.analytic_profile(target, ["0.5"], delta, records_per_unit=2)
    assert needed is not None
    release: Any = ptk._plan("0.5", delta, 2).releases[0]
    if mechanism == "laplace":
        noise = discrete_laplace((classes, 40_000), release.scale)
    else:
        noise = rounded_gaussian((classes, 40_000), release.sigma)
    kept = []
    for records in (needed, needed * (2 / 3 if classes == 2 else 1 / 2)):
        shares = []
        for share in (0.0, 0.5, 1 - target, 1.0):
            truth = np.array([share, *[(1 - share) / (classes - 1)] * (classes - 1)])[:, None]
            cells = truth * records * 0.1 + noise
            total = cells.sum(axis=0)
            found = np.clip(cells[0] / np.where(total > 0, total, 1), 0, 1)
            shares.append(np.mean((total > 0) & (np.abs(found - share) <= target)))
        kept.append(min(shares))
    assert kept[0] >= 0.95 - 0.004
    assert kept[1] < 0.95


def test_the_profile_of_two_classes_is_that_of_a_mean() -> None:
    for mechanism in ("laplace", "gaussian"):
        for error in (0.01, 0.1):
            found = counts_profile.smallest_count(mechanism, 12.0, 2, error)
            assert found == pytest.approx(smallest_count(mechanism, 12.0, 1.0, error, 1), rel=0.02)


def test_the_profile_takes_the_worst_key_and_says_what_cannot_be_reached() -> None:
    small, large = make(keys=(CITY,)), make(keys=(IntegerRange(column="zone", first=0, last=99),))
    both = make(keys=(CITY, large.keys[0]), weights=(1, 1))
    (few,), (many,) = small.analytic_profile(0.05, [1]), large.analytic_profile(0.05, [1])
    (worst,) = both.analytic_profile(0.05, ["2"])
    assert few is not None
    assert many is not None
    assert few * 100 / 3 == pytest.approx(many, rel=0.01)
    assert worst == many
    assert make().analytic_profile(0.05, ["1e-9"], records_per_unit=1000) == (None,)
    (counts,) = make(keys=(CITY,), statistics=("count",)).analytic_profile(0.01, [1])
    assert counts == smallest_count("laplace", 1.0, 1.0, 0.01, 0)
    with pytest.raises(InvalidInput, match="target must be between 0 and 1"):
        make().analytic_profile(1, [1])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"keys": ()}, "keys must be one or more"),
        ({"label": IntegerRange(column="click", first=0, last=0)}, "label must have two classes"),
        ({"keys": (CLICK,)}, "must not read the label"),
        ({"keys": (CITY, CITY)}, "keys must have different names"),
        ({"statistics": ()}, "statistics must be one or more"),
        ({"statistics": ("count", "count")}, "none of them twice"),
        ({"statistics": ("mean",)}, "must be one of 'count', 'probability'"),
        ({"weights": (1, 2)}, "weights must be 3 numbers"),
        ({"weights": (1, 2, 0)}, "weights must be 3 numbers"),
        ({"min_share": 0}, "min_share must be above 0"),
        ({"mechanism": "uniform"}, "must be one of 'laplace', 'gaussian'"),
        ({"cell_bits": 16}, "must be one of 32, 64"),
        ({"label": USER}, "Counts.label must be"),
        (
            {"keys": tuple(Hashed(column=f"c{one}", width=2**22) for one in range(600))},
            "cells in all",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make(**wrong)


def test_noise_too_large_for_32_bits_is_refused_before_the_data() -> None:
    with pytest.raises(InvalidInput, match="SCALE_TOO_LARGE"):
        make(cell_bits=32).cost("1e-7")
    make(cell_bits=64).cost("1e-7")


def test_a_state_of_another_configuration_is_refused() -> None:
    arrays = make().exact([])
    for other in (
        make(keys=(CITY,)),
        make(cell_bits=32),
        make(label=IntegerRange(column="click", first=0, last=2)),
    ):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            other.validate(arrays)
    for wrong in ({"windows": np.zeros(1, np.int64)}, {"variances": -np.ones(3)}):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            make().validate({**arrays, **wrong})


def test_a_wrong_type_is_refused_by_type_alone() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"city": ["a"], "age": ["secret"], "user": ["u"], "click": [1]}
    )
    with pytest.raises(InvalidInput, match="COLUMN_TYPE") as caught:
        make().train_dp([batch], epsilon=1)
    assert "secret" not in str(caught.value)


def test_config_round_trips_and_has_a_schema() -> None:
    ptk = make(weights=(1, 2, 3), cell_bits=32)
    assert Counts.from_json(ptk.as_json()) == ptk
    assert Counts.json_schema()["required"] == ["keys", "label"]
