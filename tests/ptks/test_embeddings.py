"""The Embeddings PTK: the contract at both levels, the rules it states, and that it learns, window
by window.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ptklib.columns.keys import Categories, IntegerRange
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget
from ptklib.ptk import Arrays
from ptklib.ptks.embeddings import Embeddings, budget
from ptklib.ptks.embeddings.reading import best_guess, level_of, spread_of
from ptklib.ptks.embeddings.releases import plan_of
from ptklib.ptks.embeddings.trust import interplay_in, trust_in
from ptklib.testing import ptk_privacy_checks
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk, list_checks

DELTA = "1e-6"


def make(user_count: int = 20, item_count: int = 10, **options: Any) -> Embeddings:
    given: dict[str, Any] = {
        "users": IntegerRange(column="user", first=0, last=user_count - 1),
        "items": IntegerRange(column="item", first=0, last=item_count - 1),
        "value": "stars",
        "lower": 1,
        "upper": 5,
        **options,
    }
    return Embeddings(**given)


def invented(users: int, items: int, rows: int, seed: int, tastes: float = 0.8) -> pa.Table:
    """Stars with activities and one taste of two kinds."""
    generator = np.random.default_rng(seed)
    world = np.random.default_rng(0)
    side = [world.choice([-1.0, 1.0], size) for size in (users, items)]
    means = [world.normal(0, 0.5, size) for size in (users, items)]
    user, item = generator.integers(0, users, rows), generator.integers(0, items, rows)
    stars = (
        3
        + means[0][user]
        + means[1][item]
        + tastes * side[0][user] * side[1][item]
        + generator.normal(0, 0.7, rows)
    )
    return pa.table({"user": user, "item": item, "stars": np.clip(stars, 1, 5)})


def train(ptk: Embeddings, table: pa.Table, epsilon: Any, seed: int = 3, **options: Any) -> Arrays:
    with planted_noise():
        return ptk.train_dp(
            table.to_batches(), epsilon=epsilon, delta=DELTA, noise=SeededSource(seed), **options
        )


VARIANTS = {
    "both": make(factors=3, rounds=1, tastes="always"),
    "items": make(
        factors=2,
        rounds=1,
        publish="items",
        items=Categories(column="item", values=tuple("abcdefgh")),
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_contract_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit trains thousands of times: here fewer.

    ``test_hpf`` has one that sees every release.
    """
    monkeypatch.setattr(ptk_privacy_checks, "_RUNS", 300)
    report = check_ptk(VARIANTS[name])
    assert not [one for one in report.outcomes if one.problem or one.skipped]
    assert ("audit_user" in list_checks(VARIANTS[name])) == (name == "items")


def test_vectors_of_users_are_refused_at_user_level_with_the_reason() -> None:
    ptk, read = make(), []

    def watched() -> Any:
        read.append(1)
        yield from invented(20, 10, 50, 1).to_batches()

    with pytest.raises(InvalidInput, match="a vector of each user cannot be private") as caught:
        ptk.train_dp(watched(), epsilon=1, delta=DELTA, records_per_unit=2)
    assert caught.value.reason == "CONFIG_INVALID"
    assert not read
    assert ptk.tags.units == ("event",)
    assert make(publish="items").tags.units == ("event", "user")
    arrays = train(make(publish="items"), invented(20, 10, 50, 1), 1)
    assert not [name for name in arrays if name.startswith("user")]


@pytest.mark.parametrize("records", [1, 4])
def test_the_price_is_that_of_the_plan_with_or_without_a_previous_state(records: int) -> None:
    ptk = make(publish="items")
    cost = ptk.cost(1, DELTA, records_per_unit=records)
    assert cost == plan_of(Budget.of(1, DELTA, records), share=0.65, rounds=2).cost
    assert 0.999 < cost.epsilon(DELTA) <= 1
    with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
        ptk.cost(1, records_per_unit=records)


def test_it_learns_activities_and_tastes() -> None:
    table, fresh = invented(100, 80, 40_000, 1), invented(100, 80, 5_000, 2)
    ptk = make(100, 80, factors=4)
    losses = [
        ptk.eval(train(ptk, table, epsilon), fresh.to_batches())
        for epsilon in ("0.2", "1", "5", "100")
    ]
    mean = float(np.var(fresh["stars"].to_numpy())) / 16
    chance = 0.7**2 / 16
    assert losses[0] < 0.95 * mean
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1.15 * chance
    assert losses[2] < chance + 0.2 * (mean - chance)


