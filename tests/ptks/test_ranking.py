"""Shares, ranks and the top keys: post-processing of noisy totals, as good as what a mechanism for
them alone would give.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.errors import InvalidInput
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.tables.ranking import Ranking, ranks, shares
from ptklib.state import State
from ptklib.testing.ptk_checks import check_ptk

CITIES = Categories(column="city", values=("a", "b", "c", "d"))
RANKED: Any = ("share", "rank", "in_top")


def make(**options: Any) -> Statistics:
    given: dict[str, Any] = {
        "keys": (CITIES,),
        "statistics": RANKED,
        "ranking": Ranking(top=2),
        "prefix": "",
        **options,
    }
    return Statistics(**given)


def by_sum(**options: Any) -> Statistics:
    bounds: dict[str, Any] = {"value": "fare", "lower": 0, "upper": 10, **options}
    return make(ranking=Ranking(top=2, by="sum"), **bounds)


def rides(**counts: int) -> list[pa.RecordBatch]:
    cities = [city for city, count in counts.items() for _ in range(count)]
    fares = [{"a": 1.0, "b": 2.0, "c": 10.0, "d": 0.0}[city] for city in cities]
    return [pa.RecordBatch.from_pydict({"city": cities, "fare": fares})]


def read(ptk: Statistics, arrays: Any) -> list[dict[str, float]]:
    found: list[dict[str, float]] = ptk.features(
        arrays, pa.table({"city": ["a", "b", "c", "d", "x"]})
    ).to_pylist()
    return found


def test_counts_are_ranked_and_shared() -> None:
    found = read(make(), make().exact(rides(a=10, b=30, c=20, d=40)))
    assert [one["share"] for one in found] == pytest.approx([0.1, 0.3, 0.2, 0.4, 0])
    assert [one["rank"] for one in found] == [4, 2, 3, 1, 5]
    assert [one["in_top"] for one in found] == [0, 1, 0, 1, 0]


def test_sums_are_ranked_and_shared() -> None:
    found = read(by_sum(), by_sum().exact(rides(a=10, b=30, c=13, d=40)))
    assert [one["share"] for one in found] == pytest.approx([0.05, 0.3, 0.65, 0, 0], abs=1e-3)
    assert [one["rank"] for one in found] == [3, 2, 1, 4, 5]


def test_sums_with_a_lower_bound_below_zero_have_ranks_and_no_shares() -> None:
    ptk = by_sum(statistics=("rank",), lower=-10)
    assert [one["rank"] for one in read(ptk, ptk.exact(rides(a=10, b=30, c=13, d=40)))] == [
        3,
        2,
        1,
        4,
        5,
    ]
    with pytest.raises(InvalidInput, match="lower must not be negative for a share"):
        by_sum(lower=-10)


def test_ties_go_to_the_earlier_key_and_negative_totals_come_last() -> None:
    assert ranks(np.array([3.0, -7.0, 3.0, 9.0])).tolist() == [2, 4, 3, 1]
    assert shares(np.array([3.0, -1.0, 6.0]), 8.0).tolist() == [0.375, 0, 0.75]
    assert shares(np.array([-3.0, 1.0]), -2.0).tolist() == [0.5, 0.5]


def test_shares_do_not_shrink_with_the_number_of_empty_keys() -> None:
    keys = (IntegerRange(column="city", first=0, last=9999),)
    ptk = Statistics(keys=keys, statistics=("share",), ranking=Ranking(top=1), prefix="")
    batch = pa.RecordBatch.from_pydict({"city": np.repeat([7, 8], 50_000)})
    arrays = ptk.train_dp([batch], epsilon=1)
    found = ptk.features(arrays, pa.table({"city": [7, 8]})).column("share").to_numpy()
    assert found == pytest.approx([0.5, 0.5], abs=0.01)


def test_the_top_keys_are_a_table_for_a_report() -> None:
    arrays = make().exact(rides(a=10, b=30, c=20, d=40))
    assert make().top(arrays).to_pydict() == {
        "rank": [1, 2],
        "city": ["d", "b"],
        "total": [40.0, 30.0],
        "share": [0.4, 0.3],
    }
    assert make().top(arrays, 9)["city"].to_pylist() == ["d", "b", "c", "a"]
    with pytest.raises(InvalidInput, match="top needs a PTK with a ranking"):
        Statistics(keys=(CITIES,), statistics=("count",)).top(arrays)
    with pytest.raises(InvalidInput, match="count must be a whole number from 1"):
        make().top(arrays, 0)


def test_keys_of_all_kinds_are_named_in_a_report() -> None:
    keys = (
        TimePart(column="at", part="weekday"),
        Bins(column="age", edges=(0, 18, 65)),
        IntegerRange(column="zone", first=5, last=6),
    )
    ptk = make(keys=keys)
    batch = pa.RecordBatch.from_pydict(
        {"at": pa.array([86400], pa.timestamp("s")), "age": [65.0], "zone": [6]}
    )
    (best,) = ptk.top(ptk.exact([batch]), 1).to_pylist()
    assert best == {
        "rank": 1,
        "at_weekday": 4,
        "age": "[18.0, 65.0]",
        "zone": 6,
        "total": 1.0,
        "share": 1.0,
    }


def test_a_ranking_goes_with_ranked_statistics_only() -> None:
    for wrong in ({"ranking": None}, {"statistics": ("count",)}):
        with pytest.raises(
            InvalidInput, match="ranking must be given for share, rank or in_top, and only for them"
        ):
            make(**wrong)
    with pytest.raises(InvalidInput, match="top must be at least 1"):
        Ranking(top=0)
    with pytest.raises(InvalidInput, match="must be given together"):
        make(ranking=Ranking(top=1, by="sum"))


def test_a_configuration_without_a_ranking_is_written_as_before() -> None:
    plain = Statistics(keys=(CITIES,), statistics=("count",))
    assert "ranking" not in plain.as_json()
    assert Statistics.from_json(plain.as_json()) == plain
    assert Statistics.from_json(make().as_json()) == make()
    state = State.make(make(), make().exact(rides(a=1)), name="ranked", epsilon=1)
    assert State.from_bytes(*state.to_bytes()).ptk == make()


def test_the_price_is_that_of_the_counts_for_any_top() -> None:
    plain = Statistics(keys=(CITIES,), statistics=("count",))
    for top in (1, 3):
        assert make(ranking=Ranking(top=top)).cost(1, records_per_unit=4) == plain.cost(
            1, records_per_unit=4
        )


def test_the_top_of_the_table_is_better_than_choosing_one_after_the_other() -> None:
    """Peeling (the noisy maximum, k times, at epsilon/k) finds fewer of the true top k; for k = 1
    it finds a few more.
    """
    generator = np.random.default_rng(4)
    epsilon, cells, runs = 0.2, 60, 400
    true = np.sort(generator.uniform(0, 300, cells))[::-1]
    found = {}
    for top in (1, 2, 10):
        noisy = true + generator.laplace(0, 1 / epsilon, (runs, cells))
        once = np.argsort(-noisy, axis=1)[:, :top]
        peeled = []
        for _ in range(runs):
            left = true.copy()
            for _ in range(top):
                # Counts rise together when a record is added, so one-sided noise of scale k/epsilon
                # is enough.
                left[np.argmax(left + generator.exponential(top / epsilon, cells))] = -np.inf
            peeled.append(np.mean(np.isinf(left[:top])))
        found[top] = (float(np.mean(once < top)), float(np.mean(peeled)))
    assert found[10][0] > found[10][1] + 0.1
    assert found[2][0] > found[2][1]
    assert abs(found[1][0] - found[1][1]) < 0.15


def test_it_keeps_the_contract() -> None:
    report = check_ptk(by_sum(statistics=(*RANKED, "sum")))
    assert not [one for one in report.outcomes if one.problem or one.skipped]
