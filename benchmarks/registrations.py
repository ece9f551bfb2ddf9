"""Registrations: how much CPU an answer takes, and whether appends notice.

*Seven*: the stream of flights under Renyi accounting, six PTKs that fit or wait and one that does
not, at several sizes of the window. *Two hundred*: one after the other on one stream, every third
of them out of reach. *Families*: PTKs with jagged measured profiles beside some with closed forms,
at windows around the least that any plan needs, where the answer is hardest to find, for every
composition that plans are made for. All of these in CPU seconds of the process, so that a busy
machine counts the same.

*Appends*: small batches to a server in a process of its own, in short turns while nobody registers
and while somebody does so without a pause (``_registrations/appends.py``); the p99 of the latencies
beside each other.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from allocator.admission.coordinates import room_of, usable_coordinates
from allocator.admission.reach import least_in_each
from benchmarks._registrations.appends import measured
from benchmarks.bars import Report, Say, at_least, at_most
from profiler.analytic import Profile
from profiler.levels import privacy_levels
from ptklib import registry
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.goal import Goal
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.plans.answering import answer_of
from ptkstore.engine.plans.planning import Candidate, fresh_loss, offers_of
from ptkstore.engine.plans.registrations import unwritten
from tests.engine import flights

SIZES = (150_000, 100_000, 60_000, 49_000)
MANY = 200
FAMILIES = (7, 50, 200)
NEAR = (0.999, 1.001, 1.02, 1.2)
SECONDS = 2.0


def run(say: Say) -> Report:
    seven = [_seven(size, say) for size in SIZES]
    many = _many(say)
    families = [row for ptks in FAMILIES for row in _family(ptks, say)]
    appends = measured(say)
    cpu = [row["cpu_s"] for row in families]
    return Report(
        bars=[
            at_most(
                "CPU seconds of the slowest of the seven registrations",
                max(one["slowest_s"] for one in seven),
                SECONDS,
            ),
            at_least(
                "of the seven the last is rejected with a nearest target",
                min(one["told"] for one in seven),
                1,
            ),
            at_most(
                "CPU seconds of 200 registrations in a row, 95th percentile", many["p95_s"], SECONDS
            ),
            at_most(
                "CPU seconds of the hardest questions, 95th percentile",
                float(np.percentile(cpu, 95)),
                SECONDS,
            ),
            at_most(
                "p99 of appends while somebody registers / quiet",
                appends["busy_p99_ms"] / appends["quiet_p99_ms"],
                2.0,
            ),
        ],
        figures={
            "seven": seven,
            "two hundred": [many],
            "families": _summary(families),
            "appends": [{key: round(value, 2) for key, value in appends.items()}],
        },
    )


def _seven(n_max: int, say: Say) -> dict[str, Any]:
    say(f"seven registrations, windows of {n_max}")
    with tempfile.TemporaryDirectory() as folder, Store(folder, workers=0) as store:
        store.create_stream(flights.spec(n_max=n_max))
        seconds = []
        for name, kind, config, target in flights.PTKS:
            begin = time.process_time()
            answer = store.register(name, stream="flights", kind=kind, config=config, target=target)
            seconds.append(time.process_time() - begin)
    told = answer.status == "REJECTED" and answer.nearest_target is not None
    return {
        "n_max": n_max,
        "slowest_s": round(max(seconds), 3),
        "told": int(told),
        "nearest": answer.nearest_target,
        "refining": answer.refining,
    }


def _many(say: Say) -> dict[str, Any]:
    rng = random.Random(1)
    keys = ([flights.of_carriers()], [flights.of_hours()], [flights.of_origins()])
    wide = flights.mean(flights.of_carriers(), flights.of_hours())
    seconds, accepted, refining = [], 0, 0
    with tempfile.TemporaryDirectory() as folder, Store(folder, workers=0) as store:
        store.create_stream(flights.spec(n_max=200_000))
        for number in range(MANY):
            if number % 20 == 0:
                say(f"registration {number} of {MANY}")
            sharp = number % 3 == 2
            config = wide if sharp else flights.mean(*rng.choice(keys))
            target = rng.uniform(0.002, 0.008) if sharp else rng.uniform(0.1, 0.5)
            begin = time.process_time()
            answer = store.register(
                f"p{number}", stream="flights", kind="statistics", config=config, target=target
            )
            seconds.append(time.process_time() - begin)
            accepted += answer.status == "ACTIVE"
            refining += answer.refining
    return {
        "p50_s": round(float(np.percentile(seconds, 50)), 3),
        "p95_s": round(float(np.percentile(seconds, 95)), 3),
        "max_s": round(max(seconds), 3),
        "accepted": accepted,
        "refining": refining,
    }


def _family(ptks: int, say: Say) -> list[dict[str, Any]]:
    found = []
    for composition, delta in (
        ("renyi", "1e-6"),
        ("gaussian", "1e-6"),
        ("basic", "1e-6"),
        ("pure", 0),
    ):
        for jagged in (0.0, 0.5, 1.0):
            rng = random.Random(f"{ptks} {composition} {jagged}")
            policy = Policy(epsilon=1, delta=delta, composition=composition)
            spec = flights.spec(policy=policy, n_max=10**9)
            privacy_filter = policy.filter()
            candidates = [_candidate(rng, k, jagged) for k in range(ptks)]
            bounds = _bounds(spec, candidates)
            say(f"{ptks} PTKs, {composition}, {jagged:.0%} jagged")
            for near in NEAR if bounds else ():
                tight = replace(spec, n_max=max(1, int(min(bounds) * near)))
                begin = time.process_time()
                answer = answer_of(tight, privacy_filter, candidates[:-1], candidates[-1])
                seconds = time.process_time() - begin
                found.append(
                    {
                        "ptks": ptks,
                        "composition": composition,
                        "cpu_s": seconds,
                        "rejected": answer.status == "REJECTED",
                        "refining": answer.refining,
                    }
                )
    return found


def _bounds(spec: StreamSpec, candidates: list[Candidate]) -> list[int]:
    privacy_filter = spec.policy.filter()
    loss = fresh_loss(spec, privacy_filter)
    offers = [offers_of(spec, privacy_filter, one) for one in candidates]
    found = least_in_each(
        privacy_filter,
        room_of(privacy_filter, loss),
        offers,
        usable_coordinates(privacy_filter, loss),
    )
    return [one for one in found.values() if one]


def _candidate(rng: random.Random, number: int, jagged: float) -> Candidate:
    """One with a closed form, or one whose measured samples jump from level to level."""
    if rng.random() >= jagged:
        keys = rng.choice(
            (
                [flights.of_carriers()],
                [flights.of_hours()],
                [flights.of_origins(), flights.of_hours()],
            )
        )
        config, target = flights.mean(*keys), 10 ** rng.uniform(-2, -0.5)
        row = unwritten(f"p{number}", "flights", "statistics", config, Goal(target))
        return Candidate(row, registry.make("statistics", config))
    levels = privacy_levels(1)
    size, samples = 10 ** rng.uniform(2.5, 5), list[int | None]()
    least = 10**9
    for level in levels:
        least = min(
            least, max(1, int(size / float(level) ** rng.uniform(0.5, 1.3) * rng.uniform(0.5, 1.5)))
        )
        samples.append(least)
    unreached = rng.choice((0, 0, 0, 2, 5))
    samples[:unreached] = [None] * unreached
    config = flights.PTKS[4][2]
    measured = Profile(levels, tuple(samples), Fraction(1, 2), Fraction(19, 20), source="measured")
    row = unwritten(f"p{number}", "flights", "clusters", config, Goal(0.5))
    return Candidate(row, registry.make("clusters", config), measured)


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for ptks, composition in sorted({(row["ptks"], row["composition"]) for row in rows}):
        here = [row for row in rows if (row["ptks"], row["composition"]) == (ptks, composition)]
        found.append(
            {
                "ptks": ptks,
                "composition": composition,
                "p50_s": round(statistics.median(row["cpu_s"] for row in here), 3),
                "max_s": round(max(row["cpu_s"] for row in here), 3),
                "rejected": sum(row["rejected"] for row in here),
                "refining": sum(row["refining"] for row in here),
            }
        )
    return found
