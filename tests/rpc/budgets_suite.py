"""Budgets in every store: what is left, blocks, and the ledger in pages, searched and as a map.

See `tests.rpc.store_suite`.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptklib.errors import InvalidInput, Refused
from ptkstore import Store
from ptkstore.api.times import public_entry
from tests.engine.small import DAY_MS, FIRST_MS
from tests.rpc.store_suite import filled, reason


class BudgetsSuite:
    """The contract of `Store`."""

    def test_what_is_left_where_records_are_held(self, store: Store, twin: Store) -> None:
        filled(store, 2)
        before = store.budget_summary("rides")
        assert before == twin.budget_summary("rides")
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        after = store.budget_summary("rides")
        assert after == twin.budget_summary("rides")
        held = [one.left for one in store.blocks("rides").blocks if one.status != "expired"]
        assert (after.least_left, after.most_left) == (
            min(held, default=None),
            max(held, default=None),
        )

    def test_blocks_and_charges_in_pages(self, store: Store, twin: Store) -> None:
        filled(store, 3)
        store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
        for read, field in ((store.blocks, "blocks"), (store.charges, "charges")):
            whole = getattr(read("rides"), field)
            assert whole == getattr(getattr(twin, field)("rides", limit=5000), field)
            found: list[Any] = []
            token = ""
            while True:
                page = read("rides", limit=2, page_token=token)
                assert page == getattr(twin, field)("rides", limit=2, page_token=token)
                found += getattr(page, field)
                if not (token := page.next_page_token):
                    break
            assert tuple(found) == whole
            assert reason(InvalidInput, lambda read=read: read("rides", limit=-5)) == "PAGE_INVALID"
            assert (
                reason(InvalidInput, lambda read=read: read("rides", page_token="x"))
                == "PAGE_TOKEN_INVALID"
            )
            assert reason(Refused, lambda read=read: read("nowhere")) == "STREAM_UNKNOWN"
        assert store.blocks("rides").blocks == store.budget("rides").blocks
        summary = store.budget_summary("rides")
        assert (summary.blocks_alive, summary.blocks_retired) == (0, 6)
        assert summary == twin.budget_summary("rides")
        entries = list(twin.parts.ledger.history())
        charges = store.charges("rides").charges
        assert [one.entry for one in charges] == [
            public_entry(entries[one.number - 1]) for one in charges
        ]
        assert len(charges) == sum(
            one["kind"] in ("reserve", "spend", "release", "retire") for one in entries
        )
        assert {one.key.partition("/")[2] for one in charges if one.kind == "spend"} == {
            "count",
            "hour-speed",
        }

    def test_the_ledger_is_searched(self, store: Store, twin: Store) -> None:
        filled(store, 2)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        every = twin.charges("rides", limit=1000).charges

        def numbers(**asked: Any) -> list[int]:
            found: list[int] = []
            token = ""
            while True:
                page = twin.charges("rides", limit=2, page_token=token, **asked)
                assert page == store.charges("rides", limit=2, page_token=token, **asked)
                found += [one.number for one in page.charges]
                token = page.next_page_token
                if not token:
                    return found

        assert numbers(newest_first=True) == [one.number for one in reversed(every)]
        assert numbers(find="hour-speed") == [
            one.number for one in reversed(every) if "hour-speed" in one.key
        ]
        block = store.blocks("rides").blocks[0].name
        about = [one.number for one in reversed(every) if _about(one.entry, 0)]
        assert about
        assert numbers(blocks=block) == about
        assert numbers(blocks="2") == [
            one.number for one in reversed(every) if one.kind in ("reserve", "retire")
        ]
        assert numbers(blocks=block, find="count") == [
            one for one in about if one in numbers(find="/count")
        ]
        assert numbers(find="%") == numbers(find="nobody") == numbers(blocks="none") == []
        token = twin.charges("rides", limit=1, newest_first=True).next_page_token
        assert (
            reason(InvalidInput, lambda: twin.charges("rides", page_token=token, find="x"))
            == "PAGE_TOKEN_INVALID"
        )

    def test_the_map_of_the_ledger(self, store: Store, twin: Store) -> None:
        filled(store, 2)
        before = twin.ledger_map("rides")
        assert before == store.ledger_map("rides")
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        found = twin.ledger_map("rides")
        assert found == store.ledger_map("rides")
        assert (found.begin, found.count, found.blocks) == (
            0,
            len(found.columns),
            len(store.blocks("rides").blocks),
        )
        assert (
            sum(one.retired for one in found.columns)
            == store.budget_summary("rides").blocks_retired
        )
        for one in found.columns:
            assert all(0 <= share <= 1 for share in one.shares)
            assert min(one.shares) <= one.mean <= max(one.shares)
            # Put together again from the journal: some tags have more on them than others.
            assert not one.flat
        assert max(max(one.shares) for one in found.columns) > min(
            min(one.shares) for one in found.columns
        )
        assert {one.who for one in found.spenders} >= {"counts of blocks", "hour-speed"}
        assert sum(one.part for one in found.spenders) == pytest.approx(1, abs=1e-4)
        assert {one.purpose for one in found.purposes} == {"count", "training"}
        assert sum(one.part for one in found.purposes) == pytest.approx(1, abs=1e-4)
        assert found.holders == len(found.spenders)
        part = twin.ledger_map("rides", begin=1, count=1)
        assert [one.first for one in part.columns] == [found.columns[1].first]
        assert part.columns[0] == found.columns[1]
        assert twin.ledger_map("rides", begin=10**9).columns == ()
        for bad in ({"count": 0}, {"count": 2001}, {"begin": -1}):
            assert (
                reason(InvalidInput, lambda bad=bad: twin.ledger_map("rides", **bad))
                == "PAGE_INVALID"
            )
        assert reason(Refused, lambda: twin.ledger_map("nowhere")) == "STREAM_UNKNOWN"


def _about(entry: dict[str, Any], block: int) -> bool:
    runs = entry.get("runs") or [run for part in entry.get("slices", ()) for run in part[0]]
    return any(first <= block < first + count for first, count in runs)