def worlds() -> dict[str, tuple[Embeddings, pa.Table, pa.Table]]:
    """Tables to train and to test on: with tastes and without, of mixed partners and of few."""
    found = {}
    for name, tastes, few in (("tastes", 0.8, 0), ("none", 0.0, 0), ("few partners", 0.8, 12)):
        made = invented(60, 50, 25_000, 7, tastes)
        if few:  # Each user meets the items near her own place.
            near = (made["user"].to_numpy() * 50 // 60 - made["item"].to_numpy()) % 50
            made = made.filter(pa.array(near < few))
        test = pa.array(np.arange(len(made)) % 5 == 0)
        ptk = make(60, 50, factors=4)
        found[name] = ptk, made.filter(pc.invert(test)), made.filter(test)
    return found


@pytest.mark.parametrize("name", ["tastes", "none", "few partners"])
def test_more_epsilon_is_no_worse_and_tastes_are_no_worse_than_activities(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as chance allows: means of runs, give or take what they differ by."""
    ptk, table, test = worlds()[name]

    def means() -> tuple[Any, Any]:
        losses = np.array(
            [
                [ptk.eval(train(ptk, table, epsilon, seed), test.to_batches()) for seed in range(5)]
                for epsilon in ("0.1", "0.3", "1", "3", "10", "100", "1000")
            ]
        )
        return losses.mean(axis=1), losses.std(axis=1, ddof=1) / math.sqrt(5)

    here, chance = means()
    rises = here[1:] - here[:-1]
    assert np.all(rises < 4 * np.hypot(chance[1:], chance[:-1]) + 0.002 * here[1:])
    monkeypatch.setattr(budget, "_WORTH", 2.0)
    plain, chance_plain = means()
    assert np.all(here < 1.02 * plain + 4 * np.hypot(chance, chance_plain))
    assert np.mean(here / plain) < 1.01
    if name != "none":
        assert here[-1] < 0.6 * plain[-1]


def test_states_from_before_trust_are_read_as_they_were_and_learned_from() -> None:
    ptk = make(factors=3, give=("user", "item", "rate"), prefix="")
    table = invented(20, 10, 20_000, 1)
    arrays = dict(train(ptk, table, 100))
    assert trust_in(arrays.pop("trust")) > 0.8
    del arrays["interplay"]
    ptk.validate(arrays)
    made = ptk.features(arrays, table).to_pandas().to_numpy()
    user, item = made[:, :3], made[:, 3:6]
    # Tastes were scaled by activities then, and trusted.
    level = level_of(arrays, 0.25)
    tastes = best_guess(arrays["user_sums"], arrays["user_weights"], spread_of(arrays))
    assert np.allclose(user[:, 1:], user[:, :1] * tastes[table["user"].to_numpy()])
    expected = item[:, :1] * arrays["item_tastes"][table["item"].to_numpy()] / level
    assert np.allclose(item[:, 1:], expected)
    again = train(ptk, invented(20, 10, 5_000, 2), 100, previous=arrays)
    assert set(again) == {*arrays, "interplay", "trust"}
    fresh = invented(20, 10, 5_000, 3).to_batches()
    assert ptk.eval(again, fresh) < 1.1 * ptk.eval(arrays, fresh)


@pytest.mark.parametrize("works", ["added", "multiplied"])
def test_activities_are_added_or_multiplied_as_the_data_says(works: str) -> None:
    """Where no tastes are bought; the product of the vectors stays the predicted value."""
    generator = np.random.default_rng(4)
    user, item = generator.integers(0, 20, 20_000), generator.integers(0, 10, 20_000)
    sides = [np.linspace(-1, 1, size) for size in (20, 10)]
    both = 1 if works == "multiplied" else 0
    a, b = sides[0][user], sides[1][item]
    stars = 2.5 * (1 + 0.4 * a + 0.4 * b + both * 0.16 * a * b) + generator.normal(0, 0.2, 20_000)
    table = pa.table({"user": user, "item": item, "stars": stars})
    ptk = make(lower=0, give=("user", "item", "rate"), factors=2, share=0.99)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "_WORTH", 2.0)
        arrays = train(ptk, table, 10)
    assert interplay_in(arrays["interplay"]) == pytest.approx(both, abs=0.15)
    assert not arrays["item_tastes"].any()
    assert ptk.eval(arrays, table.to_batches()) < 1.1 * 0.2**2 / 25
    made = ptk.features(arrays, table).to_pandas().to_numpy()
    assert np.allclose(made[:, 4], np.clip((made[:, :2] * made[:, 2:4]).sum(axis=1), 0, 5))


def test_a_window_without_tastes_keeps_those_from_before() -> None:
    ptk = make(60, 50, factors=3)
    first = train(ptk, invented(60, 50, 20_000, 1), 10)
    second = train(ptk, invented(60, 50, 500, 2), "0.1", previous=first)
    for name in ("user_sums", "user_weights", "item_sums", "item_weights", "item_tastes", "trust"):
        assert first[name].any()
        assert np.array_equal(first[name], second[name])
    fresh = invented(60, 50, 5_000, 3).to_batches()
    assert ptk.eval(second, fresh) < 1.02 * ptk.eval(first, fresh)


def test_each_window_makes_it_better_at_the_same_price() -> None:
    fresh = invented(60, 50, 5_000, 99)
    ptk = make(60, 50, factors=3)
    arrays, losses = None, []
    for window in range(4):
        arrays = train(ptk, invented(60, 50, 2_000, window), 5, previous=arrays)
        losses.append(ptk.eval(arrays, fresh.to_batches()))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0]
    assert arrays is not None
    assert arrays["windows"].tolist() == [4]


def test_a_window_of_other_users_keeps_what_was_known() -> None:
    ptk = make(60, 50, factors=3)
    table, fresh = invented(60, 50, 30_000, 1), invented(60, 50, 5_000, 2)
    early = pc.less(table["user"], 30)
    first = train(ptk, table.filter(early), 20)
    second = train(ptk, table.filter(pc.invert(early)), 20, previous=first)
    whole = ptk.eval(train(ptk, table, 20), fresh.to_batches())
    assert ptk.eval(second, fresh.to_batches()) < whole + 0.1 * (
        ptk.eval(first, fresh.to_batches()) - whole
    )


def test_items_alone_learn_at_user_level_and_users_are_projected() -> None:
    users, rows = 4_000, 20
    table = invented(users, 30, users * rows, 5)
    ptk = make(users, 30, factors=3, publish="items", prefix="")
    arrays = train(ptk, table, 3, records_per_unit=40)
    held = invented(users, 30, users * rows, 6).sort_by("user")
    user, item, stars = (held[name].to_numpy() for name in held.column_names)
    half = np.arange(len(user)) % 2 == 0
    offsets = np.concatenate([[0], np.cumsum(np.bincount(user[half], minlength=users))]).astype(
        np.int32
    )
    own = ptk.project(
        arrays,
        pa.ListArray.from_arrays(offsets, item[half]),
        pa.ListArray.from_arrays(offsets, stars[half]),
    )
    made = ptk.features(arrays, held)
    vectors = np.column_stack([made[f"item_{place}"].to_numpy() for place in range(3)])
    errors = {
        "average user": made["rate"].to_numpy() - stars,
        "own activity": own[user, 0] * vectors[:, 0] - stars,
        "own tastes": (own[user] * vectors).sum(axis=1) - stars,
    }
    found = [float(np.square(one[~half]).mean()) for one in errors.values()]
    assert found[1] < 0.9 * found[0]
    assert found[2] < 0.8 * found[1]


def test_an_empty_history_is_the_average_user_and_rows_do_not_mix() -> None:
    ptk = make(publish="items")
    arrays = train(ptk, invented(20, 10, 2_000, 1), 10)
    histories = [[1, 2, 3], [], [99, None, 4], None]
    stars = [[5.0, 1.0, 2.0], [], [1.0, 2.0, math.nan], None]
    kind = pa.list_(pa.int64()), pa.list_(pa.float64())
    found = ptk.project(arrays, pa.array(histories, kind[0]), pa.array(stars, kind[1]))
    assert np.array_equal(found[1:], np.eye(1, 8).repeat(3, axis=0))
    alone = ptk.project(arrays, pa.array(histories[:1], kind[0]), pa.array(stars[:1], kind[1]))
    assert np.array_equal(alone, found[:1])
    with pytest.raises(InvalidInput, match="lists of the same lengths"):
        ptk.project(arrays, pa.array([[1]], kind[0]), pa.array([[1.0, 2.0]], kind[1]))
    with pytest.raises(InvalidInput, match="items must be lists"):
        ptk.project(arrays, pa.array([1]), pa.array([[1.0]], kind[1]))


def test_a_record_without_user_item_or_value_contributes_nothing() -> None:
    ptk = make()
    good = invented(20, 10, 200, 1)
    bad = pa.table(
        {
            "user": pa.array([None, 20, -1, 1, 1, 1, 1], pa.int64()),
            "item": pa.array([1, 1, 1, None, 10, 1, 1], pa.int64()),
            "stars": pa.array([3.0, 3, 3, 3, 3, None, math.nan]),
        }
    )
    one, other = train(ptk, good, 1), train(ptk, pa.concat_tables([bad, good]), 1)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert ptk.loss(one, bad.to_batches()).tolist() == [0.0] * 7


@pytest.mark.parametrize("publish", ["both", "items"])
def test_order_and_values_beyond_the_bounds_do_not_matter(publish: Any) -> None:
    ptk = make(publish=publish)
    table = invented(20, 10, 300, 1)
    stars = table["stars"].to_numpy().copy()
    stars[:4] = [5, 5, 1, 1]
    plain = table.set_column(2, "stars", pa.array(stars))
    stars[:4] = [math.inf, 1e308, -math.inf, -7]
    wild = table.set_column(2, "stars", pa.array(stars)).take(
        np.random.default_rng(2).permutation(300)
    )
    records = 1 if publish == "both" else 60
    one, other = (train(ptk, each, 1, records_per_unit=records) for each in (plain, wild))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_repeated_events_of_a_user_with_an_item_count_once_at_user_level() -> None:
    ptk = make(publish="items")
    table = pa.table({"user": [1, 2, 3], "item": [4, 4, 5], "stars": [5.0, 1.0, 2.0]})
    again = pa.concat_tables([table, table.slice(0, 1), table.slice(0, 1)])
    one, other = (train(ptk, each, 1, records_per_unit=5) for each in (table, again))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_features_are_vectors_products_and_the_predicted_value() -> None:
    ptk = make(factors=3, give=("user", "item", "product", "rate"), prefix="m")
    arrays = train(ptk, invented(20, 10, 3_000, 1), 10)
    table = pa.table(
        {"user": pa.array([3, 99, None], pa.int64()), "item": pa.array([4, 4, -1], pa.int64())}
    )
    names = [f"m_{one}_{place}" for one in ("user", "item", "product") for place in range(3)]
    assert ptk.feature_names() == (*names, "m_rate")
    made = ptk.features(arrays, table).to_pandas().to_numpy()
    assert np.array_equal(made[:, 6:9], made[:, :3] * made[:, 3:6])
    assert np.allclose(made[:, 9], np.clip(made[:, 6:9].sum(axis=1), 1, 5))
    assert made[1, :3].tolist() == made[2, :3].tolist() == [1, 0, 0]
    assert made[2, 4:6].tolist() == [0, 0]
    assert made[0, 3:6].tolist() == made[1, 3:6].tolist()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lower": -1}, "0 <= lower < upper"),
        ({"lower": 5}, "0 <= lower < upper"),
        ({"factors": 1}, "factors must be 2 to 256"),
        ({"rounds": 0}, "rounds must be 1 to 100"),
        ({"share": 1.0}, "share must be from 0.01 to 0.99"),
        ({"clip": 0.0}, "clip must be from 0.01 to 1"),
        ({"tastes": "never"}, "must be one of 'worthwhile', 'always'"),
        ({"items": IntegerRange(column="user", first=0, last=9)}, "different columns"),
        (
            {"users": IntegerRange(column="user", first=0, last=2**22 - 1)},
            r"must be at most 33554432",
        ),
        ({"give": ()}, "give must be one or more"),
        ({"give": ("rate", "rate")}, "none of them twice"),
        ({"give": ("user",), "publish": "items"}, "where only items are published"),
        ({"publish": "users"}, "must be one of 'both', 'items'"),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make(**wrong)


def test_arrays_that_cannot_be_a_state_are_refused() -> None:
    ptk = make()
    arrays = dict(train(ptk, invented(20, 10, 100, 1), 1))
    for name, value in (("item_weights", -1.0), ("windows", 0), ("user_activity", math.nan)):
        wrong = np.array(arrays[name])
        wrong[..., -1] = value
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            ptk.validate({**arrays, name: wrong})
    with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
        make(factors=5).validate(arrays)


def test_a_text_value_is_refused_by_type_alone() -> None:
    batch = pa.RecordBatch.from_pydict({"user": [1], "item": [1], "stars": ["secret"]})
    with pytest.raises(InvalidInput, match="COLUMN_TYPE") as caught:
        make().train_dp([batch], epsilon=1, delta=DELTA)
    assert "secret" not in str(caught.value)
