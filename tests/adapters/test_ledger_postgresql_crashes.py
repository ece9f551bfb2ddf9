"""The crash simulation of the ledger on a real PostgreSQL: a process dies before or after any
statement, and starts again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from devtools.servers.postgres import Postgres
from ptklib.ledger import decide
from ptklib.testing import ledger_simulation
from ptklib.testing.ledger_simulation import SimulationFailure, SimulationReport, simulate_ledger
from ptkstore.ledger import Ledger
from ptkstore.ledger.postgres.journal import PostgresJournal
from tests.adapters.postgres_disk import PostgresDisk

_KEY = bytes(range(32))
Open = Callable[[Any, Callable[[], float]], Ledger]


def open_on(disk: PostgresDisk, clock: Callable[[], float]) -> Ledger:
    return Ledger(
        PostgresJournal(disk.connection, lambda _fresh: _KEY), _KEY, clock=clock, snapshot_every=25
    )


@pytest.fixture
def simulate(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Open, int], SimulationReport]:
    def run(open_ledger: Open, seed: int) -> SimulationReport:
        with postgres.database() as url:
            disk = PostgresDisk(url, random.Random(f"disk {seed}"))
            monkeypatch.setattr(ledger_simulation, "SimulatedDisk", lambda: disk)
            try:
                return simulate_ledger(open_ledger, seed)
            finally:
                disk.close()

    return run


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_no_crash_loses_doubles_or_exceeds(
    simulate: Callable[[Open, int], SimulationReport], first: int
) -> None:
    reports = [simulate(open_on, seed) for seed in range(first, first + 10)]
    # The runs must have met what they are for.
    assert sum(report.crashes for report in reports) > 20
    assert sum(report.in_flight_kept for report in reports) > 1
    assert sum(report.in_flight_lost for report in reports) > 1
    assert sum(report.refusals for report in reports) > 10
    assert sum(report.charges for report in reports) > 60


def caught(simulate: Callable[[Open, int], SimulationReport], open_ledger: Open) -> bool:
    for seed in range(15):
        try:
            simulate(open_ledger, seed)
        except SimulationFailure:
            return True
    return False


def test_it_notices_a_commit_that_is_answered_and_not_made(
    simulate: Callable[[Open, int], SimulationReport],
) -> None:
    class Forgetful(PostgresJournal):
        """Leaves every third commit out, and says it is there."""

        turns = 0

        def append_next(self, body: bytes) -> bool:
            Forgetful.turns += 1
            if Forgetful.turns % 3 == 0:
                return True
            return super().append_next(body)

    def forgetful(disk: PostgresDisk, clock: Callable[[], float]) -> Ledger:
        return Ledger(Forgetful(disk.connection, lambda _fresh: _KEY), _KEY, clock=clock)

    assert caught(simulate, forgetful)


def test_it_notices_a_check_that_is_missing(
    simulate: Callable[[Open, int], SimulationReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "_check_room", lambda *_: None)
    assert caught(simulate, open_on)
