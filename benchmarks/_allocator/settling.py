"""Answers in time: registrations and plans of windows under Renyi accounting, each by one deadline.

PTKs are those of the benchmark of registrations, at windows below and above the least that any plan
needs: there it is hardest to find a plan, or that there is none. What a plan could be is asked with
a minute of work.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks._registrations.candidates import candidate, least_of
from benchmarks.bars import Bar, Say, at_most
from ptklib.ledger.policy import Policy
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.plans.answering import FIRST, answer_of
from ptkstore.engine.plans.planning import (
    WINDOW,
    AnswerEffort,
    Candidate,
    fresh_loss,
    settle_plan,
)
from tests.engine import flights

__all__ = ["answered", "deadline_bars"]

_SIZES = (7, 50, 500)
_JAGGED = (0.0, 0.5, 1.0)
# Windows, in terms of the least that any plan needs: two in which there is none.
_NEAR = (0.9, 0.999, 1.001, 1.02, 1.2)
_ROOMY = 1.2
_SLACK = 1.2
_LONG = AnswerEffort(6e10, 60.0, final=True)


def answered(pool: Executor, say: Say, *, seeds: int) -> list[dict[str, Any]]:
    """A row for every size, family, window and kind of answer."""
    rows: list[dict[str, Any]] = []
    for ptks in _SIZES:
        say(f"answers for {ptks} PTKs")
        asked = [(jagged, seed) for jagged in _JAGGED for seed in range(seeds)]
        for found in pool.map(partial(_asked, ptks), *zip(*asked, strict=True)):
            rows += found
    return rows


def deadline_bars(rows: list[dict[str, Any]]) -> Iterable[Bar]:
    """The promises about time, and about what the time is enough for."""
    for kind in ("registration", "window"):
        for ptks in _SIZES:
            shares = [
                row["seconds"] / row["deadline"]
                for row in rows
                if (row["kind"], row["ptks"]) == (kind, ptks)
            ]
            yield at_most(
                f"{kind}s under Renyi, {ptks} PTKs: seconds / deadline, 95th percentile",
                float(np.percentile(shares, 95)),
                _SLACK,
            )
    for ptks in _SIZES:
        found = [row for row in rows if row["ptks"] == ptks and row["after a minute"] is not None]
        yield at_most(
            f"plans under Renyi, {ptks} PTKs: samples / those after 60 s, median",
            median(row["samples"] / row["after a minute"] for row in found),
            1.01,
        )


def _asked(ptks: int, jagged: float, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(f"{ptks} {jagged} {seed}")
    policy = Policy(epsilon=1, delta="1e-6", composition="renyi")
    spec = flights.spec(policy=policy, n_max=10**9)
    candidates = [candidate(rng, number, jagged) for number in range(ptks)]
    least = least_of(spec, candidates)
    rows = []
    for near in _NEAR if least else ():
        tight = replace(spec, n_max=max(1, int(min(least) * near)))
        for kind in ("registration", "window"):
            row = _timed(kind, tight, candidates)
            rows.append({"ptks": ptks, "jagged": jagged, "seed": seed, "near": near, **row})
        rows[-1]["after a minute"] = (
            settle_plan(
                tight,
                policy.filter(),
                fresh_loss(tight, policy.filter()),
                candidates,
                effort=_LONG.effort(),
            ).plan.total_samples
            if near == _ROOMY and rows[-1]["samples"] is not None
            else None
        )
    return rows


def _timed(kind: str, spec: StreamSpec, candidates: list[Candidate]) -> dict[str, Any]:
    privacy_filter = spec.policy.filter()
    begin, spent = time.perf_counter(), time.process_time()
    samples = None
    if kind == "registration":
        answer = answer_of(spec, privacy_filter, candidates[:-1], candidates[-1])
        status = answer.status + (", refining" if answer.refining else "")
    else:
        plan = settle_plan(spec, privacy_filter, fresh_loss(spec, privacy_filter), candidates).plan
        status, samples = plan.status, plan.total_samples
    return {
        "kind": kind,
        "deadline": (FIRST if kind == "registration" else WINDOW).seconds,
        "status": status,
        "samples": samples,
        "after a minute": None,
        "seconds": round(time.perf_counter() - begin, 2),
        "processor": round(time.process_time() - spent, 2),
    }
