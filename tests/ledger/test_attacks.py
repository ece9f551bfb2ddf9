"""Attacks that once worked, or nearly, on a file: each stays closed."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from ptklib.errors import JournalDamaged, JournalUnavailable
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore.ledger import Ledger
from tests.ledger.attack_suite import AttackSuite
from tests.ledger.places import open_book

A = [Slice(("a",))]
TENTH = PureCost(epsilon="0.1")


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def book(address: str) -> str:
    open_book(address, "a", "b").close()
    return address


class TestAttacks(AttackSuite):
    """What no ledger may allow."""


TRIGGERS = (
    "CREATE TRIGGER t AFTER INSERT ON commits BEGIN DELETE FROM commits WHERE seq = NEW.seq; END",
    "CREATE TRIGGER t BEFORE INSERT ON commits BEGIN SELECT RAISE(IGNORE); END",
)


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_journal_that_swallows_commits_is_noticed(book: str, trigger: str) -> None:
    with Ledger.open(book) as ledger:
        intruder = sqlite3.connect(book)
        intruder.execute(trigger)
        intruder.commit()
        intruder.close()
        admitted = 0
        with suppress(JournalDamaged, JournalUnavailable):
            for _ in range(5):
                ledger.charge("s", A, TENTH)
                admitted += 1
        assert admitted <= 1
    with pytest.raises(JournalDamaged) as refusal:
        Ledger.open(book)
    assert refusal.value.reason == "SCHEMA_ALTERED"


def test_a_commit_needs_the_one_before_it(book: str) -> None:
    with Ledger.open(book) as ledger:
        ledger.charge("s", A, TENTH)
        intruder = sqlite3.connect(book)
        intruder.execute("DELETE FROM commits WHERE seq = 3")
        intruder.commit()
        intruder.close()
        with pytest.raises(JournalDamaged) as refusal:
            ledger.charge("s", A, TENTH)
        assert refusal.value.reason == "HISTORY_CUT"
