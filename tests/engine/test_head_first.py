"""Nothing that a window comes to is visible before the store's directory knows the ledger's head with its charges.

Every transaction of a window is looked at before it is committed, and every state before it is put into the lake.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from ptklib import registry
from ptkstore.client import Store
from ptkstore.engine import profiling
from ptkstore.engine.witness import known_head
from ptkstore.lake import DirectoryLake
from ptkstore.ledger import Ledger
from ptkstore.metadata import Metadata, Transaction
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store
from tests.engine.test_profiling import Plain

ENGINE = Path(profiling.__file__).parent


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
        self._path = store.home.path
        # A book of our own: it sees what is durable, and nothing that is in the memory of the store.
        self.book = Ledger.open(self._path / "ledger.db")
        self.seen: list[tuple[str, int, int]] = []
        write, put = Metadata.write, DirectoryLake.put

        @contextmanager
        def watched_write(metadata: Metadata) -> Iterator[Transaction]:
            with write(metadata) as tx:
                yield tx
                self.look("metadata")

        def watched_put(lake: DirectoryLake, arrays: bytes, manifest: bytes) -> str:
            self.look("lake")
            return put(lake, arrays, manifest)

        monkeypatch.setattr(Metadata, "write", watched_write)
        monkeypatch.setattr(DirectoryLake, "put", watched_put)

    def look(self, where: str) -> None:
        known = known_head(self._path)
        self.seen.append((where, 0 if known is None else known.seq, self.book.head.seq))


def test_the_head_is_kept_before_anything_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(store, monkeypatch)
    (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
    assert cycle.status == "DONE"
    assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}
    places = [where for where, _, _ in watch.seen]
    # All eight steps, what they are made of, and the states and witnesses of profiles.
    assert places.count("metadata") > 15
    assert places.count("lake") >= 3
    assert [one for one in watch.seen if one[1] < one[2]] == []
    watch.book.close()


def test_the_check_above_notices_a_head_that_is_kept_too_late(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(store, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("ptkstore.engine.witness.Witness._write", lambda _self, _head: None)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
    late = {where for where, known, written in watch.seen if known < written}
    assert late == {"metadata", "lake"}
    watch.book.close()


def test_a_head_of_a_shared_book_never_goes_back(store: Store) -> None:
    """Another server of the book is ahead of this one, or behind it: what the directory knows only grows."""
    with Store(store.home.path, workers=0) as other:
        other.home.ledger.add_blocks("rides", ["a"])
        other.home.witness.keep()
        store.home.witness.keep()
        first = known_head(store.home.path)
        store.home.ledger.add_blocks("rides", ["b"])
        store.home.witness.keep()
        other.home.witness.keep()
        second = known_head(store.home.path)
    assert first is not None
    assert second is not None
    assert first.seq < second.seq == store.home.ledger.head.seq


def _calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


# What these write is no result: they spend nothing, and open no record.
PLAIN = {
    "approving.py": "decisions of operators",
    "audit_segments.py": "the audit log",
    "charges.py": "an index of the book",
    "creating.py": "a stream without records",
    "deciding.py": "registrations, from public numbers; a window gives it a transaction of its own",
    "election.py": "leases",
    "home.py": "the one way for results",
    "readiness.py": "a lease, to see whether it can be written",
    "registrations.py": "registrations, from public numbers",
    "restoring.py": "what is given up",
    "witness.py": "what is known after a restore",
}


def test_no_part_of_a_window_writes_in_another_way() -> None:
    found: dict[str, Any] = {}
    for path in sorted(ENGINE.glob("*.py")):
        plain = [(name, line) for name, line in _calls(path) if name.endswith(("metadata.write", "metadata.transact"))]
        if plain:
            found[path.name] = plain
    assert set(found) <= PLAIN.keys(), found
