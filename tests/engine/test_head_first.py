"""Nothing that a window comes to is visible before the store's directory knows the ledger's head
with its charges.

Every write to a table that holds results is looked at as it is made, in windows of every kind of
end, and every state before it is put into the lake.
"""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import sqlalchemy as sa

import ptkstore.engine
from ptklib import registry
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore import Store
from ptkstore.engine.head_guard import known_head
from ptkstore.engine.profiles import profiling
from ptkstore.lake import DirectoryLake
from ptkstore.ledger import Ledger
from ptkstore.metadata import Metadata, Transaction
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import blocks, cycles, events, plans, profiles, states, steps
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store
from tests.engine.test_profiling import Plain

ENGINE = Path(ptkstore.engine.__file__).parent
RESULTS = {table.name for table in (blocks, cycles, events, plans, profiles, states, steps)}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """One PTK that has a closed form, and one that a window must profile."""
    known = dict(registry.kinds())
    monkeypatch.setattr(registry, "kinds", lambda: MappingProxyType(known | {"plain": Plain}))
    monkeypatch.setattr(profiling, "MEASURED", 2)
    with open_store(tmp_path, profile_share="0.7") as made:
        made.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.3)
        made.register("speed", stream="rides", kind="plain", config={}, target=0.6)
        made.push("rides", day(0, 30_000), seq=0)
        yield made


class Watch:
    """Compares what the directory knows with the book, whenever something becomes visible."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = store.parts.path
        # A book of our own: it sees what is durable, and nothing that is in the memory of the
        # store.
        self.book = Ledger.open(self._path / "ledger.db")
        self.seen: list[tuple[str, int, int]] = []
        # Of each thread: whether the transaction that it is in has written results.
        self._here = threading.local()
        write, put = Metadata.write, DirectoryLake.put

        working = threading.current_thread()

        @contextmanager
        def watched_write(metadata: Metadata) -> Iterator[Transaction]:
            with write(metadata) as tx:
                if threading.current_thread() is not working:
                    # Another thread's mark of the outbox may come between a charge and its head.
                    yield tx
                    return
                self._here.results = False
                yield tx
                self.look("metadata")
                if not self._here.results:
                    return
                # The row of the metadata says as much, in the same transaction.
                known = json.loads(tx.witness.body() or "{}")
                self.seen.append(("witness", known.get("seq", 0), self.book.head.seq))

        def watched_put(lake: DirectoryLake, arrays: bytes, manifest: bytes) -> str:
            self.look("lake")
            return put(lake, arrays, manifest)

        monkeypatch.setattr(Metadata, "write", watched_write)
        monkeypatch.setattr(DirectoryLake, "put", watched_put)
        for name in ("insert", "insert_all", "insert_plain", "execute"):
            monkeypatch.setattr(
                MetadataSession, name, self._watched(getattr(MetadataSession, name))
            )

    def _watched(self, real: Any) -> Any:
        def watched(session: MetadataSession, what: Any, *rest: Any, **named: Any) -> Any:
            table = what if isinstance(what, sa.Table) else what.table
            if table.name in RESULTS:
                self._here.results = True
                self.look(table.name)
            return real(session, what, *rest, **named)

        return watched

    def look(self, where: str) -> None:
        known = known_head(self._path)
        self.seen.append((where, 0 if known is None else known.seq, self.book.head.seq))

    @property
    def late(self) -> set[str]:
        """Where something became visible before the head with its charges was kept."""
        return {where for where, known, written in self.seen if known < written}

    @property
    def places(self) -> list[str]:
        return [where for where, _, _ in self.seen]


def windows_of_every_kind(store: Store) -> list[str]:
    """A window that profiles and publishes, one that is too small, one whose plan is refused; how
    each ended. All of them expire.
    """
    ends = [store.run("rides", until_ms=FIRST_MS + DAY_MS)[0].status]
    store.push("rides", day(1, 30), seq=1)
    ends.append(store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)[0].status)
    store.push("rides", day(2, 30_000), seq=2)

    def somebody_else_charges(step: str, moment: str) -> None:
        if (step, moment) == ("reserved", "begins"):
            living = store.parts.ledger.blocks("rides", retired=False)
            store.parts.ledger.charge("rides", [Slice(tuple(living))], PureCost(epsilon="0.5"))

    with store.parts.observers.watching(somebody_else_charges):
        (cycle,) = store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
    assert "The ledger refused the plan" in cycle.shortfall
    assert {block.status for block in store.budget("rides").blocks} == {"expired"}
    return [*ends, cycle.status]


def test_the_head_is_kept_before_anything_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(store, monkeypatch)
    assert windows_of_every_kind(store) == ["DONE", "SHORT", "SHORT"]
    # All eight steps, what they are made of, and the states and witnesses of profiles.
    assert watch.places.count("metadata") > 3 * 8
    assert watch.places.count("lake") >= 3
    assert set(watch.places) == RESULTS | {"metadata", "witness", "lake"}
    assert watch.late == set()
    watch.book.close()


def test_the_check_above_notices_a_head_that_is_kept_too_late(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(store, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("ptkstore.engine.head_guard.HeadGuard._write", lambda _self, _head: None)
        windows_of_every_kind(store)
    assert watch.late == RESULTS | {"metadata", "lake"}
    watch.book.close()


def test_the_check_above_notices_a_head_that_is_not_kept_at_all(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the journal took what was known when the store was opened."""
    watch = Watch(store, monkeypatch)
    known = store.parts.head_guard.kept_text()
    with monkeypatch.context() as patch:
        patch.setattr(store.parts.head_guard, "kept_text", lambda: known)
        windows_of_every_kind(store)
    assert watch.late >= {"blocks", "steps", "witness"}
    watch.book.close()


