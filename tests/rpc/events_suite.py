"""What happened in every store: events, cycles, operations, deliveries and the audit log.

See `tests.rpc.store_suite`.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptklib.errors import InvalidInput, Refused
from ptkstore import Store
from ptkstore.metadata.access.audit import Decision
from tests.engine.small import DAY_MS, FIRST_MS, config
from tests.rpc.store_suite import filled, reason


class EventsSuite:
    """The contract of `Store`."""

    def test_events_in_pages(self, store: Store) -> None:
        filled(store)
        first, second = store.events()
        assert store.events(limit=1) == [first]
        assert store.events(first.id) == [second]
        assert reason(InvalidInput, lambda: store.events(limit=0)) == "PAGE_INVALID"

    def test_the_newest_events_are_searched_and_turned(self, store: Store, twin: Store) -> None:
        filled(store, 2)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        every = store.events()
        assert store.newest_events().events == twin.newest_events().events == tuple(reversed(every))
        found: list[Any] = []
        token = ""
        while True:
            page = store.newest_events(limit=2, page_token=token)
            assert page == twin.newest_events(limit=2, page_token=token)
            found += page.events
            if not (token := page.next_page_token):
                break
        assert found == every[::-1]
        some = store.newest_events(find="STATE hour").events
        assert [one.kind for one in some] == ["ptk.state", "ptk.state"]
        assert store.newest_events(find="100%_").events == ()
        assert reason(InvalidInput, lambda: store.newest_events(limit=-1)) == "PAGE_INVALID"
        first = store.newest_events(limit=1).next_page_token
        assert (
            reason(InvalidInput, lambda: store.newest_events(find="a", page_token=first))
            == "PAGE_TOKEN_INVALID"
        )

    def test_a_search_goes_back_step_by_step(
        self, store: Store, twin: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        filled(store, 2)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        monkeypatch.setattr("ptkstore.metadata.searching.MOST_LOOKED_AT", 2)
        found: list[Any] = []
        token, pages = "", 0
        while True:
            page = store.newest_events(find="created", page_token=token)
            found += page.events
            pages += 1
            if not (token := page.next_page_token):
                break
        assert [one.kind for one in found] == ["stream.created"]
        assert pages == -(-twin.events()[-1].id // 2)

    def test_operations_deliveries_and_the_audit_log(self, store: Store, twin: Store) -> None:
        filled(store)
        parts = twin.parts
        with parts.metadata.write() as tx:
            ptk = tx.ptks.named("hour-speed").id
            subscription = tx.subscriptions.add(ptk, "127.0.0.1:9")
            tx.notifications.put(
                subscription.id, 1, attempts=4, status="DEAD", reason="UNAVAILABLE", due_ms=5
            )
            tx.notifications.put(
                subscription.id, 2, attempts=1, status="LATE", reason="INTERNAL", due_ms=2**40
            )
            done = tx.operations.start("CloseWindow", "rides", at_ms=7)
            tx.operations.end(done.id, "FAILED", reason="X", message="m", at_ms=9)
            tx.audit.add_all(
                Decision(5, who, f"/ptkstore.v1.StreamService/{what}", "rides", "ALLOWED")
                for who, what in (
                    ("ann", "GetStream"),
                    ("bob", "CloseWindow"),
                    ("ann", "CreateStream"),
                )
            )
        operations = store.operations("rides").operations
        assert operations == twin.operations().operations
        last = operations[-1]
        assert (last.status, last.reason, last.message, last.created_ms, last.ended_ms) == (
            "FAILED",
            "X",
            "m",
            7,
            9,
        )
        assert store.operations("nowhere").operations == ()
        late = store.deliveries()
        assert late == twin.deliveries()
        assert [(one.version, one.dead, one.rpc_endpoint) for one in late.deliveries] == [
            (1, True, "127.0.0.1:9"),
            (2, False, "127.0.0.1:9"),
        ]
        (dead,) = store.deliveries(dead_only=True).deliveries
        assert dead.next_attempt_ms is None
        again = store.retry_delivery(dead.id)
        assert (again.id, again.dead, again.attempts) == (dead.id, False, 0)
        assert store.deliveries(dead_only=True).deliveries == ()
        assert reason(Refused, lambda: store.retry_delivery("999")) == "DELIVERY_UNKNOWN"
        assert reason(InvalidInput, lambda: store.retry_delivery("x")) == "ID_INVALID"
        anns = store.audit_entries(find="ANN stream").entries
        assert [one.what.rpartition("/")[2] for one in anns] == ["CreateStream", "GetStream"]
        changed = store.audit_entries(find="streamservice rides", changes_only=True).entries
        assert {one.what.rpartition("/")[2] for one in changed} >= {"CloseWindow", "CreateStream"}
        assert all("Get" not in one.what for one in changed)
        whole = store.audit_entries(find="ann", limit=1)
        rest = store.audit_entries(find="ann", limit=1, page_token=whole.next_page_token)
        assert (*whole.entries, *rest.entries) == anns

    def test_cycles_tell_of_some_ptks_and_count_the_others(self, store: Store, twin: Store) -> None:
        filled(store, 2)
        for name in ("a", "b"):
            store.register(
                name, stream="rides", kind="statistics", config=config("count"), target=0.9
            )
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        whole = store.cycles("rides", newest=2)
        assert whole == store.cycles("rides") == twin.cycles("rides", newest=2)
        assert {len(one.trained) for one in whole} == {3}
        for most in (0, 2, 9):
            found = store.cycles("rides", newest=2, most_trained=most)
            assert found == twin.cycles("rides", newest=2, most_trained=most)
            assert [one.outcomes for one in found] == [{"PUBLISHED": 3}] * 2
            assert [one.trained for one in found] == [one.trained[:most] for one in whole]
