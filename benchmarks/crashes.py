"""Ten thousand seeded crash simulations of the ledger (``ptklib.testing.ledger_simulation``), on
all cores.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib.testing.ledger_simulation import SimulationFailure, simulate_ledger
from tests.ledger.simulated import open_simulated

SIMULATIONS = 10_000
_CHUNK = 100


def run(say: Say) -> Report:
    totals: dict[str, int] = {}
    failures: list[str] = []
    done = 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for part, failed in pool.map(_simulate, range(0, SIMULATIONS, _CHUNK)):
            for name, value in part.items():
                totals[name] = totals.get(name, 0) + value
            failures += failed
            done += _CHUNK
            if done % 1000 == 0:
                say(
                    f"{done:,} simulations, {totals['crashes']:,} crashes, {len(failures)} failures"
                )
    return Report(
        bars=[
            at_least("seeded crash simulations", done, SIMULATIONS),
            at_most(
                "simulations that lost, doubled, mis-replayed or over-admitted anything",
                len(failures),
                0,
            ),
            at_least(
                "crashes with a command in flight that survived", totals["in_flight_kept"], 1000
            ),
            at_least(
                "crashes with a command in flight that was lost", totals["in_flight_lost"], 1000
            ),
        ],
        figures={"totals": [totals], "failures": failures[:10]},
    )


def _simulate(first: int) -> tuple[dict[str, int], list[str]]:
    totals: dict[str, int] = {}
    failures = []
    for seed in range(first, first + _CHUNK):
        try:
            report = asdict(simulate_ledger(open_simulated, seed))
        except SimulationFailure as failure:
            failures.append(str(failure))
            continue
        report.pop("seed")
        for name, value in report.items():
            totals[name] = totals.get(name, 0) + value
    return totals, failures
