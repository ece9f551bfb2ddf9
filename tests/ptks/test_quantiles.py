"""The Quantiles PTK: exact counts, the sensitivity it claims, the price it pays, and the rules it
states.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.columns.keys import Bins, IntegerRange
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost, DiscreteLaplaceCost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptks.quantiles import Quantiles
from ptklib.ptks.quantiles import ptk as quantiles_module
from ptklib.ptks.quantiles.tree import Tree, default_branching, spread, tails
from ptklib.ptks.tables.fewest import fewest
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.distributions import check_scale, discrete_laplace_cdf
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk

ZONES = IntegerRange(column="zone", first=0, last=2)


def make(**options: Any) -> Quantiles:
    given: dict[str, Any] = {
        "keys": (ZONES,),
        "value": "fare",
        "quantiles": (0.1, 0.5, 0.9),
        "prefix": "",
        **options,
    }
    if "edges" not in options:
        given = {"lower": 0, "upper": 100, **given}
    return Quantiles(**given)


def rows(*records: tuple[int | None, float | None]) -> list[pa.RecordBatch]:
    zones = pa.array([one for one, _ in records], pa.int64())
    return [
        pa.RecordBatch.from_pydict(
            {"zone": zones, "fare": pa.array([one for _, one in records], pa.float64())}
        )
    ]


def rides(count: int, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    zone = generator.integers(0, 3, count)
    return pa.table({"zone": zone, "fare": np.minimum(generator.gamma(2, 6 + 4 * zone), 99.9)})


def read(ptk: Quantiles, arrays: Any, zones: list[int | None]) -> np.ndarray[Any, Any]:
    made = ptk.features(arrays, pa.table({"zone": pa.array(zones, pa.int64())}))
    return np.array([column.to_numpy() for column in made.columns]).T


def test_exact_counts_give_the_plain_quantiles_to_a_bin() -> None:
    table = rides(20_000)
    for options in (
        {},
        {"bins": 33},
        {"bins": 600, "branching": 7},
        {"edges": tuple(np.geomspace(1, 101, 200) - 1)},
    ):
        ptk = make(**options)
        found = read(ptk, ptk.exact(table.to_batches(max_chunksize=3001)), [0, 1, 2])
        for zone in range(3):
            fares = table["fare"].to_numpy()[table["zone"].to_numpy() == zone]
            wanted = np.quantile(fares, ptk.quantiles)
            width = np.interp(wanted, ptk._edges[:-1], np.diff(ptk._edges)) * 1.1
            assert np.all(np.abs(found[zone] - wanted) <= width)


def test_the_tree_has_full_and_short_groups_and_fits_exact_counts_exactly() -> None:
    generator = np.random.default_rng(2)
    for bins, branching in ((2, 2), (7, 7), (10, 3), (256, 16), (257, 4), (1000, 10)):
        tree = Tree(bins, branching)
        counts = generator.integers(0, 50, (3, bins))
        nodes = tree.counts(counts)
        assert nodes.shape == (3, tree.nodes)
        assert np.all(np.add.reduce(nodes, axis=1) == tree.levels * counts.sum(axis=1))
        assert tree.sizes[-1] <= branching
        assert np.allclose(tree.fitted(nodes), counts)


def test_the_fit_is_least_squares() -> None:
    for bins, branching in ((10, 3), (16, 4), (9, 2)):
        tree = Tree(bins, branching)
        design = tree.counts(np.eye(bins, dtype=np.int64)).T
        nodes = np.random.default_rng(3).normal(0, 10, (4, tree.nodes))
        wanted = np.linalg.lstsq(design.astype(float), nodes.T, rcond=None)[0].T
        assert np.allclose(tree.fitted(nodes), wanted)


@pytest.mark.parametrize(
    ("mechanism", "bins", "rivals"),
    [("laplace", 256, (2, 4, 64, 256)), ("gaussian", 256, (16, 256))],
)
def test_the_default_branching_has_less_error_than_others(
    mechanism: str, bins: int, rivals: tuple[int, ...]
) -> None:
    def error(branching: int) -> float:
        tree = Tree(bins, branching)
        reach = tree.levels**2 if mechanism == "laplace" else tree.levels
        return reach * float(
            np.mean([spread(tree, share)[0][int(share * bins)] for share in (0.1, 0.25, 0.5, 0.75)])
        )

    best = error(default_branching(mechanism, bins))
    assert all(best < error(one) for one in rivals)


def test_a_record_without_key_or_value_contributes_nothing() -> None:
    ptk = make()
    good = rows((0, 1.0), (2, 5.0))
    bad = rows((None, 1.0), (3, 1.0), (-1, 1.0), (0, None), (1, math.nan), (None, None))
    assert np.array_equal(ptk.exact([*good, *bad])["totals"], ptk.exact(good)["totals"])
    assert ptk.loss(ptk.exact(good), bad).tolist() == [0.0] * 6


@pytest.mark.parametrize("edges", [None, (0.0, 1.0, 10.0, 100.0)])
def test_values_beyond_the_grid_count_at_its_ends(edges: Any) -> None:
    ptk = make(**({} if edges is None else {"edges": edges}))
    inside = ptk.exact(rows((0, 0.0), (1, 100.0), (1, 99.9999), (2, 100.0)))["totals"]
    outside = ptk.exact(rows((0, -1e300), (1, 1.7e308), (1, math.inf), (2, 101.0)))["totals"]
    assert np.array_equal(inside, outside)


def test_whole_numbers_and_nulls_are_read_too() -> None:
    ptk = make()
    values = pa.array([3, None, 70], pa.int32())
    batch = pa.RecordBatch.from_pydict({"zone": [0, 0, 1], "fare": values})
    assert np.array_equal(
        ptk.exact([batch])["totals"], ptk.exact(rows((0, 3.0), (1, 70.0)))["totals"]
    )
    with pytest.raises(InvalidInput, match="COLUMN_TYPE"):
        ptk.exact([pa.RecordBatch.from_pydict({"zone": [0], "fare": ["secret"]})])


def test_unknown_keys_and_empty_cells_get_the_quantiles_of_all() -> None:
    ptk = make(bins=100)
    found = read(ptk, ptk.exact(rows(*[(0, float(one)) for one in range(100)])), [0, 1, 9, None])
    assert np.allclose(found, [[10, 50, 90]] * 4)
    assert np.allclose(read(ptk, ptk.exact([]), [0]), [[10, 50, 90]])


def test_noise_never_takes_quantiles_out_of_the_grid_or_out_of_order() -> None:
    ptk = make()
    for epsilon in ("0.001", "0.1", "1"):
        found = read(ptk, ptk.train_dp(rides(100).to_batches(), epsilon=epsilon), [0, 1, 2, 3])
        assert np.all((found >= 0) & (found <= 100))
        assert np.all(np.diff(found, axis=1) >= 0)


def test_sums_that_fall_are_sorted_before_they_are_read() -> None:
    """Bins of 10, -4, 6 and 8: sums 0, 10, 6, 12, 20, sorted 0, 6, 10, 12, 20."""
    ptk = make(
        keys=(IntegerRange(column="zone", first=0, last=0),),
        bins=4,
        upper=4,
        quantiles=(0.25, 0.5, 0.9),
    )
    arrays = {"totals": np.array([[10, -4, 6, 8]]), "windows": np.ones(1, np.int64)}
    assert np.allclose(read(ptk, arrays, [0]), [[5 / 6, 2, 3.75]])


@settings(max_examples=60, deadline=None)
@given(
    zone=st.integers(-2, 5),
    fare=st.floats(allow_nan=True, allow_infinity=True),
    shape=st.sampled_from([2, 40, 257]),
)
def test_a_record_moves_one_node_of_each_level_or_none(zone: int, fare: float, shape: int) -> None:
    ptk = make(bins=shape)
    base = rows((0, 3.0), (2, 50.0))
    moved = ptk.exact([*base, *rows((zone, fare))])["totals"] - ptk.exact(base)["totals"]
    known = 0 <= zone <= 2 and not math.isnan(fare)
    assert np.all((moved == 0) | (moved == 1))
    assert moved.sum() == (ptk._tree.levels if known else 0)


@pytest.mark.parametrize(("bins", "levels"), [(40, 1), (256, 2), (2000, 3)])
@pytest.mark.parametrize("records", [1, 5])
def test_the_price_is_one_release_and_exactly_epsilon(bins: int, levels: int, records: int) -> None:
    cost = make(bins=bins, quantiles=(0.01, 0.5, 0.6, 0.7)).cost("0.3", records_per_unit=records)
    assert cost == DiscreteLaplaceCost(
        scale=records * levels / Fraction("0.3"), sensitivity=records * levels
    )
    assert cost.basic() == (Fraction("0.3"), Fraction(0))


def test_gaussian_noise_is_calibrated_to_the_root_of_the_levels() -> None:
    ptk = make(mechanism="gaussian")
    assert ptk._tree.levels == 4
    cost: Any = ptk.cost(1, 1e-6, records_per_unit=3)
    assert cost.sensitivity == 6
    assert 0.999 < cost.epsilon(1e-6) <= 1
    odd: Any = make(mechanism="gaussian", bins=8, branching=2).cost(1, 1e-6)
    assert 3 < odd.sensitivity**2 < 3 + Fraction(1, 10**5)
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        ptk.cost(1)


def test_every_node_has_noise_of_the_stated_scale() -> None:
    ptk = make(keys=(IntegerRange(column="zone", first=0, last=399),))
    check_scale(
        lambda count: ptk.train_dp([], epsilon="0.2", records_per_unit=2)["totals"].ravel()[:count],
        discrete_laplace_cdf,
        20,
        count=100_000,
    )


def test_windows_add_up_and_more_of_them_are_better() -> None:
    ptk = make()
    exact = read(ptk, ptk.exact(rides(40_000, seed=9).to_batches()), [0, 1, 2])
    errors = []
    with planted_noise():
        source = SeededSource(5)
        state = None
        for window in range(16):
            state = ptk.train_dp(
                rides(2000, seed=window).to_batches(), epsilon="0.2", previous=state, noise=source
            )
            errors.append(float(np.abs(read(ptk, state, [0, 1, 2]) - exact).mean()))
    assert state is not None
    assert state["windows"].tolist() == [16]
    assert np.mean(errors[-4:]) < 0.6 * np.mean(errors[:2])


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_profile_is_kept(mechanism: Any) -> None:
    """A key with the promised number of records: every quantile within the target, nearly always,
    whatever the values.
    """
    ptk = make(
        keys=(IntegerRange(column="zone", first=0, last=199),),
        mechanism=mechanism,
        bins=64,
        min_share=1,
    )
    delta = 0 if mechanism == "laplace" else "1e-6"
    target = 0.1
    (needed,) = ptk.analytic_profile(target, ["1"], delta)
    assert needed is not None
    generator = np.random.default_rng(7)
    bins = np.minimum(generator.gamma(2, 8, needed).astype(int), 63)
    counts = np.bincount(bins, minlength=64)
    hundredths = 100 / 64 * (bins + generator.uniform(0, 1, needed))
    table = pa.table({"zone": np.repeat(np.arange(200), needed), "fare": np.tile(hundredths, 200)})
    found = (
        read(ptk, ptk.train_dp(table.to_batches(), epsilon=1, delta=delta), list(range(200)))
        * 64
        / 100
    )
    below = np.interp(found, np.arange(65), np.append(0, np.cumsum(counts)) / needed)
    errors = np.abs(below - ptk.quantiles).max(axis=1)
    assert np.mean(errors <= target) >= 0.95
    # Not absurdly wasteful: a bound for all edges at once, up to a factor of four here.
    assert np.quantile(errors, 0.95) > target / 4


def test_the_profile_says_what_cannot_be_reached() -> None:
    assert make().analytic_profile(0.05, ["1e-12", "1"], records_per_unit=1000)[0] is None
    with pytest.raises(InvalidInput, match="target must be between 0 and 1"):
        make().analytic_profile(0, ["1"])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"keys": ()}, "keys must be one or more"),
        ({"quantiles": ()}, "quantiles must be one or more"),
        ({"quantiles": (0.5, 0.5)}, "rising"),
        ({"quantiles": (0.0, 0.5)}, "between 0 and 1"),
        ({"quantiles": (0.5, 0.50000001)}, "six digits"),
        ({"lower": None}, "lower and upper must be given"),
        ({"lower": 100}, "lower must be less than upper"),
        ({"lower": -1e308, "upper": 1e308}, "lower must be less than upper"),
        ({"bins": 1}, "bins must be 2 to 4096"),
        ({"bins": 5000}, "bins must be 2 to 4096"),
        ({"edges": (0.0, 1.0, 1.0)}, "edges must rise"),
        ({"edges": (0.0, 1.0, 1e101)}, r"within 1e\+100"),
        ({"edges": (0.0, 1.0)}, "edges must be 3 to 4097"),
        ({"edges": (0.0, 1.0, 2.0), "lower": 0}, "must be left out"),
        ({"branching": 1}, "branching must be at least 2"),
        ({"min_share": 0}, "min_share must be above 0"),
        (
            {"keys": (IntegerRange(column="zone", first=0, last=20_000),)},
            "at most 15420 cells of 272 numbers",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make(**wrong)


def test_a_state_of_another_configuration_is_refused() -> None:
    arrays = make().exact([])
    for other in (
        make(bins=128),
        make(branching=8),
        make(keys=(ZONES, IntegerRange(column="hour", first=0, last=2))),
    ):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            other.validate(arrays)
    with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
        make().validate({**arrays, "windows": np.zeros(1, np.int64)})


def test_feature_names_say_the_percent() -> None:
    ptk = make(quantiles=(0.005, 0.5, 0.999), prefix=None)
    assert ptk.feature_names() == ("zone_fare_q0_5", "zone_fare_q50", "zone_fare_q99_9")


class HalfNoise(Quantiles):
    """Half of the noise that it is charged for."""

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        price: Cost = super()._plan(epsilon, delta, records_per_unit).cost
        return price

    def _plan(self, epsilon: Number, delta: Number, records_per_unit: int) -> LaplaceRelease:
        made = super()._plan(epsilon, delta, records_per_unit)
        assert isinstance(made, LaplaceRelease)
        return LaplaceRelease(epsilon=2 * made.epsilon, sensitivity=made.sensitivity)


@pytest.mark.parametrize(
    "ptk",
    [
        make(bins=16, branching=4, keys=(IntegerRange(column="zone", first=0, last=1),)),
        make(
            edges=(0.0, 1.0, 5.0, 20.0),
            quantiles=(0.5,),
            keys=(Bins(column="age", edges=(0, 18, 99)),),
        ),
        make(bins=8, branching=2, mechanism="gaussian"),
    ],
    ids=["tree", "edges", "gaussian"],
)
def test_it_keeps_the_contract(ptk: Quantiles) -> None:
    report = check_ptk(ptk)
    assert not [one for one in report.outcomes if one.problem or one.skipped]


@pytest.mark.parametrize(("kind", "caught"), [(Quantiles, False), (HalfNoise, True)])
def test_an_audit_over_all_levels(kind: type[Quantiles], caught: bool) -> None:
    """One record more moves a node of both levels: their sum tells all that the release tells. 2000
    keys are 2000 runs.
    """
    runs = 2000
    keys = (IntegerRange(column="zone", first=0, last=runs - 1),)
    ptk = kind(keys=keys, value="fare", quantiles=(0.5,), lower=0, upper=16, bins=16, branching=4)
    batches = [pa.RecordBatch.from_pydict({"zone": np.arange(runs), "fare": np.full(runs, 5.5)})]

    def trained(data: list[pa.RecordBatch], count: int) -> np.ndarray[Any, Any]:
        found = [ptk.train_dp(data, epsilon=1)["totals"] for _ in range(count // runs)]
        totals = np.concatenate(found)[:, [5, 16 + 1]]
        return np.asarray(np.clip(totals, 0, 1).sum(axis=1))

    result = audit_epsilon(trained, [], batches, count=60_000, confidence=0.999999)
    assert result.contradicts(1.0) is caught
    assert result.lower_bound > 0.6


@pytest.mark.parametrize(
    ("bins", "branching"), [(1, 2), (5, 5), (7, 2), (16, 4), (30, 4), (64, 8), (65, 8), (100, 5)]
)
def test_noise_by_blocks_is_the_noise_of_all_nodes(bins: int, branching: int) -> None:
    tree = Tree(bins, branching)
    for share in (0.0, 0.1, 0.5, 0.93, 1.0):
        below = np.cumsum(tree.fitted(np.eye(tree.nodes)), axis=1)
        weights = np.abs(np.insert(below, 0, 0.0, axis=1) - share * below[:, -1:])
        squares, largest, sizes = spread(tree, share)
        np.testing.assert_allclose(squares, np.square(weights).sum(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(largest, weights.max(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(sizes, weights.sum(axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_profile_on_the_largest_grid_takes_few_looks(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    real = tails

    def counted(*arguments: Any) -> Any:
        looks.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(quantiles_module, "tails", counted)
    made = Quantiles(
        keys=(IntegerRange(column="k", first=0, last=9),),
        value="v",
        quantiles=tuple(0.05 * k for k in range(1, 20)),
        lower=0.0,
        upper=1.0,
        bins=quantiles_module.MAX_BINS,
        mechanism=mechanism,  # type: ignore[arg-type]
    )
    found = made.analytic_profile(
        0.05, ["0.1", "0.2", "0.5", "1", "2"], 1e-7 if mechanism == "gaussian" else 0
    )
    assert None not in found
    # Two kinds of noise in every look; halving from the largest number on took fifty looks for
    # every level.
    assert len(looks) / 2 < 100


@given(st.integers(1, 10**9), st.floats(0.5, 3e9))
def test_the_fewest_is_found_from_any_guess(wanted: int, near: float) -> None:
    looks = []

    def excess(count: int) -> float:
        looks.append(count)
        return wanted / count

    assert fewest(excess, near, 10**15) == wanted
    assert len(looks) < 80
    assert fewest(excess, near, wanted - 1 or 1) == (1 if wanted == 1 else None)
