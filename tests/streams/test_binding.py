"""A vault knows its ledger: a book that somebody made beside it opens nothing, however much budget
it has.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ptklib.errors import GrantRefused
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore import Store
from ptkstore.engine.parts import Adapters, Parts
from ptkstore.engine.safekeeping.restoring import give_up_past
from ptkstore.ledger import Ledger
from ptkstore.streams import StreamReader
from ptkstore.streams.blocks.binding import bind
from ptkstore.streams.reading.opened import spend_and_open
from tests.engine.small import DAY_MS, FIRST_MS, day, open_store
from tests.streams import rides

BOUND = "vault.ledger"


@pytest.fixture
def sealed(store: rides.Store) -> list[str]:
    with store.writer() as writer:
        writer.append(rides.batch([1, 2, 3]), producer="p", seq=0)
        return store.seal_all(writer, hours=1)


@pytest.fixture
def second(tmp_path: Path, store: rides.Store, sealed: list[str]) -> Iterator[Ledger]:
    """A book of the attacker for the same stream and blocks, in which nothing was ever spent."""
    with Ledger.open(tmp_path / "second" / "ledger.db") as made:
        made.create_stream("rides", store.spec.policy)
        made.add_blocks("rides", sealed)
        yield made


def grant_of(ledger: Ledger, blocks: list[str]) -> Grant:
    return ledger.reserve("rides", [Slice(tuple(blocks))], PureCost(epsilon="0.5"))


WAYS: dict[str, Callable[[rides.Store, Grant, Ledger], object]] = {
    "open_slice": lambda store, grant, ledger: store.reader.open_slice(grant, ledger),
    "count_blocks": lambda store, grant, ledger: store.reader.count_blocks(grant, ledger),
    "spend_and_open": lambda store, grant, ledger: spend_and_open(
        store.path, store.spec, [grant], ledger
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_second_ledger_opens_nothing(
    store: rides.Store, sealed: list[str], second: Ledger, way: str
) -> None:
    forged = grant_of(second, sealed)
    with pytest.raises(GrantRefused, match="LEDGER_FOREIGN"):
        WAYS[way](store, forged, second)
    assert second.fate(forged.charge) == "RESERVED"
    # With the store's own book neither.
    with pytest.raises(GrantRefused, match="GRANT_FORGED"):
        WAYS[way](store, forged, store.ledger)
    assert store.whos(sealed) == [1, 2, 3]


def test_a_vault_that_is_bound_to_nobody_opens_nothing(
    store: rides.Store, sealed: list[str]
) -> None:
    (store.path / BOUND).unlink()
    with pytest.raises(GrantRefused, match="LEDGER_FOREIGN"):
        store.reader.open_slice(store.grant(sealed), store.ledger)


def test_what_is_bound_stays_bound(store: rides.Store, second: Ledger) -> None:
    before = (store.path / BOUND).read_bytes()
    with pytest.raises(GrantRefused, match="LEDGER_FOREIGN"):
        bind(store.path, second)
    bind(store.path, store.ledger)
    assert (store.path / BOUND).read_bytes() == before


def test_a_store_is_not_opened_with_a_ledger_of_another(tmp_path: Path) -> None:
    open_store(tmp_path / "store").close()
    (tmp_path / "store" / "ledger.head").unlink(missing_ok=True)
    second = Adapters(ledger=lambda: Ledger.open(tmp_path / "second.db"))
    with pytest.raises(GrantRefused, match="LEDGER_FOREIGN"):
        Store(tmp_path / "store", workers=0, adapters=second)


def test_an_older_store_is_bound_when_it_is_opened(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    # An older release left no witnesses either.
    files = [tmp_path / one for one in (BOUND, "ledger.head", "streams/.ledger.head")]
    for file in (*files, *(tmp_path / "lake" / "witness").iterdir()):
        file.unlink()
    with sqlite3.connect(tmp_path / "meta.db") as metadata:
        metadata.execute("DELETE FROM witness")
    metadata.close()
    with Store(tmp_path, workers=0) as store:
        assert (tmp_path / BOUND).read_text() == store.parts.ledger.identity


def test_a_restore_with_a_new_ledger_binds_anew_and_leaves_nothing_to_open(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.push("rides", day(0), seq=0)
        store.parts.writer("rides").seal_due(FIRST_MS + DAY_MS)
        spec = store.stream("rides")
    for lost in tmp_path.glob("ledger.*"):
        lost.unlink()
    parts = Parts.open(tmp_path, workers=0)
    give_up_past(parts, FIRST_MS + DAY_MS)
    parts.close()
    assert not list(tmp_path.glob("streams/rides/*.block"))
    with Store(tmp_path, workers=0) as store:
        assert (tmp_path / BOUND).read_text() == store.parts.ledger.identity
        assert StreamReader(tmp_path, spec).spend([], store.parts.ledger) == {}
