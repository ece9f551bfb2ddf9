"""What a record adds depends on that record alone, to the last bit; and no kind holds more bytes
than it declares.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from profiler.measuring.bounds import UNIT
from profiler.measuring.tasks import least_sum
from ptklib.columns.keys import Categories, IntegerRange, TimePart
from ptklib.ptk import Ptk
from ptklib.ptks.additive import Additive
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.counts import Counts
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.embeddings import Embeddings
from ptklib.ptks.forest import Forest
from ptklib.ptks.quantiles import Quantiles
from ptklib.ptks.ratios import Ratios
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.tables.hashing import Hashed
from ptklib.ptks.vectors import Bounded
from ptklib.testing.ptk_cases import Case
from ptklib.testing.ptk_memory import peak_bytes, repeated
from ptklib.testing.ptk_record_checks import RECORD_CHECKS

HOURS = IntegerRange(column="hour", first=0, last=23)
VALUE: dict[str, Any] = {"value": "speed", "lower": 0.0, "upper": 60.0}
DELTA = 1e-6


def columns(count: int) -> tuple[Bounded, ...]:
    return tuple(Bounded(column=f"x{k}", lower=-1.0, upper=1.0 + k) for k in range(count))


def numbers(count: int, bins: int = 16) -> tuple[Number, ...]:
    return tuple(Number(column=f"x{k}", lower=0.0, upper=1.0, bins=bins) for k in range(count))


def embeddings(**changes: Any) -> Embeddings:
    users, items = (
        IntegerRange(column="user", first=0, last=99),
        IntegerRange(column="item", first=0, last=49),
    )
    return Embeddings(users=users, items=items, value="rating", lower=0.0, upper=5.0, **changes)


KINDS: dict[str, Ptk] = {
    "statistics": Statistics(keys=(HOURS,), statistics=("mean", "variance"), **VALUE),
    "shares": Statistics(
        keys=(HOURS, TimePart(column="at", part="weekday")), statistics=("count",)
    ),
    "ratios": Ratios(
        keys=(HOURS,),
        numerator="tip",
        denominator="fare",
        denominator_upper=100.0,
        ratio_upper=1.0,
        numerator_upper=50.0,
    ),
    "quantiles": Quantiles(keys=(HOURS,), quantiles=(0.1, 0.5, 0.9), **VALUE),
    "counts": Counts(
        keys=(Hashed(column="word", width=50), HOURS),
        label=Categories(column="y", values=tuple("abcdefg")),
    ),
    "counts of rows": Counts(
        keys=(Hashed(column="word", width=40_000, rows=3),),
        label=Categories(column="y", values=tuple("abcdefghijk")),
    ),
    "covariance": Covariance(values=columns(9), components=4),
    "covariance of many": Covariance(values=columns(37), components=11, norm=2.0),
    "clusters on a grid": Clusters(values=columns(2), clusters=7),
    "clusters by lloyd": Clusters(values=columns(13), clusters=9),
    "forest": Forest(inputs=numbers(6), label="y", classes=tuple(range(13)), trees=7, depth=4),
    "forest of steps": Forest(
        inputs=numbers(6, 300), label="y", lower=0.0, upper=9.0, trees=7, depth=4
    ),
    "forest of one": Forest(inputs=numbers(3), label="y", classes=(0, 1), trees=1, depth=3),
    "forest by seed": Forest(
        inputs=numbers(3), label="y", classes=(0, 1), trees=5, depth=3, splits="random"
    ),
    "additive": Additive(inputs=numbers(9), label="y", classes=(0, 1), rounds=2),
    "additive of steps": Additive(inputs=numbers(5, 300), label="y", lower=0.0, upper=9.0),
    "embeddings": embeddings(factors=11),
    "embeddings of items": embeddings(publish="items", factors=5),
}


@pytest.mark.parametrize("check", RECORD_CHECKS, ids=[one.name for one in RECORD_CHECKS])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_keeps_records_apart(name: str, check: Any) -> None:
    # Three of the largest batches; all of them are gone through for each of many sizes of batches.
    check.run(Case(KINDS[name], pa.Table.from_batches([KINDS[name].example(300)])))


# Sizes at which what a configuration holds by itself shows: many cells, nodes, users, classes,
# listed texts.
LARGE: dict[str, Ptk] = {
    "statistics": Statistics(
        keys=(IntegerRange(column="hour", first=0, last=299_999),),
        statistics=("mean", "variance"),
        **VALUE,
    ),
    "listed": Statistics(
        keys=(Categories(column="word", values=tuple(f"word-{k:06d}" * 3 for k in range(60_000))),),
        statistics=("count",),
    ),
    "padded": Statistics(
        keys=tuple(IntegerRange(column=f"k{k}", first=0, last=1) for k in range(12)),
        statistics=("count",),
    ),
    "quantiles": Quantiles(
        keys=(IntegerRange(column="hour", first=0, last=999),), quantiles=(0.5,), **VALUE
    ),
    "counts": Counts(
        keys=(Hashed(column="word", width=400_000),),
        label=Categories(column="y", values=("a", "b")),
    ),
    "counts of classes": Counts(
        keys=(Hashed(column="word", width=40_000, rows=2),),
        label=IntegerRange(column="y", first=0, last=19),
    ),
    "covariance": Covariance(values=columns(90), components=20),
    "grid": Clusters(values=columns(3), clusters=40),
    "lloyd": Clusters(values=columns(30), clusters=40, iterations=1),
    "forest": Forest(inputs=numbers(30, 300), label="y", classes=(0, 1), trees=20, depth=7),
    "forest of classes": Forest(
        inputs=numbers(3), label="y", classes=tuple(range(400)), trees=3, depth=5
    ),
    "forest by mechanisms": Forest(
        inputs=numbers(12, 200), label="y", classes=(0, 1), trees=8, depth=6, splits="exponential"
    ),
    "additive": Additive(inputs=numbers(40, 300), label="y", classes=(0, 1), rounds=1),
    "embeddings": Embeddings(
        users=IntegerRange(column="user", first=0, last=39_999),
        items=IntegerRange(column="item", first=0, last=9_999),
        value="rating",
        lower=0.0,
        upper=5.0,
        factors=12,
    ),
}


def _held(work: Callable[[Any], Any], data: pa.Table, records: int) -> int:
    return peak_bytes(lambda: work(repeated(data, records)))


@pytest.mark.parametrize("name", LARGE)
def test_a_large_configuration_declares_what_it_holds(name: str) -> None:
    ptk = LARGE[name]
    delta = DELTA if ptk.tags.needs_delta else 0
    data = pa.Table.from_batches([ptk.example(1_000)])
    arrays = ptk.train_dp(data.to_batches(), epsilon=1, delta=delta)
    for records in (0, 8_000):
        allowed = ptk.working_bytes(records)
        train = partial(ptk.train_dp, epsilon=1, delta=delta)
        works: dict[str, Callable[[Any], Any]] = {
            "train": train,
            "again": partial(train, previous=arrays),
            "exact": ptk.exact,
            "loss": partial(ptk.loss, arrays),
        }
        held = {name: _held(work, data, records) for name, work in works.items()}
        assert max(held.values()) <= allowed, (held, allowed)
    # The engine keeps as much once more for a state as it is written: three copies of it at most.
    assert 3 * sum(one.nbytes for one in arrays.values()) <= ptk.working_bytes(0)


def test_sums_of_losses_do_not_depend_on_the_order_of_records() -> None:
    # Of such sizes that floats summed one way or the other are not the same.
    losses = 10.0 ** np.random.default_rng(1).uniform(-9, 0, 100_001)
    assert len({float(one.sum()) for one in (losses, losses[::-1], np.sort(losses))}) > 1
    assert least_sum(losses) == least_sum(losses[::-1]) == least_sum(np.sort(losses))
    assert least_sum(np.array([0.25, np.nan, 7.0, -1.0, 0.5])) == UNIT * 3 // 4
