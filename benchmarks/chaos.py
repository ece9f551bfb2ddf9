"""Two minutes of load on the service while its server, Redis, the S3 server and PostgreSQL are
killed (SIGKILL) in turn.

All are real processes; each is started again after 0.2 to 3 seconds, on the same port and data.
What is judged, and how, is told in ``tests/rpc/chaos.py`` and ``tests/rpc/chaos_verdict.py``; every
bar is a number of things that must not happen.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from benchmarks.bars import Report, Say, at_most
from tests.rpc.chaos import VICTIMS, chaos
from tests.rpc.chaos_backends import own_backends
from tests.rpc.chaos_verdict import judge

SECONDS = 120
# Fewer kills of one of them would prove little.
LEAST_KILLS = 4


def run(say: Say) -> Report:
    seed = random.SystemRandom().randrange(10**6)
    say(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="sage-chaos-") as folder, own_backends(say) as backends:
        told = chaos(Path(folder), backends, seconds=SECONDS, seed=seed, say=say)
        verdict = judge(Path(folder), told)
    rare = [victim for victim in VICTIMS if told.kills[victim] < LEAST_KILLS]
    return Report(
        bars=[
            at_most("acknowledged rows lost", verdict.rows_lost, 0),
            at_most("rows doubled, or there and never sent", verdict.rows_doubled, 0),
            at_most("charges lost: work that ran and was not charged", verdict.charges_lost, 0),
            at_most("charges doubled, or made for nothing that ran", verdict.charges_doubled, 0),
            at_most("charges that stay reserved", verdict.charges_reserved, 0),
            at_most("states unreadable, damaged or missing", verdict.states_unreadable, 0),
            at_most(
                "subscribers that did not end on the newest version", verdict.subscribers_behind, 0
            ),
            at_most(
                "subscribers that were told out of order or not of every version",
                verdict.versions_missed,
                0,
            ),
            at_most("windows, operations and blocks left unfinished", verdict.unfinished, 0),
            at_most(
                "errors, hangs, deaths of the server, and refusals while only Redis was away",
                verdict.wrong,
                0,
            ),
            at_most(f"victims killed fewer than {LEAST_KILLS} times", len(rare), 0),
        ],
        figures={"seed": seed, **verdict.figures, "what went wrong": verdict.notes[:20]},
    )
