"""The Clusters PTK: exact sums and grids, the sensitivity it claims, the price, its rules, and what
it finds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import DiscreteLaplaceCost, PureCost
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.clusters import lloyd as clusters_lloyd
from ptklib.ptks.clusters import ptk as clusters
from ptklib.ptks.clusters.budget import ClusterReleases, shares_of
from ptklib.ptks.clusters.grid import Grid, _halved
from ptklib.ptks.clusters.lloyd import Records
from ptklib.ptks.clusters.noise import CubeRelease
from ptklib.ptks.vectors import STEPS, Bounded, space_of
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk

Table = dict[str, Any]


def values(size: int) -> tuple[Bounded, ...]:
    return tuple(Bounded(column=f"x{place}", lower=-1, upper=1) for place in range(size))


def table_of(points: Any) -> pa.Table:
    return pa.table(
        {
            f"x{place}": np.ascontiguousarray(column)
            for place, column in enumerate(np.asarray(points, float).T)
        }
    )


def clouds(rows: int, size: int, count: int, seed: int = 0) -> Any:
    generator = np.random.default_rng(99)
    middles = generator.uniform(-0.8, 0.8, (count, size))
    generator = np.random.default_rng(seed)
    return np.clip(
        middles[generator.integers(0, count, rows)] + generator.normal(0, 0.05, (rows, size)), -1, 1
    )


def planned(ptk: Clusters) -> ClusterReleases:
    return ptk._plan(1, "1e-6", 1)


def inertia(points: Any, centres: Any) -> float:
    return float(np.square(points[:, None] - centres[None]).sum(axis=2).min(axis=1).mean())


def test_the_method_follows_from_the_number_of_columns() -> None:
    assert [
        Clusters(values=values(size), clusters=3).tags.mergeable for size in (1, 2, 3, 4, 8)
    ] == [True] * 3 + [False] * 2
    assert Clusters(values=values(4), clusters=3, method="grid").tags.mergeable
    assert not Clusters(values=values(2), clusters=3, method="lloyd").tags.mergeable


@pytest.mark.parametrize("rows", [1, 700])
def test_sums_of_the_nearest_records_are_the_plain_ones(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters_lloyd, "_MAX_ROWS", 300)
    generator = np.random.default_rng(1)
    points = generator.integers(-STEPS, STEPS + 1, (rows, 3))
    centres = generator.integers(-STEPS, STEPS + 1, (7, 3))
    # Two centres that are equal, and points that are as near to one as to another.
    centres[5] = centres[2]
    points[: rows // 2] = np.rint((centres[0] + centres[1]) / 2)
    space = space_of(values(3))
    records = Records.read(space.pieces(table_of(points / STEPS)), 3)
    nearest = [
        min(range(7), key=lambda j: (int(np.square(u - centres[j]).sum()), j)) for u in points
    ]
    wanted = [
        [nearest.count(j), *(int(points[np.array(nearest) == j, c].sum()) for c in range(3))]
        for j in range(7)
    ]
    assert records.sums(centres).tolist() == wanted


def test_missing_records_are_in_no_cluster_and_in_no_node() -> None:
    bad = pa.table({"x0": [None, 0.5, 0.5], "x1": [0.5, math.nan, 0.25]})
    space = space_of(values(2))
    assert Records.read(space.pieces(bad), 2).sums(np.zeros((2, 2), np.int64)).tolist() == [
        [1, 512, 256],
        [0, 0, 0],
    ]
    grid = Grid(2, 3)
    assert grid.totals(space.pieces(bad)).sum() == grid.weight
    for ptk in (
        Clusters(values=values(2), clusters=2),
        Clusters(values=values(2), clusters=2, method="lloyd"),
    ):
        assert ptk.loss(ptk.train_dp([], epsilon=1), bad.to_batches())[:2].tolist() == [0, 0]


@pytest.mark.parametrize(("size", "nodes"), [(1, 9), (2, 5), (3, 3), (4, 3)])
def test_a_record_spreads_one_weight_over_the_corners_of_its_cell(size: int, nodes: int) -> None:
    grid, space = Grid(size, nodes), space_of(values(size))
    axis = np.linspace(-1, 1, nodes)
    generator = np.random.default_rng(2)
    for point in [
        *generator.uniform(-1, 1, (20, size)),
        np.ones(size),
        -np.ones(size),
        np.zeros(size),
    ]:
        totals = grid.totals(space.pieces(table_of([point]))).reshape((nodes,) * size)
        assert totals.sum() == grid.weight
        assert totals.min() >= 0
        assert np.count_nonzero(totals) <= 2**size
        # The mean of the corners is the record, to the rounding of its place.
        for place in range(size):
            along = totals.sum(axis=tuple(other for other in range(size) if other != place))
            assert along @ axis / grid.weight == pytest.approx(
                point[place], abs=2 / STEPS + 2 / 64 / (nodes - 1)
            )


def test_a_grid_of_many_records_is_the_sum_of_each() -> None:
    grid, space = Grid(2, 5), space_of(values(2))
    points = np.random.default_rng(3).uniform(-1, 1, (40, 2))
    one_by_one = sum(grid.totals(space.pieces(table_of([point]))) for point in points)
    assert np.array_equal(
        grid.totals(space.pieces(table_of(points).to_batches(max_chunksize=7))), one_by_one
    )


def test_a_coarser_grid_is_what_it_would_have_been() -> None:
    space, points = space_of(values(2)), table_of(np.random.default_rng(4).uniform(-1, 1, (500, 2)))
    fine, coarse = Grid(2, 9), Grid(2, 5)
    field = (fine.totals(space.pieces(points)) / fine.weight).reshape(9, 9)
    wanted = (coarse.totals(space.pieces(points)) / coarse.weight).reshape(5, 5)
    assert _halved(field) == pytest.approx(wanted, abs=1e-9)


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([-1.0, 1.0, 0.0])


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(numbers, numbers),
    st.lists(st.tuples(numbers, numbers), max_size=5),
    st.integers(0, 5),
)
def test_a_record_moves_one_row_within_its_cube(
    record: tuple[float, float], others: list[tuple[float, float]], place: int
) -> None:
    """The claims of the proof note, for a record added anywhere among others."""
    space, grid = space_of(values(2)), Grid(2, 5)
    centres = np.array([[-500, 300], [0, 0], [700, -700]])
    without, within = others, [*others[:place], record, *others[place:]]
    changes: list[Any] = []
    readers: list[Any] = [
        lambda table: Records.read(space.pieces(table), 2).sums(centres),
        lambda table: grid.totals(space.pieces(table)),
    ]
    for read in readers:
        tables = [
            table_of(np.array(rows, dtype=float).reshape(-1, 2)) for rows in (without, within)
        ]
        changes.append(np.asarray(read(tables[1]) - read(tables[0])))
    (cube,) = planned(Clusters(values=values(2), clusters=3, method="lloyd", iterations=1)).first
    assert np.abs(cube.weighted(changes[0])).max(axis=1).sum() in (0, STEPS)
    assert np.abs(changes[1]).sum() in (0, grid.weight)
    gaussian = Clusters(values=values(2), clusters=3, method="lloyd", mechanism="gaussian")
    part = planned(gaussian).first[0]
    assert int(np.square(part.weighted(changes[0])).sum()) <= part.release.sensitivity**2


@pytest.mark.parametrize("records", [1, 5])
def test_the_price_is_epsilon_however_it_is_split(records: int) -> None:
    grid = Clusters(values=values(2), clusters=3)
    weight = records * 64**2
    assert grid.cost("0.3", records_per_unit=records) == DiscreteLaplaceCost(
        scale=weight / Fraction("0.3"), sensitivity=weight
    )
    for iterations in (None, 1, 7):
        ptk = Clusters(values=values(5), clusters=3, iterations=iterations)
        assert ptk.cost("0.3", records_per_unit=records) == PureCost(epsilon=Fraction(3, 10))


@pytest.mark.parametrize("number", [1, 2, 5, 50])
def test_shares_sum_to_one_and_grow(number: int) -> None:
    shares = shares_of(number)
    assert sum(shares) == 1
    assert shares == sorted(shares)
    assert len(shares) == number


def spent(
    ptk: Clusters, monkeypatch: pytest.MonkeyPatch, previous: Any = None, **options: Any
) -> list[Any]:
    """The mechanisms that a training ran, in order."""
    ran: list[Any] = []
    for kind in (CubeRelease, GaussianRelease):
        release = kind.release

        def watched(self: Any, data: Any, *, source: Any = None, release: Any = release) -> Any:
            ran.append(self)
            return release(self, data, source=source)

        monkeypatch.setattr(kind, "release", watched)
    ptk.train_dp(table_of(clouds(200, 5, 3)).to_batches(), epsilon=1, previous=previous, **options)
    return ran


@pytest.mark.parametrize("records", [1, 4])
def test_iterations_spend_what_was_priced_with_and_without_a_last_state(
    records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ptk = Clusters(values=values(5), clusters=3)
    state = ptk.train_dp([], epsilon=1)
    for previous, number in ((None, 5), (state, 2)):
        with monkeypatch.context() as patch:
            ran = spent(ptk, patch, previous, records_per_unit=records)
        assert len(ran) == number
        assert sum(one.epsilon for one in ran) == 1
        assert all((one.sensitivity, one.width) == (records * STEPS, 6) for one in ran)


def test_gaussian_iterations_spend_what_was_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    ptk = Clusters(values=values(5), clusters=3, mechanism="gaussian")
    assert ptk.tags.needs_delta
    cost: Any = ptk.cost(1, "1e-6")
    ran = spent(ptk, monkeypatch, delta="1e-6")
    mu_squared = sum((one.sensitivity / one.sigma) ** 2 for one in ran)
    assert len(ran) == 5
    assert (
        mu_squared
        <= (cost.sensitivity / cost.sigma) ** 2
        <= mu_squared * Fraction(1000001, 1000000)
    )
    assert 0.999 < cost.epsilon("1e-6") <= 1
    assert cost.sensitivity**2 >= planned(ptk).first[0].weight ** 2 + 5 * STEPS**2


@pytest.mark.parametrize("method", ["grid", "lloyd"])
def test_gaussian_noise_needs_a_delta(method: Any) -> None:
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        Clusters(values=values(2), clusters=3, method=method, mechanism="gaussian").cost(1)


@pytest.mark.parametrize(("size", "count"), [(1, 4), (2, 5), (3, 5), (5, 4), (12, 3)])
@pytest.mark.parametrize("mechanism", ["pure", "gaussian"])
def test_clouds_are_found(size: int, count: int, mechanism: Any) -> None:
    points = clouds(8000, size, count)
    ptk = Clusters(values=values(size), clusters=count, mechanism=mechanism)
    delta = 0 if mechanism == "pure" else "1e-6"
    with planted_noise():
        found = [
            inertia(
                points,
                ptk.centres(
                    ptk.train_dp(
                        table_of(points).to_batches(), epsilon=2, delta=delta, noise=SeededSource(s)
                    )
                ),
            )
            for s in range(5)
        ]
    everything = inertia(points, points.mean(axis=0)[None])
    # Without noise and from the best start, 0.05**2 for each column.
    assert np.median(found) < 0.0025 * size + 0.1 * everything
    assert np.min(found) < 0.0025 * size + 0.01 * everything


@pytest.mark.parametrize("size", [2, 6])
def test_windows_improve_the_centres(size: int) -> None:
    ptk = Clusters(values=values(size), clusters=3)
    test = clouds(2000, size, 3, seed=100)
    alone, merged = [], []
    with planted_noise():
        for seed in range(6):
            source, state = SeededSource(seed), None
            for window in range(8):
                batches = table_of(clouds(1500, size, 3, seed=window)).to_batches()
                state = ptk.train_dp(batches, epsilon="0.15", previous=state, noise=source)
                if window == 0:
                    alone.append(inertia(test, ptk.centres(state)))
            assert state is not None
            assert state["windows"].tolist() == [8]
            merged.append(inertia(test, ptk.centres(state)))
    assert np.mean(merged) < 0.7 * np.mean(alone)


@pytest.mark.parametrize("size", [2, 5])
def test_centres_keep_their_places_from_window_to_window(size: int) -> None:
    ptk = Clusters(values=values(size), clusters=3)
    batches = table_of(clouds(5000, size, 3)).to_batches()
    first = ptk.train_dp(batches, epsilon=10)
    turned = {**first, "centres": first["centres"][::-1].copy()}
    if size == 5:
        turned["totals"] = first["totals"][::-1].copy()
    second = ptk.train_dp(batches, epsilon=10, previous=turned)
    assert np.abs(second["centres"] - turned["centres"]).max() < 0.1


def test_centres_are_in_the_order_of_their_counts() -> None:
    points = np.repeat([[0.5, 0.5], [-0.5, 0.5], [0, -0.5]], [200, 3000, 1000], axis=0)
    arrays = Clusters(values=values(2), clusters=3).train_dp(
        table_of(points).to_batches(), epsilon=5
    )
    assert arrays["centres"] == pytest.approx(
        np.array([[-0.5, 0.5], [0, -0.5], [0.5, 0.5]]), abs=0.1
    )


def test_features_are_the_nearest_centre_and_all_distances() -> None:
    ptk = Clusters(
        values=(Bounded(column="x0", lower=0, upper=10), Bounded(column="x1", lower=-2, upper=2)),
        clusters=2,
        prefix="p",
    )
    arrays = {**ptk.train_dp([], epsilon=1), "centres": np.array([[0.0, 0.5], [-1.0, 0.0]])}
    made = ptk.features(
        arrays, pa.table({"x0": [5.0, 0.0, None, 1e9], "x1": [1.0, 0.0, 0.5, math.nan]})
    )
    assert made.column_names == ["p_cluster", "p_distance_0", "p_distance_1"]
    assert made["p_cluster"].to_pylist() == [0, 1, 0, 0]
    assert made["p_distance_0"].to_pylist() == pytest.approx(
        [0, math.hypot(1, 0.5), math.hypot(0.5, 0.25), math.hypot(1, 0.25)]
    )
    assert made["p_distance_1"].to_pylist() == pytest.approx(
        [math.hypot(1, 0.5), 0, math.hypot(0.5, 0.25), math.hypot(2, 0.25)]
    )
    assert ptk.centres(arrays).tolist() == [[5, 1], [0, 0]]
    assert ptk.loss(arrays, table_of([[5, 1], [5, -2]]).to_batches()) == pytest.approx(
        [0, (1 + 1) / 8], abs=1e-3
    )


def test_lost_clusters_are_set_beside_the_largest() -> None:
    centres = np.array([[0.5, 0.5], [-0.9, -0.9], [0.9, -0.9]])
    lost = clusters_lloyd._reseed(
        centres, np.array([1000.0, 1.0, 2.0]), 10.0, np.ones(2), np.random.default_rng(1)
    )
    assert lost == [1, 2]
    assert np.linalg.norm(centres - [0.5, 0.5], axis=1).max() < 0.3
    # Nothing is large enough to be split: all stay.
    kept = clusters_lloyd._reseed(
        centres, np.array([30.0, 1.0, 2.0]), 10.0, np.ones(2), np.random.default_rng(1)
    )
    assert kept == []


class HalfNoise(Clusters):
    """Lays half of the noise that it is priced for."""

    def _plan(self, epsilon: Any, delta: Any, records_per_unit: int) -> ClusterReleases:
        return super()._plan(2 * epsilon, delta, records_per_unit)


def audited(ptk: Clusters) -> float:
    """Add a record in a corner to none.

    With one iteration it moves its cluster's row by the whole cube.
    """
    source = SeededSource(7)
    point = np.ones(len(ptk.values))
    record = table_of([point]).to_batches()
    exact = ptk._grid.totals(ptk._space.pieces(record)) if ptk._on_grid else None

    def runs(batches: Any, count: int) -> Any:
        drawn = []
        for _ in range(count):
            totals = ptk.train_dp(batches, epsilon=2, noise=source)["totals"]
            if exact is not None:
                drawn.append(float((np.abs(totals) - np.abs(totals - exact)).sum()))
            else:
                # The record is in one of the rows: the largest of the likelihood ratios.
                ratios = np.abs(totals).max(axis=1) - np.abs(totals - STEPS).max(axis=1)
                drawn.append(float(ratios.max()))
        return np.array(drawn)

    with planted_noise():
        return audit_epsilon(runs, [], record, count=1200).lower_bound


@pytest.mark.parametrize(
    "config",
    [
        {"values": values(1), "clusters": 2, "nodes": 3},
        {"values": values(1), "clusters": 2, "method": "lloyd", "iterations": 1},
    ],
)
def test_the_audit_accepts_the_noise_and_catches_half_of_it(
    config: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The start is made without data; a fixed one lets the record always be in the same row.
    monkeypatch.setattr(clusters, "spread_start", lambda *_: np.array([[0.9], [-0.9]]))
    monkeypatch.setattr(np, "argsort", lambda order, kind: np.arange(len(order)))
    assert audited(Clusters(**config)) <= 2
    assert audited(HalfNoise(**config)) > 2


@pytest.mark.parametrize(
    "ptk",
    [
        Clusters(values=values(1), clusters=2, nodes=3),
        Clusters(values=values(2), clusters=2, method="lloyd", iterations=2, scaling="common"),
    ],
)
def test_the_contract_is_kept(ptk: Clusters) -> None:
    check_ptk(ptk)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"values": ()}, "values must be 1 to 1024 columns"),
        ({"clusters": 1}, "clusters must be from 2 to 1024"),
        ({"clusters": 1025}, "clusters must be from 2 to 1024"),
        ({"iterations": 3}, "iterations must be left out with the grid"),
        ({"nodes": 4}, "nodes must be a power of two plus one"),
        ({"nodes": 2}, "nodes must be a power of two plus one"),
        ({"nodes": 2049}, "nodes must make a grid of at most"),
        ({"values": values(5), "method": "grid"}, "values must be at most 4 columns for a grid"),
        ({"method": "lloyd", "nodes": 5}, "nodes must be left out with lloyd"),
        ({"method": "lloyd", "iterations": 0}, "iterations must be from 1 to 50"),
        ({"method": "kmeans"}, "must be one of 'auto', 'lloyd', 'grid'"),
        ({"mechanism": "laplace"}, "must be one of 'pure', 'gaussian'"),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: Table, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        Clusters(**{"values": values(2), "clusters": 3, **wrong})
    assert caught.value.reason == "CONFIG_INVALID"


def test_arrays_that_are_no_state_are_refused() -> None:
    for ptk in (Clusters(values=values(2), clusters=3), Clusters(values=values(4), clusters=3)):
        arrays = dict(ptk.train_dp([], epsilon=1))
        for wrong in (
            {"centres": np.full_like(arrays["centres"], 1.5)},
            {"variance": np.array([-1.0])},
            {"totals": np.full_like(arrays["totals"], 2**61)},
            {"windows": np.zeros(1, np.int64)},
        ):
            with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
                ptk.validate({**arrays, **wrong})


def test_a_grid_without_records_still_has_centres() -> None:
    for size, seed in product((1, 2), range(3)):
        ptk = Clusters(values=values(size), clusters=4)
        with planted_noise():
            ptk.validate(ptk.train_dp([], epsilon="0.01", noise=SeededSource(seed)))
