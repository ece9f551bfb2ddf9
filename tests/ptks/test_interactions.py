"""The Interactions PTK: exact totals, the sensitivity it claims, the price it pays, back-off, and
the rules it states.
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

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.errors import InvalidInput
from ptklib.ptk import Arrays
from ptklib.ptks.binned.codes import STEPS
from ptklib.ptks.counts.samples import failure_bound as failure_of_classes
from ptklib.ptks.interactions import MAX_KEYS, Interactions
from ptklib.ptks.tables.noisy_totals import scale_of
from ptklib.ptks.tables.samples import failure_bound
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_checks import check_ptk

ZONE = IntegerRange(column="zone", first=0, last=9)
HOUR = IntegerRange(column="hour", first=0, last=5)
CITY = Categories(column="city", values=("a", "b", "c"))
CLASSES = ("no", "maybe", "yes")


def number(**options: Any) -> Interactions:
    given: dict[str, Any] = {"keys": (ZONE, HOUR, CITY), "label": "speed", "lower": 0, "upper": 80}
    return Interactions(**{**given, **options})


def classes(**options: Any) -> Interactions:
    given: dict[str, Any] = {"keys": (ZONE, HOUR), "label": "buys", "classes": CLASSES}
    return Interactions(**{**given, **options})


def rides(rows: int, seed: int, *, together: float = 0.0) -> pa.Table:
    """Speeds that keys change one by one, and zone and hour ``together``."""
    generator, world = np.random.default_rng(seed), np.random.default_rng(0)
    zone = np.minimum(generator.geometric(0.3, rows) - 1, 9)
    hour, city = generator.integers(0, 6, rows), generator.integers(0, 3, rows)
    means = 40 + world.normal(0, 6, 10)[zone] + world.normal(0, 6, 6)[hour]
    means = means + together * world.normal(0, 1, (10, 6))[zone, hour]
    speed = np.clip(means + generator.normal(0, 8, rows), 0, 80)
    return pa.table(
        {"zone": zone, "hour": hour, "city": np.array(["a", "b", "c"])[city], "speed": speed}
    )


def train(
    ptk: Interactions, table: pa.Table, epsilon: Any, seed: int = 1, **options: Any
) -> Arrays:
    with planted_noise():
        return ptk.train_dp(
            table.to_batches(), epsilon=epsilon, noise=SeededSource(seed), **options
        )


@pytest.mark.parametrize(
    "ptk",
    [
        number(interactions=3, statistics=("estimate", "count")),
        classes(statistics=("count", "estimate")),
        number(mechanism="gaussian", keys=(Bins(column="x", edges=(0.0, 1.0, 3.0)), CITY)),
    ],
    ids=["number", "classes", "gaussian"],
)
def test_the_contract_is_kept(ptk: Interactions) -> None:
    check_ptk(ptk)


def test_exact_estimates_are_plain_means_of_every_table() -> None:
    table = rides(4_000, 1, together=6)
    ptk = number(interactions=3, statistics=("estimate", "count"))
    arrays = ptk.exact(table.to_batches(max_chunksize=701))
    found = ptk.features(arrays, table).to_pandas()
    frame = table.to_pandas()
    for keys in (
        ["zone"],
        ["hour"],
        ["city"],
        ["zone", "hour"],
        ["zone", "city"],
        ["hour", "city"],
        ["zone", "hour", "city"],
    ):
        groups = frame.groupby(keys)["speed"]
        name = "speed_" + "_".join(keys)
        assert np.allclose(found[f"{name}_estimate"], groups.transform("mean"), atol=80 / STEPS)
        assert np.array_equal(found[f"{name}_count"], groups.transform("size"))
    assert next(iter(found)) == "speed_zone_estimate"
    assert len(list(found)) == 14


def test_exact_probabilities_are_shares() -> None:
    generator = np.random.default_rng(2)
    zone, hour = generator.integers(0, 10, 3_000), generator.integers(0, 6, 3_000)
    buys = np.array(CLASSES)[np.minimum(generator.poisson(zone / 5), 2)]
    table = pa.table({"zone": zone, "hour": hour, "buys": buys})
    ptk = classes(prefix="b")
    found = ptk.features(ptk.exact(table.to_batches()), table).to_pandas()
    frame = table.to_pandas()
    for one in CLASSES:
        share = (frame["buys"] == one).groupby([frame["zone"], frame["hour"]]).transform("mean")
        assert np.allclose(found[f"b_zone_hour_estimate_{one}"], share)


@settings(max_examples=40, deadline=None)
@given(
    zone=st.one_of(st.none(), st.integers(-1, 10)),
    hour=st.one_of(st.none(), st.integers(-1, 6)),
    city=st.sampled_from(["a", "c", "z", None]),
    speed=st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    most=st.sampled_from([2, 3]),
)
def test_a_record_moves_every_table_by_its_weight_or_none(
    zone: int | None, hour: int | None, city: str | None, speed: float | None, most: Any
) -> None:
    ptk, gaussian = (number(interactions=most, mechanism=one) for one in ("laplace", "gaussian"))
    base = rides(50, 3)
    added = pa.table(
        {"zone": [zone], "hour": [hour], "city": [city], "speed": [speed]}, schema=base.schema
    )
    both, alone = (one.to_batches() for one in (pa.concat_tables([base, added]), base))
    known = speed is not None and not math.isnan(speed)
    for one in (ptk, gaussian):
        moved = one.exact(both)["totals"] - one.exact(alone)["totals"]
        assert moved.min() >= 0
        for table in one._tables:
            here = moved[table.start : table.stop].sum(axis=1)
            assert np.count_nonzero(here) == known
            assert here.sum() == known * STEPS * table.copies
        # What the release is priced at.
        release = one._plan(1, "1e-6", 1)
        if one is ptk:
            assert moved.sum() == known * release.sensitivity
        else:
            norm = math.sqrt(float(np.square(moved.astype(float)).sum()))
            assert norm <= float(release.sensitivity)
            # Steps that are all towards one end move it by as much as is priced.
            top = STEPS * math.sqrt(sum(table.copies**2 for table in one._tables))
            assert float(release.sensitivity) == pytest.approx(top, rel=1e-6)


def test_copies_follow_the_sizes_of_tables_alone_and_a_user_pays_for_all_records() -> None:
    ptk = classes()
    zones, hours, pairs = (table.copies for table in ptk._tables)
    assert hours < zones < pairs == 61
    assert zones == round(61 * 7 ** (-1 / 3))
    assert ptk._plan(1, 0, 1).sensitivity == zones + hours + pairs
    assert ptk._plan(1, 0, 4).sensitivity == 4 * (zones + hours + pairs)


@pytest.mark.parametrize("records", [1, 5])
def test_the_price_is_what_was_asked(records: int) -> None:
    cost = number().cost("0.3", records_per_unit=records)
    assert float(cost.epsilon(0)) == pytest.approx(0.3, rel=1e-9)
    scale = scale_of(number()._plan("0.3", 0, records))
    copies = sum(table.copies for table in number()._tables)
    assert scale * 0.3 == pytest.approx(copies * STEPS * records)
    with pytest.raises(InvalidInput, match="delta"):
        number(mechanism="gaussian").cost(1)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_totals_have_the_noise_that_the_state_tells(mechanism: Any) -> None:
    ptk = number(mechanism=mechanism, interactions=3)
    empty = rides(1, 1).slice(0, 0)
    arrays = [train(ptk, empty, 1, seed, delta="1e-6") for seed in range(20)]
    noise = np.concatenate([one["totals"].ravel() for one in arrays]) / STEPS
    told = float(arrays[0]["variance"][0])
    assert noise.mean() == pytest.approx(0, abs=5 * math.sqrt(told / len(noise)))
    assert noise.var() == pytest.approx(told, rel=0.06)


@pytest.mark.parametrize("epsilon", ["0.05", "0.3", "1", "100"])
@pytest.mark.parametrize("together", [0.0, 8.0])
def test_pairs_are_no_worse_than_plain_pairs_singles_and_the_mean(
    epsilon: str, together: float
) -> None:
    train_rows, fresh = rides(20_000, 4, together=together), rides(20_000, 5, together=together)
    ptk = number(keys=(ZONE, HOUR))
    table = ptk._tables[2]
    errors: dict[str, list[float]] = {}
    truth = fresh["speed"].to_numpy()
    for seed in range(10):
        arrays = train(ptk, train_rows, epsilon, seed)
        found = {
            name: column.to_numpy()
            for name, column in zip(
                ptk.feature_names(), ptk.features(arrays, fresh).columns, strict=True
            )
        }
        values = arrays["totals"][table.start :].astype(float)
        plain = np.clip(values[:, 1] / np.maximum(values.sum(axis=1), 1), 0, 1) * 80
        cell = table.codes([fresh["zone"].to_numpy(), fresh["hour"].to_numpy()])
        guesses = {
            "pairs": found["speed_zone_hour_estimate"],
            "zones": found["speed_zone_estimate"],
            "hours": found["speed_hour_estimate"],
            "mean": np.full(len(truth), train_rows["speed"].to_numpy().mean()),
            "plain": plain[cell],
        }
        for name, guess in guesses.items():
            errors.setdefault(name, []).append(float(np.square(guess - truth).mean()))
    means = {name: float(np.mean(one)) for name, one in errors.items()}
    best = min(error for name, error in means.items() if name != "pairs")
    assert means["pairs"] <= 1.02 * best


def test_a_sparse_pair_is_served_as_its_keys_say() -> None:
    """Zone 9 and hour 5 never met; both are known from elsewhere."""
    table = rides(30_000, 6)
    kept = table.filter(pa.array((table["zone"].to_numpy() != 9) | (table["hour"].to_numpy() != 5)))
    ptk = number(keys=(ZONE, HOUR))
    world = np.random.default_rng(0)
    truth = 40 + world.normal(0, 6, 10)[9] + world.normal(0, 6, 6)[5]
    found = [
        ptk.features(train(ptk, kept, 3, seed), pa.table({"zone": [9], "hour": [5]}))
        .column("speed_zone_hour_estimate")[0]
        .as_py()
        for seed in range(8)
    ]
    assert np.mean(found) == pytest.approx(truth, abs=4)


def test_unknown_keys_that_were_not_seen_say_nothing() -> None:
    ptk = number(interactions=3)
    arrays = train(ptk, rides(20_000, 7), 10)
    wanted = pa.table(
        {
            "zone": pa.array([1, 1, None, 99, None, 1], pa.int64()),
            "hour": pa.array([2, None, 2, -1, None, 2], pa.int64()),
            "city": ["z", None, "a", "a", None, "a"],
        }
    )
    found = ptk.features(arrays, wanted).to_pylist()
    every, pair = "speed_zone_hour_city_estimate", "speed_zone_hour_estimate"
    assert found[0][every] == pytest.approx(found[5][pair], abs=1)
    assert found[1][every] == pytest.approx(found[5]["speed_zone_estimate"], abs=1)
    assert found[2][every] == pytest.approx(found[5]["speed_hour_city_estimate"], abs=1)
    assert found[3][every] == pytest.approx(found[5]["speed_city_estimate"], abs=1)
    mean = float(np.mean(rides(20_000, 7)["speed"].to_numpy()))
    assert list(found[4].values()) == pytest.approx([mean] * 7, abs=1)


def test_unknown_keys_that_were_seen_are_a_value_of_their_own() -> None:
    table = rides(20_000, 7)
    zone, speed = table["zone"].to_numpy(), table["speed"].to_numpy()
    odd = pa.table(
        {
            "zone": pa.array(np.where(zone == 1, 77, zone)),
            "hour": table["hour"],
            "speed": np.where(zone == 1, 70.0, speed),
        }
    )
    ptk = number(keys=(ZONE, HOUR))
    arrays = train(ptk, odd, 10)
    found = ptk.features(
        arrays, pa.table({"zone": pa.array([None, 1], pa.int64()), "hour": [3, 3]})
    )
    assert found.column("speed_zone_hour_estimate")[0].as_py() == pytest.approx(70, abs=2)
    assert found.column("speed_zone_hour_estimate")[1].as_py() < 60


def test_records_without_a_label_add_nothing_and_have_no_loss() -> None:
    ptk = classes()
    odd = pa.table(
        {
            "zone": pa.array([1, None, 1, 50], pa.int64()),
            "hour": pa.array([1, 1, 1, 1], pa.int64()),
            "buys": ["other", "yes", None, "yes"],
        }
    )
    copies = sum(table.copies for table in ptk._tables)
    assert ptk.exact(odd.to_batches())["totals"].sum() == 2 * copies
    arrays = train(ptk, odd, 1)
    losses = ptk.loss(arrays, odd.to_batches())
    assert losses[0] == losses[2] == 0
    assert losses[1] > 0
    assert losses[3] > 0


def test_windows_are_added_and_weights_count() -> None:
    ptk = number()
    first, second = (train(ptk, rides(500, seed), 1, seed) for seed in (1, 2))
    with planted_noise():
        both = ptk.train_dp(
            rides(500, 2).to_batches(), epsilon=1, noise=SeededSource(2), previous=first
        )
    assert np.array_equal(both["totals"], first["totals"] + second["totals"])
    assert both["variance"] == first["variance"] + second["variance"]
    assert both["windows"].tolist() == [2]
    summed = ptk.combined([(Fraction(1), first), (Fraction(1), second)])
    assert all(np.array_equal(both[name], summed[name]) for name in both)
    with planted_noise():
        half = ptk.combined([(Fraction(1, 2), first)], noise=SeededSource(3))
    assert np.abs(half["totals"] - first["totals"] / 2).max() <= 1
    ptk.validate(half)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_profile_is_the_fewest_records_that_keep_the_target(mechanism: Any) -> None:
    delta: Any = "1e-6" if mechanism == "gaussian" else 0
    ptk = number(mechanism=mechanism, min_share=0.1)
    (records,) = ptk.analytic_profile(0.05, [1], delta)
    assert records is not None
    release = ptk._plan(1, delta, 1)
    scale = scale_of(release) / (STEPS * min(one.copies for one in ptk._tables if one.order == 2))
    allowed = 0.05 - 1 / (2 * STEPS)
    cell = math.ceil(records * 0.1)
    assert failure_bound(mechanism, scale, 1 / STEPS, allowed, 1, cell) <= 0.05
    assert failure_bound(mechanism, scale, 1 / STEPS, allowed, 1, cell - 2) > 0.05
    of_classes = classes(mechanism=mechanism, min_share=0.1)
    (more,) = of_classes.analytic_profile(0.05, [1], delta)
    assert more is not None
    release = of_classes._plan(1, delta, 1)
    scale = scale_of(release) / 61
    assert failure_of_classes(mechanism, scale, 3, 0.05, math.ceil(more * 0.1)) <= 0.05
    # More keys share the same budget: more records are needed.
    (fewer,) = number(keys=(ZONE, HOUR), mechanism=mechanism, min_share=0.1).analytic_profile(
        0.05, [1], delta
    )
    assert fewer is not None
    assert fewer < records


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_profile_holds_for_the_totals_that_are_stored(mechanism: Any) -> None:
    delta: Any = "1e-6" if mechanism == "gaussian" else 0
    keys = (
        IntegerRange(column="zone", first=0, last=1),
        IntegerRange(column="hour", first=0, last=1),
    )
    ptk = number(keys=keys, mechanism=mechanism, min_share=0.25)
    (records,) = ptk.analytic_profile(0.1, [1], delta)
    assert records is not None
    cell = math.ceil(records / 4)
    table = pa.table({"zone": [0] * cell, "hour": [0] * cell, "speed": [76.0] * cell})
    missed = 0
    for seed in range(300):
        totals = train(ptk, table, 1, seed, delta=delta)["totals"][ptk._tables[2].start].astype(
            float
        )
        mean = min(max(totals[1] / max(totals.sum(), 1), 0), 1)
        missed += abs(mean - 0.95) > 0.1
    # 5% are allowed, and the bound is not far from tight.
    assert 1 <= missed <= 15 + 4 * math.sqrt(300 * 0.05)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"keys": (ZONE,)}, "keys must be 2 to"),
        ({"keys": (ZONE, HOUR), "interactions": 3}, "keys must be 3 to"),
        (
            {
                "keys": tuple(
                    IntegerRange(column=f"k{n}", first=0, last=1) for n in range(MAX_KEYS + 1)
                )
            },
            "keys must be 2 to",
        ),
        (
            {"keys": (ZONE, IntegerRange(column="speed", first=0, last=3))},
            "must not read the label",
        ),
        ({"keys": (ZONE, IntegerRange(column="zone", first=0, last=3))}, "different names"),
        ({"classes": ("a", "b")}, "left out where there are classes"),
        ({"lower": None, "upper": None}, "must be given"),
        ({"statistics": ()}, "statistics must be one or more"),
        ({"min_share": 0.0}, "min_share"),
        (
            {
                "keys": (
                    IntegerRange(column="a", first=0, last=9_999),
                    IntegerRange(column="b", first=0, last=999),
                )
            },
            "numbers in all tables",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        number(**wrong)


def test_parts_of_a_time_are_keys_of_their_own() -> None:
    time = [TimePart(column="at", part=part) for part in ("hour", "weekday")]
    names = number(keys=tuple(time)).feature_names()
    assert names[-1] == "speed_at_hour_at_weekday_estimate"


@pytest.mark.parametrize("name", ["totals", "variance", "windows"])
def test_arrays_that_cannot_be_a_state_are_refused(name: str) -> None:
    ptk = number()
    arrays = dict(train(ptk, rides(100, 1), 1))
    for wrong in (arrays[name][:-1], -np.abs(arrays[name]) - 2.0**61):
        with pytest.raises(InvalidInput):
            ptk.validate({**arrays, name: wrong})
    with pytest.raises(InvalidInput):
        ptk.validate({other: arrays[other] for other in arrays if other != name})
