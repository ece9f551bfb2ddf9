"""Does a published promise hold for the state that is published? Every kind that has to be measured,
targets from loose to tight, many registrations.

For each kind, brute force trains many states at each of a row of sizes, at the level that a profile
looks at first, and knows the risk of each on records that nobody trained on. What 95% of them stay
within at a size is a target that this size reaches: those of small sizes are loose, those of large
ones tight. Each target is registered several times: profiled on a fresh profile slice of a window
with so many records (30% of it), and where it is reached, trained many times as planned, on records
of the train slice. A promise is violated by a state whose risk is above the target.

* violations at most 5%, and at most 7% with confidence 95% (by registrations), for every kind;
* targets that brute force reaches with at most half of the train slice are accepted;
* planned samples at most four times what brute force needs, at the median;
* states of supervised kinds beat the best constant, which is what the kind learns of records whose
  inputs are all alike, unless the target was answered with a warning that a constant keeps it.

Closed forms promise in the same way and take no profile; `python -m benchmarks ptks` has them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks._profiler.promised import Family, families
from benchmarks.bars import Bar, Report, Say, at_least, at_most
from profiler.fitting import fitted_schedule
from profiler.levels import privacy_levels
from profiler.measuring.bench import MemoryBench
from profiler.measuring.constant import Blinded
from profiler.measuring.terms import ProfileTerms
from profiler.profiles import measured_profile

WINDOW, SHARE = 50_000, 0.3
# Where the brute force looks, and of these the sizes whose targets are registered.
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
REGISTERED = (128, 512, 2048, 8192)
TRAININGS, REGISTRATIONS, RETRAININGS = 40, 6, 20
_TEST = 8_000
_LEVEL = Fraction(3, 5)
_BETTER = 0.9
_QUANTILE = 0.95

Row = dict[str, Any]


def run(say: Say, data: Path | None = None) -> Report:
    report = Report()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for family in families(data):
            say(family.name)
            known = _Known.of(family)
            jobs = [
                (family, known, size, seed) for size in REGISTERED for seed in range(REGISTRATIONS)
            ]
            rows = list(pool.map(_registered, jobs))
            report.bars += _bars(family, known, rows)
            report.figures[family.name] = list(_table(known, rows))
    return report


@dataclass(frozen=True)
class _Known:
    """What brute force knows of a family: the risks of its states at each size, and of the best
    constant.
    """

    risks: dict[int, tuple[float, ...]]
    constant: float | None

    @classmethod
    def of(cls, family: Family) -> _Known:
        test = family.test(_TEST)
        risks = {}
        for size in SIZES:
            rng = np.random.default_rng([size, 1])
            risks[size] = tuple(_risk(family, size, rng, test) for _ in range(TRAININGS))
        return cls(risks, _constant(family, test))

    def target(self, size: int) -> float:
        """What nearly all states of that size stay within, in thousandths."""
        return float(np.ceil(np.quantile(self.risks[size], _QUANTILE) * 1000) / 1000)

    def needed(self, target: float) -> int | None:
        """The least size that reaches a target in nearly all trainings."""
        for size, risks in self.risks.items():
            if np.mean(np.array(risks) <= target) >= _QUANTILE:
                return size
        return None


def _risk(family: Family, size: int, rng: np.random.Generator, test: pa.Table) -> float:
    state = family.ptk.train_dp(
        family.draw(rng, size).to_batches(), epsilon=_LEVEL, delta=family.delta
    )
    return family.ptk.eval(state, test.to_batches())


def _constant(family: Family, test: pa.Table) -> float | None:
    if family.label is None:
        return None
    blinded = Blinded(family.ptk)
    rows = family.draw(np.random.default_rng(9), 20_000)
    state = blinded.train_dp(rows.to_batches(), epsilon=1000, delta=family.delta)
    return float(blinded.loss(state, test.to_batches()).mean())


def _registered(job: tuple[Family, _Known, int, int]) -> Row:
    """One registration at the target of that size."""
    family, known, size, seed = job
    target = known.target(size)
    rng = np.random.default_rng([size, seed, 2])
    levels = privacy_levels(1)[:-1]
    terms = ProfileTerms.of(repr(target), 1, delta=family.delta)
    records = int(WINDOW * SHARE)
    plan = fitted_schedule(family.ptk, terms, levels, records)
    table = family.draw(rng, int(rng.poisson(records)))
    bench = MemoryBench(table, rng.random(table.num_rows))
    found = measured_profile(family.ptk, terms, levels, bench, records, plan=plan)
    planned = found.profile.samples[-1]
    usable = planned is not None and planned <= WINDOW * (1 - SHARE)
    risks: list[float] = []
    if planned is not None and usable:
        test = family.test(_TEST)
        risks = [_risk(family, planned, rng, test) for _ in range(RETRAININGS)]
    needed = known.needed(target)
    return {
        "size": size,
        "target": target,
        "needed": needed,
        "status": found.status,
        "planned": planned,
        "accepted": usable,
        "missed": float(np.mean([risk > target for risk in risks])) if risks else None,
        "worst": max(risks) if risks else None,
        "warned": found.vain,
    }


def _bars(family: Family, known: _Known, rows: list[Row]) -> Iterator[Bar]:
    missed = np.array([row["missed"] for row in rows if row["missed"] is not None])
    name = family.name
    if len(missed):
        spread = float(missed.std(ddof=1)) / len(missed) ** 0.5 if len(missed) > 1 else 1.0
        yield at_most(f"{name}: published promises that are violated", float(missed.mean()), 0.05)
        yield at_most(
            f"{name}: the same, with confidence 95%", float(missed.mean() + 1.65 * spread), 0.07
        )
        ratio = [row["planned"] / row["needed"] for row in rows if row["missed"] is not None]
        yield at_most(
            f"{name}: planned samples over brute force's, median", float(np.median(ratio)), 4
        )
    half = WINDOW * (1 - SHARE) / 2
    asked = [row for row in rows if row["needed"] is not None and row["needed"] <= half]
    accepted = float(np.mean([row["accepted"] for row in asked])) if asked else 1.0
    yield at_least(
        f"{name}: targets within half of the train slice that are accepted", accepted, _BETTER
    )
    if known.constant is not None:
        worst = [row["worst"] for row in rows if row["missed"] is not None and not row["warned"]]
        beaten = float(np.mean([one < known.constant for one in worst])) if worst else 1.0
        yield at_least(f"{name}: published states that beat the best constant", beaten, 1.0)


def _table(known: _Known, rows: list[Row]) -> Iterator[Row]:
    for size in REGISTERED:
        mine = [row for row in rows if row["size"] == size]
        planned = [row["planned"] for row in mine if row["accepted"]]
        missed = [row["missed"] for row in mine if row["missed"] is not None]
        yield {
            "target": mine[0]["target"],
            "brute_force_n": mine[0]["needed"],
            "accepted": f"{len(planned)} of {len(mine)}",
            "planned_n": int(np.median(planned)) if planned else None,
            "violations": round(float(np.mean(missed)), 3) if missed else None,
            "constant": None if known.constant is None else round(known.constant, 4),
            "status": ", ".join(sorted({row["status"] for row in mine})),
        }
