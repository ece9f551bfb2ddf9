"""The index of charges: it says what the journal says, follows it, and is made anew for another
journal.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import JournalDamaged
from ptklib.ledger.slices import WHOLE, Slice, TagRange
from ptklib.privacy.costs import PureCost
from ptkstore import Store
from ptkstore.api.times import public_entry
from ptkstore.engine.budgets import charges as engine
from ptkstore.engine.budgets import ledger_map
from tests.engine.small import spec

COST = PureCost(epsilon="0.01")


def expected(store: Store, stream: str) -> list[tuple[int, str, str, Any]]:
    """What the whole journal says, entry by entry; its times as coarsely as all are told."""
    owners: dict[int, tuple[str, str]] = {}
    found = []
    for number, entry in enumerate(store.parts.ledger.history(), 1):
        if entry["kind"] == "reserve":
            owners[entry["charge"]] = (entry["stream"], entry.get("key") or "")
        owner, key = owners[entry["charge"]] if "charge" in entry else (entry.get("stream"), "")
        if owner == stream and entry["kind"] in engine.SHOWN:
            found.append((number, entry["kind"], key, public_entry(entry)))
    return found


def listed(store: Store, stream: str, limit: int = 3) -> list[tuple[int, str, str, Any]]:
    found: list[Any] = []
    token = ""
    while True:
        page = store.charges(stream, limit=limit, page_token=token)
        found += [(one.number, one.kind, one.key, one.entry) for one in page.charges]
        if not (token := page.next_page_token):
            return found


def spend(store: Store, stream: str, block: str, key: str | None = None) -> None:
    ledger = store.parts.ledger
    grant = ledger.reserve(stream, [Slice((block,))], COST, key=key)
    ledger.spend(grant)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "store", workers=0) as store:
        for name in ("a", "b"):
            store.create_stream(spec(name=name))
            store.parts.ledger.add_blocks(name, [f"{name}{number}" for number in range(4)])
        yield store


def test_every_entry_is_found_under_its_stream(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_TURN", 2)
    ledger = store.parts.ledger
    late = ledger.reserve("a", [Slice(("a3",))], COST)
    for number in range(3):
        spend(store, "a", f"a{number}", f"cycle-{number}/x")
        spend(store, "b", f"b{number}")
        assert listed(store, "a") == expected(store, "a")
    # Entries about a charge come in later turns than the charge.
    ledger.release(late)
    ledger.retire("a", ["a0", "a1"], why="window expired")
    for name in ("a", "b"):
        assert listed(store, name) == expected(store, name)
        assert listed(store, name, 1000) == expected(store, name)
    kinds = [one[1] for one in listed(store, "a")]
    assert [kinds.count(kind) for kind in engine.SHOWN] == [4, 3, 1, 1]


def took(store: Store, stream: str) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Who spent what, by hand from the whole journal: charges, the largest share of epsilon, share
    times blocks times tags.
    """
    privacy_filter = store.stream(stream).policy.filter()
    standing: dict[int, Any] = {}
    for entry in store.parts.ledger.history():
        if entry["kind"] == "reserve" and entry["stream"] == stream:
            standing[entry["charge"]] = entry
        if entry["kind"] == "release":
            standing.pop(entry["charge"], None)
    found: dict[tuple[str, str], tuple[int, float, float]] = {}
    for entry in standing.values():
        contexts = entry.get("contexts", [])
        who = (
            ("counts of blocks", "count")
            if "door:count" in contexts
            else ("charges of no PTK", "other")
        )
        if "door:ptk" in contexts:
            who = (next(one[4:] for one in contexts if one.startswith("ptk:")), "training")
        share = privacy_filter.spent(tuple(entry["demand"]))[0] / float(privacy_filter.epsilon)
        wide = sum(
            sum(n for _, n in runs) * (stop - start) / 2**64
            for runs, start, stop in entry["slices"]
        )
        charges, most, area = found.get(who, (0, 0.0, 0.0))
        found[who] = (charges + 1, max(most, share), area + share * wide)
    return found


