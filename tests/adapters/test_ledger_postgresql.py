"""The ledger on PostgreSQL: all that a ledger in a file must do, intruders, cut connections, killed
servers, many servers.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from devtools.servers.cache import tell
from devtools.servers.postgres import Postgres, start_postgres
from ptklib.errors import InvalidInput, JournalDamaged, JournalUnavailable
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore.ledger import Ledger
from ptkstore.ledger.journals.chain import Head
from ptkstore.ledger.postgres import journal as postgres_journal
from ptkstore.ledger.postgres import schema as postgres_schema
from ptkstore.ledger.postgres.journal import PostgresJournal
from ptkstore.ledger.postgres.turns import Turns
from ptkstore.metadata import Metadata
from tests.ledger.attack_suite import AttackSuite
from tests.ledger.book_suite import BookSuite, spawn
from tests.ledger.places import open_book, open_ledger

A = [Slice(("a",))]
TENTH = PureCost(epsilon="0.1")
WAIT = 60.0


@pytest.fixture
def address(postgres_url: str, tmp_path: Path) -> str:
    return f"{postgres_url}#{tmp_path / 'ledger.key'}"


@pytest.fixture
def book(address: str) -> str:
    open_book(address, "a", "b").close()
    return address


@pytest.fixture
def own_postgres(postgres: Postgres) -> Iterator[Postgres]:
    """A server that a test may kill.

    It depends on the other one, so that it is skipped where there is none.
    """
    mine = start_postgres(tell)
    yield mine
    mine.server.close()


class TestBook(BookSuite):
    """Everything any journal must do."""


class TestAttacks(AttackSuite):
    """What no ledger may allow."""


def edit(address: str, statement: str, *values: object) -> None:
    """What an intruder does who can write the database and has no key."""
    with psycopg.connect(
        address.partition("#")[0], options="-c search_path=sage_ledger"
    ) as connection:
        assert connection.execute(statement, values).rowcount != 0


def damage(address: str, known: Head | None = None) -> str:
    with pytest.raises(JournalDamaged) as refusal, open_ledger(address) as ledger:
        ledger.verify(known)
    return refusal.value.reason


@pytest.fixture
def filled(book: str) -> str:
    with open_ledger(book) as ledger:
        ledger.charge("s", A, PureCost(epsilon="0.5"))
        ledger.snapshot()
        ledger.charge("s", A, PureCost(epsilon="0.4"))
        ledger.charge("s", [Slice(("b",))], PureCost(epsilon="0.3"))
    return book


def changed(seq: int, old: str, new: str) -> str:
    text = f"convert_to(replace(convert_from(body, 'UTF8'), '{old}', '{new}'), 'UTF8')"
    return f"UPDATE commits SET body = {text} WHERE seq = {seq}"


TAMPERINGS = {
    "a smaller demand": (changed(4, "400000000", "100000000"), "CHAIN_BROKEN"),
    "a smaller demand before the snapshot": (changed(3, "500000000", "100000000"), "CHAIN_BROKEN"),
    "a commit taken out": ("DELETE FROM commits WHERE seq = 4", "CHAIN_BROKEN"),
    "an old commit taken out": ("DELETE FROM commits WHERE seq = 2", "CHAIN_BROKEN"),
    "a commit copied to the end": (
        "WITH h AS (UPDATE head SET seq = 6) INSERT INTO commits SELECT 6, body, mac FROM commits "
        "WHERE seq = 5",
        "CHAIN_BROKEN",
    ),
    "an invented commit": (
        'INSERT INTO commits VALUES (6, convert_to(\'[{"charge":0,"kind":"release"}]\', '
        "'UTF8'), decode('00', 'hex'))",
        "CHAIN_BROKEN",
    ),
    "two commits swapped": (
        "UPDATE commits SET body = o.body FROM commits o WHERE o.seq = 9 - commits.seq AND "
        "commits.seq IN (4, 5)",
        "CHAIN_BROKEN",
    ),
    "an emptied snapshot": ("UPDATE snapshots SET body = decode('00', 'hex')", "SNAPSHOT_INVALID"),
    "a snapshot moved forward": ("UPDATE snapshots SET seq = 5", "SNAPSHOT_INVALID"),
    "everything but the snapshot removed": ("DELETE FROM commits", "SNAPSHOT_INVALID"),
    "another genesis": ("UPDATE version SET genesis = decode('00', 'hex')", "KEY_INVALID"),
    "a newer schema": ("UPDATE version SET number = 99", "SCHEMA_TOO_NEW"),
    "no version": ("DELETE FROM version", "SCHEMA_ALTERED"),
    "tables that a crash empties": ("ALTER TABLE commits SET UNLOGGED", "SCHEMA_ALTERED"),
    "a rule": ("CREATE RULE r AS ON INSERT TO commits DO INSTEAD NOTHING", "SCHEMA_ALTERED"),
    "one more column": ("ALTER TABLE commits ADD COLUMN extra int", "SCHEMA_ALTERED"),
    "rows that some do not see": (
        "ALTER TABLE commits ENABLE ROW LEVEL SECURITY",
        "SCHEMA_ALTERED",
    ),
    "a view beside": ("CREATE VIEW v AS SELECT 1", "SCHEMA_ALTERED"),
}


@pytest.mark.parametrize(("statement", "reason"), list(TAMPERINGS.values()), ids=list(TAMPERINGS))
def test_tampering_without_the_key_is_noticed(filled: str, statement: str, reason: str) -> None:
    edit(filled, statement)
    assert damage(filled) == reason


def test_a_sound_journal_verifies_and_says_what_it_saw(filled: str) -> None:
    with open_ledger(filled) as ledger:
        found = ledger.verify(ledger.head)
        assert (found.commits, found.entries, found.snapshots) == (5, 5, 1)
        assert (found.head, found.digest) == (ledger.head, ledger.digest())


def test_a_journal_that_was_cut_takes_nothing_more_and_is_noticed(filled: str) -> None:
    with open_ledger(filled) as ledger:
        known = ledger.head
    edit(filled, "DELETE FROM commits WHERE seq = 5")
    with open_ledger(filled) as ledger:
        ledger.verify()  # a shorter chain is a valid chain
        with pytest.raises(JournalDamaged, match="HISTORY_CUT"):
            ledger.charge("s", [Slice(("b",))], TENTH)
    assert damage(filled, known) == "HISTORY_CUT"
    edit(filled, "DELETE FROM head")
    with open_ledger(filled) as ledger, pytest.raises(JournalDamaged, match="HISTORY_CUT"):
        ledger.charge("s", [Slice(("b",))], TENTH)


TRIGGERS = {
    "after": "BEGIN DELETE FROM sage_ledger.commits WHERE seq = NEW.seq; RETURN NULL; END",
    "before": "BEGIN RETURN NULL; END",
}


@pytest.mark.parametrize("moment", list(TRIGGERS))
def test_a_journal_that_swallows_commits_is_noticed(book: str, moment: str) -> None:
    with open_ledger(book) as ledger:
        edit(
            book,
            f"CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS '{TRIGGERS[moment]}'",
        )
        edit(
            book,
            f"CREATE TRIGGER t {moment} INSERT ON commits FOR EACH ROW EXECUTE FUNCTION public.f()",
        )
        admitted = 0
        with suppress(JournalDamaged, JournalUnavailable):
            for _ in range(5):
                ledger.charge("s", A, TENTH)
                admitted += 1
        assert admitted <= 1
    assert damage(book) == "SCHEMA_ALTERED"


def test_a_commit_needs_the_one_before_it(book: str) -> None:
    with open_ledger(book) as ledger:
        ledger.charge("s", A, TENTH)
        edit(book, "DELETE FROM commits WHERE seq = 3")
        with pytest.raises(JournalDamaged, match="HISTORY_CUT"):
            ledger.charge("s", A, TENTH)


def test_a_journal_needs_its_own_key(book: str, tmp_path: Path) -> None:
    url, _, key = book.partition("#")
    with pytest.raises(JournalDamaged, match="KEY_MISSING"):
        Ledger.open(url, key_path=tmp_path / "none.key")
    assert not (tmp_path / "none.key").exists(), "a journal must never get a new key"
    (tmp_path / "other.key").write_bytes(bytes(32))
    (tmp_path / "other.key").chmod(0o600)
    with pytest.raises(JournalDamaged, match="KEY_INVALID"):
        Ledger.open(url, key_path=tmp_path / "other.key")
    Path(key).chmod(0o644)
    with pytest.raises(JournalDamaged, match="KEY_INVALID"):
        open_ledger(book)


def test_two_who_make_a_ledger_with_different_keys_get_one_ledger(
    postgres_url: str, tmp_path: Path
) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(4)

    def make(number: int) -> None:
        start.wait()
        try:
            Ledger.open(postgres_url, key_path=tmp_path / f"{number}.key").close()
            outcomes.append("made")
        except JournalDamaged as error:
            outcomes.append(error.reason)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert outcomes.count("made") == 1
    assert set(outcomes) <= {"made", "KEY_INVALID", "KEY_MISSING"}


def test_ledger_and_metadata_share_a_database(postgres_url: str, address: str) -> None:
    with open_book(address) as ledger, Metadata.open(postgres_url) as metadata:
        ledger.charge("s", A, TENTH)
        with metadata.write() as tx:
            tx.streams.create("s", {})
    with (
        Metadata.open(postgres_url) as metadata,
        open_ledger(address) as ledger,
        metadata.read() as tx,
    ):
        assert tx.streams.get("s").spec == {}
        assert ledger.left("s", ["a"]) * 10 == 9


def test_what_is_in_the_way_is_left_alone(address: str) -> None:
    with psycopg.connect(address.partition("#")[0]) as connection:
        connection.execute("CREATE SCHEMA sage_ledger")
        connection.execute("CREATE TABLE sage_ledger.precious (x int)")
    assert damage(address) == "NOT_A_LEDGER"
    with psycopg.connect(address.partition("#")[0]) as connection:
        assert connection.execute("SELECT count(*) FROM sage_ledger.precious").fetchone() == (0,)


def test_a_migration_that_dies_leaves_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_connection: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(postgres_schema, "_check_tables", die)
        with pytest.raises(KeyboardInterrupt):
            open_ledger(address)
    with psycopg.connect(address.partition("#")[0]) as connection:
        assert connection.execute("SELECT to_regnamespace('sage_ledger') IS NULL").fetchone() == (
            True,
        )
    open_ledger(address).close()


def test_a_server_that_could_lose_what_it_answered_is_refused(
    own_postgres: Postgres, tmp_path: Path
) -> None:
    def opened() -> Ledger:
        return Ledger.open(own_postgres.url(), key_path=tmp_path / "ledger.key")

    own_postgres.execute("ALTER SYSTEM SET synchronous_commit = off")
    own_postgres.execute("SELECT pg_reload_conf()")
    with opened() as ledger:
        journal = journal_of(ledger)
        assert journal._rows("SHOW synchronous_commit") == [("on",)]
        assert journal._rows("SHOW transaction_isolation") == [("read committed",)]
    own_postgres.execute("ALTER SYSTEM SET fsync = off")
    own_postgres.execute("SELECT pg_reload_conf()")
    with psycopg.connect(own_postgres.url(), autocommit=True) as watcher:
        while watcher.execute("SHOW fsync").fetchone() != ("off",):
            time.sleep(0.01)
    with pytest.raises(JournalUnavailable, match="JOURNAL_NOT_DURABLE"):
        opened()


def journal_of(ledger: Ledger) -> PostgresJournal:
    found = ledger._writer.journal
    assert isinstance(found, PostgresJournal)
    return found


def cut(ledger: Ledger) -> None:
    """Let the server end the session, as after a failover."""
    database = journal_of(ledger)._db
    assert database is not None
    with psycopg.connect(
        database.info.dsn, password=database.info.password, autocommit=True
    ) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (database.info.backend_pid,))


def test_a_connection_that_was_cut_while_idle_is_replaced_unseen(
    book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_journal, "_IDLE_SECONDS", 0.0)
    with open_ledger(book) as ledger:
        for act in (
            lambda: ledger.left("s", ["a"]),
            lambda: ledger.charge("s", A, TENTH),
            lambda: ledger.snapshot(),
            lambda: ledger.verify(),
        ):
            cut(ledger)
            act()
        assert ledger.left("s", ["a"]) * 10 == 9


def test_a_connection_that_is_cut_before_a_turn_is_replaced_unseen(book: str) -> None:
    with open_ledger(book) as ledger, open_ledger(book) as other:
        other.charge("s", A, TENTH)
        ledger._writer._shared_until = time.monotonic() + 60  # so that it takes a turn
        cut(ledger)
        ledger.charge("s", A, TENTH)
        assert ledger.left("s", ["a"]) * 10 == 8
        ledger.verify()


def test_a_connection_that_is_cut_in_a_turn_grants_nothing_and_recovers(
    book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(book) as ledger, open_ledger(book) as other:
        other.charge("s", A, TENTH)
        ledger._writer._shared_until = time.monotonic() + 60  # so that it takes a turn
        append_last = Turns.append_last

        def cutting(self: Turns, *values: Any) -> bool:
            cut(ledger)
            return append_last(self, *values)

        with monkeypatch.context() as patch:
            patch.setattr(Turns, "append_last", cutting)
            with pytest.raises(JournalUnavailable, match="JOURNAL_UNAVAILABLE"):
                ledger.charge("s", A, TENTH)
        ledger.charge("s", A, TENTH)
        assert ledger.left("s", ["a"]) * 10 == 8
        ledger.verify()
        other.verify()


def test_who_is_interrupted_while_waiting_for_a_turn_holds_nobody_up(
    book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_self: Turns) -> Any:
        raise KeyboardInterrupt

    with open_ledger(book) as ledger, open_ledger(book) as other:
        other.charge("s", A, TENTH)
        ledger._writer._shared_until = time.monotonic() + 60  # so that it takes a turn
        with monkeypatch.context() as patch:
            patch.setattr(Turns, "_answers", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.charge("s", A, TENTH)
        other.charge("s", A, TENTH)
        ledger.charge("s", A, TENTH)
        assert ledger.left("s", ["a"]) * 10 == 7
        ledger.verify()


def test_a_server_that_is_killed_loses_no_spend(own_postgres: Postgres, tmp_path: Path) -> None:
    address = f"{own_postgres.url()}#{tmp_path / 'ledger.key'}"
    with open_book(address) as ledger:
        acknowledged: list[int] = []
        unknown: list[str] = []
        over = threading.Event()

        def client() -> None:
            while not over.is_set():
                try:
                    acknowledged.append(ledger.charge("s", A, PureCost(epsilon="0.000001")))
                except JournalUnavailable as error:
                    unknown.append(error.message)

        threads = [threading.Thread(target=client) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            before = len(acknowledged)
            while len(acknowledged) < before + 40:
                time.sleep(0.005)
            own_postgres.server.kill()
            own_postgres.server.start()
        over.set()
        for thread in threads:
            thread.join(WAIT)
        spent = [entry["charge"] for entry in ledger.history() if "spent_at_ms" in entry]
        assert spent == list(range(len(spent)))
        assert len(set(acknowledged)) == len(acknowledged)
        assert set(acknowledged) <= set(spent), "all that was acknowledged is there"
        assert len(spent) - len(acknowledged) <= len(unknown), (
            "and besides at most what nobody could answer"
        )
        assert ledger.left("s", ["a"]) == 1 - Fraction(len(spent), 10**6)
        ledger.verify()


def test_servers_that_are_killed_in_full_run_never_exceed_the_filter(book: str) -> None:
    """Several processes charge the same block; some are killed at any point; the rest go on, to the
    last nano-epsilon.
    """
    with open_ledger(book) as ledger:
        clients = [spawn(book, 100, "0.01") for _ in range(4)]
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        admitted: list[int] = []
        for client in clients[:2]:
            assert client.stdout is not None
            admitted += [int(client.stdout.readline()) for _ in range(5)]
            os.kill(client.pid, signal.SIGKILL)
            admitted += [
                int(word) for word in client.stdout.read().split("\n")[:-1] if word != "refused"
            ]
            client.wait()
            for pipe in (client.stdin, client.stdout):
                assert pipe is not None
                pipe.close()
        refused = 0
        for client in clients[2:]:
            words = client.communicate(timeout=WAIT)[0].split()
            admitted += [int(word) for word in words if word != "refused"]
            refused += words.count("refused")
        spent = [entry["charge"] for entry in ledger.history() if "spent_at_ms" in entry]
        assert spent == list(range(100))
        assert len(admitted) == len(set(admitted))
        assert set(admitted) <= set(spent)
        assert len(spent) - len(admitted) <= 2, "at most one in flight for each that was killed"
        assert refused > 0
        assert ledger.left("s", ["a"]) == 0
        ledger.verify()


def test_a_server_that_stopped_in_its_turn_holds_up_the_others_for_a_while_only(
    book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_journal, "HANG_MS", 500)
    with open_ledger(book) as stuck, open_ledger(book) as other:
        journal_of(stuck).begin()
        # The others wait, and give up or find the lock free; nobody waits for ever.
        deadline = time.monotonic() + WAIT
        charged = False
        while not charged:
            assert time.monotonic() < deadline
            with suppress(JournalUnavailable):
                other.charge("s", A, TENTH)
                charged = True
        with pytest.raises(JournalUnavailable):
            journal_of(stuck).append([{"kind": "blocks"}])
        journal_of(stuck).rollback()
        stuck.charge("s", A, TENTH)
        assert other.left("s", ["a"]) * 10 == 8
        stuck.verify()


def test_a_group_of_threads_shares_a_commit(address: str) -> None:
    with open_book(address) as ledger:
        start = threading.Barrier(8)

        def client() -> None:
            start.wait()
            for _ in range(10):
                ledger.charge("s", A, PureCost(epsilon="0.0001"))

        threads = [threading.Thread(target=client) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        found = ledger.verify()
        assert found.entries == 82
        assert found.commits < 70


def test_reading_goes_page_by_page(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_journal, "PAGE", 3)
    with open_book(address) as ledger:
        for _ in range(10):
            ledger.charge("s", A, PureCost(epsilon="0.01"))
        assert len(list(ledger.history())) == 12
        digest = ledger.digest()
    with open_ledger(address) as ledger:
        assert ledger.digest() == digest
        assert ledger.verify().commits == 12


@pytest.mark.parametrize(
    "url",
    [
        "mysql://user:secret@host/db",
        "postgresql://user:secret@[host/db",
        "sqlite:///secret",
        "postgresql://%zz:secret@h",
    ],
)
def test_urls_that_are_refused_without_telling_passwords(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="LEDGER_URL_INVALID") as refusal:
        Ledger.open(url, key_path=tmp_path / "ledger.key")
    assert "secret" not in str(refusal.value)


def test_a_database_needs_to_know_where_its_key_is(postgres_url: str) -> None:
    with pytest.raises(InvalidInput, match="LEDGER_URL_INVALID"):
        Ledger.open(postgres_url)


def test_a_database_that_cannot_be_reached_is_unavailable(
    postgres: Postgres, tmp_path: Path
) -> None:
    wrong = postgres.url().replace(postgres.password, "wrong-secret")
    with pytest.raises(JournalUnavailable, match="JOURNAL_UNAVAILABLE") as refusal:
        Ledger.open(wrong, key_path=tmp_path / "ledger.key")
    assert "wrong-secret" not in str(refusal.value)
    with open_book(
        f"{postgres.url().replace('postgresql:', 'postgresql+psycopg:', 1)}#{tmp_path / 'ledger.key'}"
    ) as book:
        assert book.left("s", ["a"]) == 1
    postgres.execute("DROP SCHEMA sage_ledger CASCADE")
