"""Crash simulations with fixed seeds, and proof that the simulation notices ledgers that are
wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import apsw
import pytest

from ptklib.encoding.canonical import canonical_entries
from ptklib.ledger import decide
from ptklib.testing.ledger_simulation import SimulationFailure, simulate_ledger
from ptkstore.ledger import Ledger
from ptkstore.ledger.journals.sqlite import Journal
from tests.ledger.simulated import open_simulated

SEEDS = 400
_KEY = bytes(32)


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_no_crash_loses_doubles_or_exceeds(first: int) -> None:
    reports = [simulate_ledger(open_simulated, seed) for seed in range(first, first + 50)]
    # The runs must have met what they are for.
    assert sum(report.crashes for report in reports) > 100
    assert sum(report.in_flight_kept for report in reports) > 5
    assert sum(report.in_flight_lost for report in reports) > 5
    assert sum(report.refusals for report in reports) > 50
    assert sum(report.charges for report in reports) > 300


def test_a_seed_gives_the_same_run_again() -> None:
    assert simulate_ledger(open_simulated, 7) == simulate_ledger(open_simulated, 7)


def caught(open_ledger: Callable[[Any, Callable[[], float]], Any], seeds: int = 60) -> bool:
    for seed in range(seeds):
        try:
            simulate_ledger(open_ledger, seed)
        except SimulationFailure:
            return True
    return False


def test_it_notices_a_journal_that_does_not_wait_for_the_disk() -> None:
    def lax(connection: Any, clock: Callable[[], float]) -> Ledger:
        ledger = Ledger(Journal(connection, _KEY, apsw.Error), _KEY, clock=clock)
        connection.execute("PRAGMA synchronous = OFF")
        return ledger

    assert caught(lax)


def test_it_notices_an_answer_given_before_the_commit() -> None:
    class Hasty(Journal):
        """Commits every other time."""

        turns = 0

        def append_next(self, body: bytes) -> bool:
            Hasty.turns += 1
            if not self._db.in_transaction:
                self.begin()
            super().append_next(body)
            if Hasty.turns % 2 == 0:
                self.commit()
            return True

    def hasty(connection: Any, clock: Callable[[], float]) -> Ledger:
        return Ledger(Hasty(connection, _KEY, apsw.Error), _KEY, clock=clock)

    assert caught(hasty)


def test_it_notices_a_spend_that_is_made_twice() -> None:
    class Twice(Journal):
        def append_next(self, body: bytes) -> bool:
            entries = json.loads(body)
            again = [
                entry | {"charge": entry["charge"] + 1}
                for entry in entries
                if entry["kind"] == "reserve"
            ]
            return super().append_next(canonical_entries(entries + again))

    def twice(connection: Any, clock: Callable[[], float]) -> Ledger:
        return Ledger(Twice(connection, _KEY, apsw.Error), _KEY, clock=clock)

    assert caught(twice)


@pytest.mark.parametrize("check", ["_check_room", "_check_quota"])
def test_it_notices_a_check_that_is_missing(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, check, lambda *_: None)
    assert caught(open_simulated)