def test_who_spent_what_is_added_up_over_all_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_TURN", 3)
    monkeypatch.setattr(ledger_map, "_ENTRIES", 2)
    ledger = store.parts.ledger

    def charge(
        contexts: tuple[str, ...], epsilon: str, blocks: tuple[str, ...], tags: TagRange = WHOLE
    ) -> Any:
        return ledger.reserve(
            "a", [Slice(blocks, tags)], PureCost(epsilon=epsilon), contexts=contexts
        )

    def same() -> None:
        book = store.ledger_map("a")
        wanted = took(store, "a")
        total = sum(area for _, _, area in wanted.values())
        assert {(one.who, one.purpose) for one in book.spenders} == set(wanted)
        assert book.holders == len(wanted)
        for one in book.spenders:
            charges, most, area = wanted[one.who, one.purpose]
            assert one.charges == charges
            assert (one.most, one.part) == pytest.approx((most, area / total), abs=2e-6)
        assert [one.part for one in book.spenders] == sorted(
            (one.part for one in book.spenders), reverse=True
        )
        for purpose in {purpose for _, purpose in wanted}:
            (told,) = [one for one in book.purposes if one.purpose == purpose]
            mine = [one for (_, its), one in wanted.items() if its == purpose]
            assert told.charges == sum(one[0] for one in mine)
            assert told.part == pytest.approx(sum(one[2] for one in mine) / total, abs=2e-6)

    ledger.spend(charge(("door:count",), "0.01", ("a0", "a1")))
    ledger.spend(charge(("door:ptk", "ptk:p"), "0.1", ("a0",)))
    same()
    half = TagRange(0, 2**63)
    large = charge(("door:ptk", "ptk:p"), "0.2", ("a0", "a1"), half)
    gone = charge(("door:ptk", "ptk:q"), "0.1", ("a2",))
    spend(store, "a", "a3", "cycle-1/by-hand")
    same()
    assert {one.who: one.most for one in store.ledger_map("a").spenders}["p"] == pytest.approx(
        0.2, abs=1e-4
    )
    # What is given back is not spent: neither the sum nor the largest one of p is what it was, and
    # q spent nothing.
    ledger.release(large)
    ledger.release(gone)
    ledger.spend(charge(("door:ptk", "ptk:p"), "0.05", ("a2",), half))
    same()
    told = {one.who: one for one in store.ledger_map("a").spenders}
    assert told["p"].most == pytest.approx(0.1, abs=1e-4)
    assert "q" not in told
    # Given back in the turn in which it was made.
    ledger.release(charge(("door:ptk", "ptk:r"), "0.05", ("a3",)))
    same()
    with store.parts.metadata.write() as tx:
        tx.charges.clear()
    same()


def test_several_who_index_at_once_add_every_entry_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        spend(store, "a", f"a{number}")
    real = store.parts.ledger.commits
    asked: list[int] = []

    def slow(numbers: Any) -> Any:
        found = real(numbers)
        if not asked:
            asked.append(1)
            engine.index_charges(store.parts)
        return found

    monkeypatch.setattr(store.parts.ledger, "commits", slow)
    engine.index_charges(store.parts)
    assert listed(store, "a") == expected(store, "a")
    assert [one.charges for one in store.ledger_map("a").spenders] == [3]


def test_an_index_of_another_journal_is_made_anew(tmp_path: Path, store: Store) -> None:
    spend(store, "a", "a0", "one")
    store.parts.ledger.snapshot()
    kept = tmp_path / "kept"
    shutil.copytree(store.parts.path, kept)
    spend(store, "a", "a1", "two")
    spend(store, "a", "a2", "three")
    assert len(listed(store, "a")) == 6
    store.close()
    # The ledger is set back, the metadata is not; then the two go different ways.
    for file in kept.glob("ledger.db*"):
        shutil.copy(file, store.parts.path / file.name)
    for file in store.parts.path.glob("ledger.db-*"):
        if not (kept / file.name).exists():
            file.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ptkstore.engine.head_guard.HeadGuard.require_newest", lambda _self: None)
        with Store(store.parts.path, workers=0) as again:
            assert listed(again, "a") == expected(again, "a")
            assert len(expected(again, "a")) == 2
            for number in range(1, 4):
                spend(again, "a", f"a{number}", f"other-{number}")
            assert listed(again, "a") == expected(again, "a")


def test_an_entry_that_was_changed_in_the_journal_is_not_served(store: Store) -> None:
    spend(store, "a", "a0", "one")
    assert len(listed(store, "a")) == 2
    database: Any = store.parts.ledger._writer.journal._db  # type: ignore[attr-defined]
    database.execute("UPDATE commits SET body = replace(body, '\"one\"', '\"two\"')")
    with pytest.raises(JournalDamaged, match="CHAIN_BROKEN"):
        store.charges("a")
