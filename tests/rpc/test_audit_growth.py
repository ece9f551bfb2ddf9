"""How fast somebody calls does not make the audit log grow, and what is old can be moved away with
its chain kept.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptklib.errors import SageError
from ptkstore.engine.history.audit_segments import rotate, verify
from ptkstore.metadata import Metadata
from ptkstore.metadata.access.audit import AuditRow, Decision
from ptkstore.rpc.gate import tally as rpc_tally
from ptkstore.rpc.gate.tally import LogTally
from ptkstore.v1 import ptk_pb2
from tests.rpc.calling import Clients

GET = "/ptkstore.v1.PtkService/GetPtk"
DAY_MS = 86_400_000


def entries(clients: Clients) -> list[AuditRow]:
    clients.server._auditor.flush()
    with clients.store.parts.metadata.read() as tx:
        tx.audit.verify()
        return list(tx.audit.list())


@pytest.mark.parametrize(
    ("token", "outcome"),
    [
        (None, {"DENIED", "RATE_LIMITED"}),
        ("sage_0123456789ab_" + "x" * 43, {"DENIED", "RATE_LIMITED"}),
        ("ann", {"ALLOWED"}),
    ],
)
def test_a_thousand_calls_are_a_handful_of_entries(
    clients: Clients, token: str | None, outcome: set[str]
) -> None:
    """Whoever calls, and whether they are let in: the first is there at once, the others are
    counted.
    """
    shown = clients.token("ann", "reader") if token == "ann" else token
    before = len(entries(clients))
    for _ in range(1_000):
        clients.call(GET, shown, ptk_pb2.GetPtkRequest(name="hour-speed"))
    soon = entries(clients)
    assert 1 <= len(soon) - before <= len(outcome)
    clients.server._auditor._chain(clients.server._auditor._tally.over(all_of_them=True))
    fresh = entries(clients)[: -before or None]
    assert {one.outcome for one in fresh} == outcome
    assert len(fresh) <= 2 * len(outcome)
    assert sum(one.times for one in fresh) == 1_000


def test_who_is_known_goes_on_beside_strangers_at_the_same_address(clients: Clients) -> None:
    for number in range(400):
        clients.call(GET, f"sage_{number:012x}_" + "x" * 43)
    assert clients.call(GET, None) == "RESOURCE_EXHAUSTED RATE_LIMITED"
    # One that this server has never seen: it reads the tokens anew within seconds, however many
    # strangers there are.
    late = clients.token("late", "operator")
    deadline = time.monotonic() + 30
    while (answer := clients.call("/ptkstore.v1.StreamService/ListStreams", late)) != "OK":
        assert answer == "RESOURCE_EXHAUSTED RATE_LIMITED"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_repeats_is_counted_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    tally = LogTally(lambda: now[0])
    one = Decision(1, "ann", "GetPtk", "p", "ALLOWED")
    assert tally.first(one) == one
    assert tally.first(Decision(2, "ann", "GetPtk", "p", "ALLOWED")) is None
    assert tally.first(Decision(3, "ann", "GetPtk", "p", "ALLOWED")) is None
    other = Decision(3, "ann", "GetPtk", "q", "ALLOWED")
    assert tally.first(other) == other
    now[0] = 59.0
    assert tally.over() == []
    now[0] = 60.0
    assert tally.over() == [Decision(3, "ann", "GetPtk", "p", "ALLOWED", 2)]
    assert tally.first(one) == one
    monkeypatch.setattr(rpc_tally, "MOST_EACH", 1)
    many = [
        tally.first(Decision(4, "ann", "GetPtk", f"r{number}", "ALLOWED")) for number in range(5)
    ]
    assert many == [Decision(4, "ann", "GetPtk", "(many)", "ALLOWED"), None, None, None, None]
    assert tally.first(Decision(4, "bob", "GetPtk", "r0", "ALLOWED")) is not None


def fill(metadata: Metadata, count: int = 25) -> None:
    with metadata.write() as tx:
        tx.audit.add_all(
            Decision(number * DAY_MS, "ann", "what", "", "ALLOWED", 1 + number % 3)
            for number in range(count)
        )


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[Metadata]:
    with Metadata.open(tmp_path / "meta.db") as found:
        yield found


def test_old_entries_are_moved_and_the_chain_goes_through_files_and_log(
    metadata: Metadata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptkstore.engine.history.audit_segments.ENTRIES_PER_FILE", 10)
    fill(metadata)
    with metadata.read() as tx:
        newest = tx.audit.digest()
    made = rotate(metadata, tmp_path / "audit", before_ms=20 * DAY_MS, now_ms=30 * DAY_MS)
    assert [(one.id, one.entries) for one in made] == [(10, 10), (20, 10)]
    found = verify(metadata, tmp_path / "audit")
    # Each time it is moved is an entry, too.
    assert (found.segments, found.moved, found.entries) == (2, 20, 7)
    with metadata.read() as tx:
        assert newest in {one.digest for one in tx.audit.list()}
    fill(metadata, 3)
    assert verify(metadata, tmp_path / "audit").entries == 10
    assert rotate(metadata, tmp_path / "audit", before_ms=20 * DAY_MS, now_ms=30 * DAY_MS) == []
    assert all(one.stat().st_mode & 0o777 == 0o600 for one in (tmp_path / "audit").iterdir())


@pytest.mark.parametrize("what", ["changed", "missing", "swapped"])
def test_a_file_that_is_not_what_was_written_is_noticed(
    metadata: Metadata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("ptkstore.engine.history.audit_segments.ENTRIES_PER_FILE", 10)
    fill(metadata)
    first, second = rotate(metadata, tmp_path, before_ms=20 * DAY_MS, now_ms=30 * DAY_MS)
    path = tmp_path / first.file
    if what == "changed":
        path.write_bytes(path.read_bytes().replace(b"ann", b"eve"))
    elif what == "missing":
        path.unlink()
    else:
        path.write_bytes((tmp_path / second.file).read_bytes())
    with pytest.raises(SageError) as error:
        verify(metadata, tmp_path)
    assert error.value.reason == ("AUDIT_SEGMENT_MISSING" if what == "missing" else "AUDIT_DAMAGED")


def test_the_database_lets_go_of_nothing_that_no_segment_holds(
    metadata: Metadata, tmp_path: Path
) -> None:
    fill(metadata)
    rotate(metadata, tmp_path, before_ms=5 * DAY_MS, now_ms=30 * DAY_MS)
    with sqlite3.connect(tmp_path / "meta.db") as connection:
        for statement in (
            "DELETE FROM audit WHERE id = 6",
            "UPDATE audit SET who = 'eve' WHERE id = 6",
            "DELETE FROM audit_segments",
            "UPDATE audit_segments SET id = 9",
            "INSERT INTO audit_segments VALUES (9, 4, 'x', 'f', 'x', 0)",
        ):
            with pytest.raises(sqlite3.IntegrityError, match=r"append-only|ends with an entry"):
                connection.execute(statement)
    connection.close()
