"""Features of ten states for one million rows, against the ten left joins of pyarrow that give the
same columns.

A state by public keys is a table from keys to features, so the baseline joins the frame with each
of those tables, made before. The frame holds the key columns alone, so that joins have nothing else
to carry. Joins do not keep the order of the rows; `featurize` does.

Also here: what an import takes in a fresh process. ``import ptklib`` alone loads nothing else, so
the bar on its wall time says little; the second bar is on what a program imports in order to
featurize, in seconds of the processor, which do not grow when the machine is busy. Its wall time is
shown.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib.columns.keys import Categories, IntegerRange, Key
from ptklib.features import featurize
from ptklib.ptk import Ptk
from ptklib.ptks.counts import Counts
from ptklib.ptks.embeddings import Embeddings
from ptklib.ptks.quantiles import Quantiles
from ptklib.ptks.statistics import Statistics
from ptklib.state import State

ROWS = 1_000_000
ROUNDS = 9
PROCESSES = 9
USED = "from ptklib.features import featurize; from ptklib.ptks.statistics import Statistics"
SIZES = {"hour": 24, "zone": 250, "vendor": 5_000}
CITIES = tuple(f"city-{number}" for number in range(200))


def run(say: Say) -> Report:
    frame, keyed = _frame(ROWS), _states()
    states = [state for state, _ in keyed]
    sides = [(_side(state, keys), [key.column for key in keys]) for state, keys in keyed]
    _check(states, sides)
    ours, theirs = [], []
    for number in range(1 + ROUNDS):
        say(f"round {number + 1} of {1 + ROUNDS}")
        ours.append(_seconds(featurize, frame, states))
        theirs.append(_seconds(_joined, frame, sides))
    speeds = [join / feature for feature, join in zip(ours, theirs, strict=True)][1:]
    say("imports")
    alone, _ = _import_seconds("import ptklib")
    used, used_cpu = _import_seconds(USED)
    return Report(
        bars=[
            at_least(
                "speed of featurize / speed of ten pyarrow joins (median)",
                statistics.median(speeds),
                0.5,
            ),
            at_most("seconds of `import ptklib` in a new process (median)", alone, 0.6),
            at_most(
                "processor seconds of importing featurize and Statistics in a new process (median)",
                used_cpu,
                0.6,
            ),
        ],
        figures={
            "rows": ROWS,
            "features": sum(len(state.ptk.feature_names()) for state in states),
            "featurize_s": round(statistics.median(ours[1:]), 4),
            "joins_s": round(statistics.median(theirs[1:]), 4),
            "wall seconds of importing featurize and Statistics": round(used, 3),
            "speed, least and most": [round(min(speeds), 2), round(max(speeds), 2)],
            "one state": [
                {
                    "kind": state.ptk.kind,
                    "keys": "+".join(columns),
                    "seconds": round(_seconds(featurize, frame, state), 4),
                }
                for state, (_, columns) in zip(states, sides, strict=True)
            ],
            "other frames": _other_frames(frame, states),
        },
    )


def _frame(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    body: dict[str, Any] = {
        name: rng.integers(0, size, rows).astype(np.int32) for name, size in SIZES.items()
    }
    body["city"] = pa.array(CITIES).take(pa.array(rng.integers(0, len(CITIES), rows)))
    return pa.table(body)


def _states() -> list[tuple[State, tuple[Key, ...]]]:
    """Ten states whose features are tables by keys: statistics, quantiles, counts with a label,
    vectors of items.
    """
    keys: dict[str, Key] = {
        name: IntegerRange(column=name, first=0, last=size - 1) for name, size in SIZES.items()
    }
    keys["city"] = Categories(column="city", values=CITIES)
    label = Categories(column="label", values=("no", "yes"))
    users = IntegerRange(column="user", first=0, last=999)
    chosen: list[tuple[Ptk, tuple[str, ...]]] = [
        *((_statistics(keys, names), names) for names in (("zone",), ("hour",), ("vendor",))),
        *((_statistics(keys, names), names) for names in (("zone", "hour"), ("city", "hour"))),
        (
            Quantiles(
                keys=(keys["city"],), value="fare", quantiles=(0.1, 0.5, 0.9), lower=0, upper=100
            ),
            ("city",),
        ),
        *((Counts(keys=(keys[name],), label=label), (name,)) for name in ("vendor", "city")),
    ]
    for name in ("vendor", "city"):
        items = keys[name]
        assert isinstance(items, Categories | IntegerRange)
        chosen.append(
            (
                Embeddings(
                    users=users,
                    items=items,
                    value="stars",
                    lower=0,
                    upper=5,
                    publish="items",
                    factors=4,
                ),
                (name,),
            )
        )
    return [
        (_trained(ptk, f"state-{place}"), tuple(keys[name] for name in names))
        for place, (ptk, names) in enumerate(chosen)
    ]


def _statistics(keys: dict[str, Key], names: tuple[str, ...]) -> Statistics:
    chosen = tuple(keys[name] for name in names)
    return Statistics(
        keys=chosen, statistics=("count", "mean"), value="fare", lower=0.0, upper=100.0
    )


def _trained(ptk: Ptk, name: str) -> State:
    delta = "1e-6" if ptk.tags.needs_delta else 0
    example = ptk.example(100_000)
    assert example is not None
    return State.make(
        ptk, ptk.train_dp([example], epsilon=1, delta=delta), name=name, epsilon=1, delta=delta
    )


def _side(state: State, keys: tuple[Key, ...]) -> pa.Table:
    """Every key of the state with its features: what a join needs."""
    places = np.indices([key.size for key in keys]).reshape(len(keys), -1)
    table = pa.table(
        {key.column: _keys(key).take(pa.array(one)) for key, one in zip(keys, places, strict=True)}
    )
    return featurize(table, state)


def _keys(key: Key) -> pa.Array:
    if isinstance(key, IntegerRange):
        return pa.array(np.arange(key.first, key.last + 1, dtype=np.int32))
    assert isinstance(key, Categories)
    return pa.array(key.values)


def _joined(frame: pa.Table, sides: list[tuple[pa.Table, list[str]]]) -> pa.Table:
    for side, columns in sides:
        frame = frame.join(side, keys=columns, join_type="left outer")
    return frame


def _check(states: list[State], sides: list[tuple[pa.Table, list[str]]]) -> None:
    """Both ways give the same rows."""
    frame = _frame(5_000).append_column("row", pa.array(np.arange(5_000)))
    made = featurize(frame, states)
    joined = _joined(frame, sides).sort_by("row").select(made.column_names)
    assert joined.combine_chunks().equals(made.combine_chunks())


def _other_frames(table: pa.Table, states: list[State]) -> list[dict[str, object]]:
    frames: dict[str, Any] = {"pandas": table.to_pandas()}
    try:
        import polars

        frames["polars"] = polars.from_arrow(table)
    except ImportError:
        pass
    for frame in frames.values():
        featurize(frame, states)
    return [
        {"frame": name, "seconds": round(_seconds(featurize, frame, states), 4)}
        for name, frame in frames.items()
    ]


def _seconds(call: Callable[..., object], *arguments: Any) -> float:
    begin = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begin


def _import_seconds(code: str) -> tuple[float, float]:
    """Medians over fresh processes: wall seconds, processor seconds."""
    wall, cpu = [], []
    for _ in range(PROCESSES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(_seconds(_run_code, code))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(wall), statistics.median(cpu)


def _run_code(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
