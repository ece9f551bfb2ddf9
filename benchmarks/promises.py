"""Does a published promise hold for the state that is published? Every kind that has to be measured,
targets from loose to tight, many registrations.

For each kind, brute force trains many states at each of a row of sizes, at the level that a profile
looks at first, and knows the risk of each on records that nobody trained on. What 95% of them stay
within at a size is a target that this size reaches: those of small sizes are loose, those of large
ones tight. Each target is registered several times: profiled on a fresh profile slice of a window
with so many records (30% of it). Where it is reached it is trained many times as planned, on records
of the train slice. Where it is tried, each training is that of the next window, tested on its
profile slice: published is what the test accepts, once more in a third window with the samples that
are planned then. A promise is violated by a published state whose risk is above the target.

* violations at most 5%, and at most 7% with confidence 95% (by registrations), for every kind;
* targets that brute force reaches with at most half of the train slice are accepted within two
  windows;
* planned samples at most four times what brute force needs, at the median: those of the window after
  the first published state. ``planned_n`` is what the first try takes;
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
from profiler.on_trial import ETA, TriedState, likely_loss, next_try, on_trial
from profiler.profiles import MeasuredProfile, measured_profile
from ptklib.ptk import Arrays
from ptklib.validators.loss import record_losses
from ptklib.validators.power import planned_test
from ptklib.validators.verdict import eta_of_attempt

WINDOW, SHARE = 50_000, 0.3
# Where the brute force looks, and of these the sizes whose targets are registered.
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
REGISTERED = (128, 512, 2048, 8192)
TRAININGS, REGISTRATIONS, RETRAININGS = 40, 20, 10
# What a test of a state on trial costs, on a stream with epsilon 1.
TEST_EPSILON = Fraction(9, 10)
_TEST = 8_000
_LEVEL = Fraction(3, 5)
_BETTER = 0.9
_QUANTILE = 0.95

Row = dict[str, Any]


def run(say: Say, data: Path | None = None) -> Report:
    report, ratios = Report(), list[float]()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for family in families(data):
            say(family.name)
            known = _Known.of(family)
            jobs = [
                (family, known, size, seed) for size in REGISTERED for seed in range(REGISTRATIONS)
            ]
            rows = list(pool.map(_registered, jobs))
            report.bars += _bars(family, known, rows)
            ratios += [row["settled"] / row["needed"] for row in rows if row["published"]]
            report.figures[family.name] = list(_table(known, rows))
    told = "all kinds: planned samples over brute force's, median"
    report.bars.append(at_most(told, float(np.median(ratios)), 4))
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
    return family.ptk.eval(_state(family, size, rng), test.to_batches())


def _state(family: Family, size: int, rng: np.random.Generator) -> Arrays:
    rows = family.draw(rng, size).to_batches()
    return family.ptk.train_dp(rows, epsilon=_LEVEL, delta=family.delta)


def _constant(family: Family, test: pa.Table) -> float | None:
    if family.label is None:
        return None
    blinded = Blinded(family.ptk)
    rows = family.draw(np.random.default_rng(9), 20_000)
    state = blinded.train_dp(rows.to_batches(), epsilon=1000, delta=family.delta)
    return float(blinded.loss(state, test.to_batches()).mean())


def _registered(job: tuple[Family, _Known, int, int]) -> Row:
    """One registration at the target of that size: profiled in one window, trained in the next."""
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
    trainable = int(WINDOW * (1 - SHARE))
    trial = on_trial(
        found, terms, trainable=trainable, test_records=records, test_epsilon=TEST_EPSILON
    )
    planned = (trial or found).profile.samples[-1]
    told = _Told(family, terms, known.target(size), rng)
    if planned is not None and planned <= trainable:
        for _ in range(RETRAININGS):
            if trial is None:
                told.published(_state(family, planned, rng), planned)
            else:
                told.tried(trial, trainable)
    return {
        "size": size,
        "target": target,
        "needed": known.needed(target),
        "status": (trial or found).status,
        "planned": planned,
        "accepted": told.accepted / RETRAININGS,
        "published": len(told.risks),
        "missed": sum(risk > target for risk in told.risks),
        "settled": float(np.median(told.settled)) if told.settled else None,
        "again": told.again / max(1, told.accepted),
        "worst": max(told.risks, default=None),
        "warned": found.vain,
    }


class _Told:
    """What became of the trainings of one registration, each with the windows that follow it."""

    def __init__(
        self, family: Family, terms: ProfileTerms, target: float, rng: np.random.Generator
    ) -> None:
        self._family, self._terms, self._rng = family, terms, rng
        self._rows = family.test(_TEST)
        self._records = int(WINDOW * SHARE)
        self._test = planned_test(
            target=repr(target),
            epsilon=TEST_EPSILON,
            eta=eta_of_attempt(ETA, 1),
            records=self._records,
        )
        self._aim = likely_loss(terms, records=self._records, epsilon=TEST_EPSILON)
        self.risks: list[float] = []
        self.settled: list[int] = []
        self.accepted = self.again = 0

    def published(self, state: Arrays, samples: int) -> None:
        """A state that everybody gets, and the samples that the next window trains with."""
        self.risks.append(self._family.ptk.eval(state, self._rows.to_batches()))
        self.accepted += 1
        self.settled.append(samples)

    def tried(self, trial: MeasuredProfile, trainable: int) -> None:
        """The window after the profile, and if its state passes another one as planned then."""
        samples = trial.profile.samples[-1]
        assert samples is not None
        assert self._aim is not None
        state = _state(self._family, samples, self._rng)
        tested = self._tested(state, samples)
        if not tested.accepted:
            return
        looks = trial.results[-1].looks
        after = next_try(trial.profile, looks, [tested], aim=self._aim, trainable=trainable)
        assert after is not None
        fewer = after.samples[-1]
        assert fewer is not None
        self.published(state, fewer)
        second = _state(self._family, fewer, self._rng)
        if self._tested(second, fewer).accepted:
            self.again += 1
            self.risks.append(self._family.ptk.eval(second, self._rows.to_batches()))

    def _tested(self, state: Arrays, samples: int) -> TriedState:
        """The test of a state, on the profile slice of a window of its own."""
        rows = self._family.draw(self._rng, int(self._rng.poisson(self._records)))
        losses = record_losses(self._family.ptk, state, rows.to_batches())
        verdict = self._test.verdict(losses)
        return TriedState.of(
            self._test, verdict, epsilon=_LEVEL, samples=samples, records=self._records
        )


def _bars(family: Family, known: _Known, rows: list[Row]) -> Iterator[Bar]:
    name = family.name
    published = [row for row in rows if row["published"]]
    if published:
        missed, spread = _violations(published)
        yield at_most(f"{name}: published promises that are violated", missed, 0.05)
        yield at_most(f"{name}: the same, with confidence 95%", missed + 1.65 * spread, 0.07)
    half = WINDOW * (1 - SHARE) / 2
    asked = [row for row in rows if row["needed"] is not None and row["needed"] <= half]
    accepted = float(np.mean([row["accepted"] for row in asked])) if asked else 1.0
    yield at_least(
        f"{name}: targets within half of the train slice that are accepted", accepted, _BETTER
    )
    if known.constant is not None:
        worst = [row["worst"] for row in published if not row["warned"]]
        beaten = float(np.mean([risk < known.constant for risk in worst])) if worst else 1.0
        yield at_least(f"{name}: published states that beat the best constant", beaten, 1.0)


def _violations(published: list[Row]) -> tuple[float, float]:
    """The share of published states above their target, and its standard error: states of one
    registration stand or fall together, so it is that of a ratio of sums over registrations.
    """
    states = np.array([row["published"] for row in published], dtype=float)
    missed = np.array([row["missed"] for row in published], dtype=float)
    share = missed.sum() / states.sum()
    if len(published) == 1:
        return float(share), 1.0
    each = missed - share * states
    spread = (len(each) * each.var(ddof=1)) ** 0.5 / states.sum()
    return float(share), float(spread)


def _table(known: _Known, rows: list[Row]) -> Iterator[Row]:
    for size in REGISTERED:
        mine = [row for row in rows if row["size"] == size]
        published = [row for row in mine if row["published"]]
        states = sum(row["published"] for row in published)
        missed = sum(row["missed"] for row in published)
        yield {
            "target": mine[0]["target"],
            "brute_force_n": mine[0]["needed"],
            "accepted": round(float(np.mean([row["accepted"] for row in mine])), 3),
            "again": round(float(np.mean([row["again"] for row in published] or [0])), 3),
            "planned_n": int(np.median([row["planned"] for row in published]))
            if published
            else None,
            "settled_n": int(np.median([row["settled"] for row in published]))
            if published
            else None,
            "violations": round(missed / states, 3) if states else None,
            "constant": None if known.constant is None else round(known.constant, 4),
            "status": ", ".join(sorted({row["status"] for row in mine})),
        }
