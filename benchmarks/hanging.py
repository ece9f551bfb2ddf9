"""A follower is stopped (SIGSTOP) a hundred times while it is busy: how long do a push and a change
at the leader take?

Two real ``sage serve`` processes on one store and one PostgreSQL. The baseline of the same run is
the same work while nobody is stopped.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.bars import Report, Say, at_most
from devtools.servers.postgres import start_postgres
from tests.engine.small import day, spec
from tests.rpc.stopping import waits_while_stopped
from tests.rpc.two_servers import served

STOPS = 100
_SECONDS = 5


def run(say: Say) -> Report:
    postgres = start_postgres(say)
    try:
        with (
            postgres.database() as url,
            tempfile.TemporaryDirectory(prefix="sage-hanging-") as folder,
            served(Path(folder), url, lease_seconds=10) as leader,
            served(Path(folder), url, lease_seconds=10) as follower,
        ):
            with leader.store() as store:
                store.create_stream(spec(name="quiet"))
                quiet = []
                for number in range(20):
                    begin = time.monotonic()
                    store.push("quiet", day(0, 10), producer="p", seq=number)
                    quiet.append(time.monotonic() - begin)
            waits = waits_while_stopped(leader, follower, stops=STOPS, seed=7)
    finally:
        postgres.server.close()
    say(f"longest {max(waits):.2f} s, median {median(waits):.3f} s; quiet {median(quiet):.3f} s")
    return Report(
        bars=[
            at_most(
                f"seconds, the longest wait at the leader over {STOPS} stops of a busy follower",
                max(waits),
                _SECONDS,
            )
        ],
        figures={
            "stops": len(waits),
            "median seconds": round(median(waits), 4),
            "median seconds of a push while nobody is stopped": round(median(quiet), 4),
            "stops that held the leader up for more than a second": sum(one > 1 for one in waits),
        },
    )