def test_a_head_of_a_shared_book_never_goes_back(store: Store) -> None:
    """Another server of the book is ahead of this one, or behind it: what the directory knows only
    grows.
    """
    with Store(store.parts.path, workers=0) as other:
        other.parts.ledger.add_blocks("rides", ["a"])
        other.parts.head_guard.keep()
        store.parts.head_guard.keep()
        first = known_head(store.parts.path)
        store.parts.ledger.add_blocks("rides", ["b"])
        store.parts.head_guard.keep()
        other.parts.head_guard.keep()
        second = known_head(store.parts.path)
    assert first is not None
    assert second is not None
    assert first.seq < second.seq == store.parts.ledger.head.seq


def test_a_head_that_another_server_kept_meanwhile_is_not_replaced_by_an_older_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(store.parts.path, workers=0) as other:

        def meanwhile() -> dict[str, int]:
            other.parts.ledger.add_blocks("rides", ["b"])
            other.parts.head_guard.keep()
            return {}

        store.parts.ledger.add_blocks("rides", ["a"])
        # Asked for when the head has been read and before anything is written.
        monkeypatch.setattr(store.parts.head_guard, "_sealed", meanwhile)
        store.parts.head_guard.keep()
        assert known_head(store.parts.path) == other.parts.ledger.head


def _calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def test_nobody_but_the_journal_opens_a_transaction_for_results() -> None:
    """Types and missing methods keep results out of every other transaction; this one is opened in
    one place.
    """
    product = ENGINE.parent
    opened = {
        path.relative_to(product).as_posix()
        for path in sorted(product.rglob("*.py"))
        if any(name.endswith("write_results") for name, _ in _calls(path))
    }
    assert opened == {"engine/journal.py"}
    # A repository that writes results is made by that transaction alone.
    made = {
        path.relative_to(product).as_posix()
        for path in sorted(product.rglob("*.py"))
        if any(name.endswith(("Results", "ResultEvents")) for name, _ in _calls(path))
    }
    assert made == {"metadata/database/store.py"}
