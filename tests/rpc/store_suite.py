"""What every store must do, in a directory or behind a server. Subclass it, with a fixture ``store`` of an empty one.

``twin`` is the same store embedded: what it says is what the other must say.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput, Refused, SageError
from ptklib.featurize import featurize
from ptkstore.client import Store
from ptkstore.engine.what_if import AddedPtk, Changes
from ptkstore.metadata.audit import Decision
from ptkstore.public_time import public_entry
from ptkstore.views import StateView
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, spec


def filled(store: Store, days: int = 1) -> None:
    """A stream, a PTK and some days of data."""
    store.create_stream(spec())
    store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.2)
    for number in range(days):
        store.push("rides", day(number), producer="depot", seq=number)


def reason(kind: type[SageError], act: Any) -> str:
    """The reason of a refusal, which must be of exactly this kind."""
    with pytest.raises(kind) as refusal:
        act()
    assert type(refusal.value) is kind
    return refusal.value.reason


class StoreSuite:
    """The contract of `Store`."""

    def test_streams(self, store: Store) -> None:
        assert store.streams() == []
        store.create_stream(spec())
        store.create_stream(spec(name="other"))
        assert store.streams() == [spec(name="other"), spec()]
        assert store.stream("rides") == spec()
        assert reason(Refused, lambda: store.create_stream(spec())) == "STREAM_EXISTS"
        assert reason(Refused, lambda: store.stream("nowhere")) == "STREAM_UNKNOWN"

    def test_a_day_from_records_to_features(self, store: Store, twin: Store) -> None:
        filled(store)
        told: list[str] = []
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS, progress=told.append)
        assert (cycle.status, cycle.trained[0].outcome) == ("DONE", "PUBLISHED")
        assert abs(cycle.dp_records - 4000) < 200
        assert any("trained" in text for text in told)
        state = store.get_state("hour-speed")
        assert state.manifest.version == 1
        frame = pa.table({"hour": pa.array([3, 15], pa.int32())})
        assert featurize(frame, [state]).num_columns == 2
        assert store.cycles("rides") == twin.cycles("rides") == [cycle]
        assert store.states("hour-speed") == twin.states("hour-speed")
        assert store.get_state("hour-speed@v1").to_bytes() == twin.get_state("hour-speed@latest").to_bytes()
        assert store.plan("rides") == twin.plan("rides")
        assert store.plan_picture("rides") == twin.plan_picture("rides")
        assert store.budget("rides") == twin.budget("rides")
        assert store.ptks() == twin.ptks() == [store.ptk("hour-speed")]
        assert store.events() == twin.events()
        assert store.run(until_ms=FIRST_MS + DAY_MS) == []

    def test_states_by_version_and_time(self, store: Store) -> None:
        filled(store, 2)
        assert reason(Refused, lambda: store.get_state("hour-speed")) == "STATE_UNKNOWN"
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        first, second = store.states("hour-speed")
        assert store.get_state("hour-speed@v2").manifest.version == 2
        assert store.get_state("hour-speed", as_of_ms=second.created_ms).manifest.version == 2
        assert reason(Refused, lambda: store.get_state("hour-speed", as_of_ms=first.created_ms - 1)) == "STATE_UNKNOWN"
        assert reason(Refused, lambda: store.get_state("hour-speed@v3")) == "STATE_UNKNOWN"
        assert reason(Refused, lambda: store.get_state("hour-speed@v0")) == "STATE_UNKNOWN"
        assert reason(Refused, lambda: store.get_state("nobody")) == "PTK_UNKNOWN"
        for wrong in ("hour-speed@7", "a@b@c", "", f"hour-speed@v{10**50}"):
            assert reason(InvalidInput, lambda wrong=wrong: store.get_state(wrong)) == "REFERENCE_INVALID"

    def test_pushing_again_changes_nothing(self, store: Store) -> None:
        filled(store)
        for _ in range(3):
            assert store.push("rides", day(0), producer="depot", seq=0) == FIRST_MS
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 4000) < 200

    def test_a_push_that_is_wrong(self, store: Store) -> None:
        store.create_stream(spec(out_of_bounds="refuse"))
        assert reason(Refused, lambda: store.push("nowhere", day(0))) == "STREAM_UNKNOWN"
        assert reason(InvalidInput, lambda: store.push("rides", day(0).drop_columns(["hour"]))) == "COLUMN_MISSING"
        assert reason(InvalidInput, lambda: store.push("rides", day(0), seq=-1)) == "SEQ_INVALID"
        assert reason(InvalidInput, lambda: store.push("rides", day(0), producer="")) == "NAME_INVALID"
        words = day(0).set_column(1, "hour", pa.array(["secret-word"] * 4000))
        with pytest.raises(InvalidInput) as refusal:
            store.push("rides", words)
        assert refusal.value.reason == "COLUMN_TYPE"
        assert "secret" not in str(refusal.value)
        fast = day(0).set_column(2, "speed", pa.array([61.5] * 4000))
        with pytest.raises(InvalidInput) as refusal:
            store.push("rides", fast)
        assert (refusal.value.reason, refusal.value.details) == ("OUT_OF_BOUNDS", {"column": "speed"})
        assert "61" not in str(refusal.value)

    def test_an_empty_frame_is_pushed(self, store: Store) -> None:
        filled(store)
        store.push("rides", day(0).slice(0, 0))
        assert len(store.run("rides", until_ms=FIRST_MS + DAY_MS)) == 1

    def test_registrations(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        ask: dict[str, Any] = {"stream": "rides", "kind": "statistics", "config": config()}
        accepted = store.register("a", target=0.3, **ask)
        assert accepted.status == "ACTIVE"
        assert accepted.planned_samples is not None
        refused = store.register("b", target=0.0001, **ask)
        assert refused.status == "REJECTED"
        assert refused.reason
        assert reason(Refused, lambda: store.register("a", target=0.3, **ask)) == "PTK_EXISTS"
        assert reason(Refused, lambda: store.register("c", target=0.3, **ask | {"stream": "x"})) == "STREAM_UNKNOWN"
        assert (
            reason(InvalidInput, lambda: store.register("c", target=0.3, **ask | {"kind": "x"})) == "PTK_KIND_UNKNOWN"
        )
        wrong = ask | {"config": {"keys": 3}}
        assert reason(InvalidInput, lambda: store.register("c", target=0.3, **wrong)) == reason(
            InvalidInput, lambda: twin.register("c", target=0.3, **wrong)
        )
        assert store.update_target("a", 0.25).status == "ACTIVE"
        assert store.update_target("a", 0.0001).status == "REJECTED"
        assert store.ptk("a").target == 0.25
        assert store.update_config("a", config("count")).status == "ACTIVE"
        assert store.ptk("a").config_version == 2
        assert reason(Refused, lambda: store.update_target("a", 0.3, etag=1)) == "ETAG_STALE"
        store.deregister("a")
        assert store.ptk("a").status == "RETIRED"
        assert reason(Refused, lambda: store.update_target("a", 0.3)) == "PTK_RETIRED"
        assert reason(Refused, lambda: store.deregister("nobody")) == "PTK_UNKNOWN"
        assert [one.name for one in store.ptks("rides")] == ["a", "b"]
        assert store.ptks("nowhere") == []
        assert store.ptks() == twin.ptks()

    def test_profiles(self, store: Store, twin: Store) -> None:
        filled(store)
        assert store.profile("hour-speed") == twin.profile("hour-speed")
        levels = ("0.5", "1")
        assert store.profile("hour-speed", levels).levels == levels
        assert store.renew_profile("hour-speed") == twin.profile("hour-speed")
        groups = {"values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}], "clusters": 2}
        answer = store.register("groups", stream="rides", kind="clusters", config=groups, target=0.5)
        assert answer.status == "WAITING"
        assert store.profile("groups") == twin.profile("groups")
        assert reason(Refused, lambda: store.profile("nobody")) == "PTK_UNKNOWN"

    def test_plans_that_are_not_made(self, store: Store, twin: Store) -> None:
        filled(store)
        assert store.plan("rides") is None
        assert store.plan_picture("rides") is None
        now = store.plan_now("rides")
        assert now.lines[0].ptk == "hour-speed"
        changes = Changes(
            add=(AddedPtk(name="more", kind="statistics", config=config("count"), target=0.3),),
            retarget={"hour-speed": 0.25},
        )
        ours, theirs = store.what_if("rides", changes), twin.what_if("rides", changes)
        assert [line.ptk for line in ours.proposed.lines] == ["hour-speed", "more"]
        assert (ours.proposed.lines, ours.unprofiled) == (theirs.proposed.lines, theirs.unprofiled)
        assert store.what_if("rides", Changes(epsilon="0.5", n_max=5000)).proposed.stream == "rides"
        assert reason(Refused, lambda: store.what_if("rides", Changes(remove=("nobody",)))) == "PTK_UNKNOWN"
        assert reason(Refused, lambda: store.plan("nowhere")) == "STREAM_UNKNOWN"

    def test_what_was_asked_is_approved_once_and_whole(self, store: Store, twin: Store) -> None:
        filled(store)
        assert (
            store.register("sharp", stream="rides", kind="statistics", config=config(), target=1e-6).status
            == "REJECTED"
        )
        store.register("old", stream="rides", kind="statistics", config=config("count"), target=0.3)
        new = AddedPtk(name="more", kind="statistics", config=config("count"), target=0.3)
        changes = Changes(add=(new,), remove=("old",), retarget={"hour-speed": 0.4, "sharp": 0.3})
        found = store.what_if("rides", changes)
        assert found.token == twin.what_if("rides", changes).token
        plan = store.approve("rides", found.token, request_id="once")
        assert {line.ptk for line in plan.lines} == {"hour-speed", "sharp", "more"}
        told = len(store.events(limit=1000))
        again = store.approve("rides", found.token, request_id="once")
        assert (again.lines, len(store.events(limit=1000))) == (plan.lines, told)
        fates = {one.name: (one.status, one.target) for one in store.ptks()}
        assert fates == {
            "hour-speed": ("ACTIVE", 0.4),
            "sharp": ("ACTIVE", 0.3),
            "old": ("RETIRED", 0.3),
            "more": ("ACTIVE", 0.3),
        }
        assert reason(Refused, lambda: store.approve("rides", found.token)) == "PLAN_STALE"
        assert reason(Refused, lambda: store.approve("rides", found.token, request_id="twice")) == "PLAN_STALE"
        assert reason(InvalidInput, lambda: store.approve("rides", "x")) == "PLAN_TOKEN_INVALID"
        assert reason(Refused, lambda: store.approve("nowhere", found.token)) == "STREAM_UNKNOWN"
        assert reason(Refused, lambda: store.what_if("rides", Changes(retarget={"old": 0.2}))) == "PTK_RETIRED"
        assert {one.name: (one.status, one.target) for one in store.ptks()} == fates

    def test_a_promise_is_looked_at_and_never_approved(self, store: Store) -> None:
        filled(store)
        loose = {"hour-speed": 0.4}
        assert store.what_if("rides", Changes(retarget=loose)).token
        for changes in (
            Changes(),
            Changes(retarget=loose, epsilon="0.5"),
            Changes(retarget=loose, n_max=5000),
            Changes(retarget=loose, delta="1e-9"),
            Changes(retarget=loose, composition="basic"),
            Changes(retarget={"hour-speed": 1e-6}),
        ):
            assert not store.what_if("rides", changes).token

    def test_events_in_pages(self, store: Store) -> None:
        filled(store)
        first, second = store.events()
        assert store.events(limit=1) == [first]
        assert store.events(first.id) == [second]
        assert reason(InvalidInput, lambda: store.events(limit=0)) == "PAGE_INVALID"

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
            assert reason(InvalidInput, lambda read=read: read("rides", page_token="x")) == "PAGE_TOKEN_INVALID"
            assert reason(Refused, lambda read=read: read("nowhere")) == "STREAM_UNKNOWN"
        assert store.blocks("rides").blocks == store.budget("rides").blocks
        summary = store.budget_summary("rides")
        assert (summary.blocks_alive, summary.blocks_retired) == (0, 6)
        assert summary == twin.budget_summary("rides")
        entries = list(twin.home.ledger.history())
        charges = store.charges("rides").charges
        assert [one.entry for one in charges] == [public_entry(entries[one.number - 1]) for one in charges]
        assert len(charges) == sum(one["kind"] in ("reserve", "spend", "release", "retire") for one in entries)
        assert {one.key.partition("/")[2] for one in charges if one.kind == "spend"} == {"count", "hour-speed"}

    def test_a_watermark_too_far(self, store: Store) -> None:
        store.create_stream(spec())
        far = FIRST_MS + 10_000 * DAY_MS
        assert reason(InvalidInput, lambda: store.run("rides", until_ms=far)) == "WATERMARK_TOO_FAR"
        assert reason(Refused, lambda: store.run("nowhere")) == "STREAM_UNKNOWN"

    def test_the_doctor(self, store: Store) -> None:
        filled(store)
        found = store.doctor([CANARY, b"\xff" * 40])
        assert "ERROR" not in {one.level for one in found}
        assert "OK" in {one.level for one in found if one.what == "canaries"}
        assert "ERROR" in {one.level for one in store.doctor(["hour-speed"]) if one.what == "canaries"}

    def test_who_subscribes_is_told_of_every_new_state(self, store: Store) -> None:
        filled(store, 3)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        seen: list[StateView] = []
        enough = threading.Event()

        def tell(view: StateView) -> None:
            seen.append(view)
            if view.version == 2:
                enough.set()
                raise RuntimeError("a callback that fails is told of the next one")
            if view.version == 3:
                last.set()

        last = threading.Event()
        end = store.subscribe("hour-speed", tell)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        assert enough.wait(10)
        store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
        assert last.wait(10)
        assert seen == store.states("hour-speed")[1:]
        end()
        end()
        assert reason(Refused, lambda: store.subscribe("nobody", tell)) == "PTK_UNKNOWN"

    def test_the_kinds(self, store: Store, twin: Store) -> None:
        assert store.kinds() == twin.kinds()
        assert "statistics" in store.kinds()

    def test_who_calls(self, store: Store) -> None:
        who = store.caller()
        assert set(who.roles) == {"reader", "producer", "developer", "operator"}
        assert (who.streams, who.ptks) == ((), ())

    def test_the_newest_cycles_and_the_plans_of_windows(self, store: Store, twin: Store) -> None:
        filled(store, 3)
        store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
        every = store.cycles("rides")
        assert len(every) == 3
        assert store.cycles("rides", newest=2) == twin.cycles("rides", newest=2) == every[1:]
        assert store.cycles("rides", newest=5000) == every
        assert reason(InvalidInput, lambda: store.cycles("rides", newest=0)) == "VALUE_INVALID"
        first = store.plan("rides", window=every[0].window)
        assert first is not None
        assert first.window == every[0].window
        assert first == twin.plan("rides", window=every[0].window)
        assert store.plan("rides") == store.plan("rides", window=every[2].window)
        assert store.plan("rides", window=7) is None

    def test_a_rejected_ptk_says_what_would_admit_it(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        ask: dict[str, Any] = {"stream": "rides", "kind": "statistics", "config": config()}
        refused = store.register("b", target=0.0001, **ask)
        found = store.ptk("b")
        assert (found.nearest_target, found.changes) == (refused.nearest_target, refused.changes)
        assert found.nearest_target is not None
        assert found == twin.ptk("b") == store.ptks()[0] == twin.ptks()[0]

    def test_what_is_left_where_records_are_held(self, store: Store, twin: Store) -> None:
        filled(store, 2)
        before = store.budget_summary("rides")
        assert before == twin.budget_summary("rides")
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        after = store.budget_summary("rides")
        assert after == twin.budget_summary("rides")
        held = [one.left for one in store.blocks("rides").blocks if one.status != "expired"]
        assert (after.least_left, after.most_left) == (min(held, default=None), max(held, default=None))

    def test_ptks_by_status(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        for name, target in (("a", 0.3), ("b", 0.0001), ("c", 0.4), ("d", 0.0002)):
            store.register(name, stream="rides", kind="statistics", config=config(), target=target)
        assert [one.name for one in store.ptks("rides", status="REJECTED")] == ["b", "d"]
        assert store.ptks(status="REJECTED", limit=1) == twin.ptks(status="REJECTED", limit=1) == [twin.ptk("b")]
        assert [one.name for one in store.ptks(limit=3)] == ["a", "b", "c"]
        assert store.ptks("rides", status="WAITING") == []
        assert reason(InvalidInput, lambda: store.ptks(status="NONSENSE")) == "VALUE_INVALID"
        assert reason(InvalidInput, lambda: store.ptks(limit=0)) == "PAGE_INVALID"
        counts = {"ACTIVE": 2, "REJECTED": 2}
        assert store.count_ptks() == store.count_ptks("rides") == twin.count_ptks() == counts
        assert store.count_ptks("nowhere") == {}

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
        assert reason(InvalidInput, lambda: store.newest_events(find="a", page_token=first)) == "PAGE_TOKEN_INVALID"

    def test_a_search_goes_back_step_by_step(self, store: Store, twin: Store, monkeypatch: pytest.MonkeyPatch) -> None:
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
        home = twin.home
        with home.metadata.write() as tx:
            ptk = tx.ptks.named("hour-speed").id
            subscription = tx.subscriptions.add(ptk, "127.0.0.1:9")
            tx.notifications.put(subscription.id, 1, attempts=4, status="DEAD", reason="UNAVAILABLE", due_ms=5)
            tx.notifications.put(subscription.id, 2, attempts=1, status="LATE", reason="INTERNAL", due_ms=2**40)
            done = tx.operations.start("CloseWindow", "rides", at_ms=7)
            tx.operations.end(done.id, "FAILED", reason="X", message="m", at_ms=9)
            tx.audit.add_all(
                Decision(5, who, f"/ptkstore.v1.StreamService/{what}", "rides", "ALLOWED")
                for who, what in (("ann", "GetStream"), ("bob", "CloseWindow"), ("ann", "CreateStream"))
            )
        operations = store.operations("rides").operations
        assert operations == twin.operations().operations
        last = operations[-1]
        assert (last.status, last.reason, last.message, last.created_ms, last.ended_ms) == ("FAILED", "X", "m", 7, 9)
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
            store.register(name, stream="rides", kind="statistics", config=config("count"), target=0.9)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        whole = store.cycles("rides", newest=2)
        assert whole == store.cycles("rides") == twin.cycles("rides", newest=2)
        assert {len(one.trained) for one in whole} == {3}
        for most in (0, 2, 9):
            found = store.cycles("rides", newest=2, most_trained=most)
            assert found == twin.cycles("rides", newest=2, most_trained=most)
            assert [one.outcomes for one in found] == [{"PUBLISHED": 3}] * 2
            assert [one.trained for one in found] == [one.trained[:most] for one in whole]

    def test_ptks_are_searched_and_sorted(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        for name, target in (("beta", 0.3), ("alpha", 0.0001), ("gamma-ray", 0.4), ("gamma", 0.0002)):
            store.register(name, stream="rides", kind="statistics", config=config(), target=target)

        def names(**asked: Any) -> list[str]:
            found = store.search_ptks(**asked)
            assert found == twin.search_ptks(**asked)
            return [one.name for one in found.ptks]

        assert names() == ["alpha", "beta", "gamma", "gamma-ray"]
        assert names(sort="-name", find="GAM") == ["gamma-ray", "gamma"]
        assert names(find="gamma stat ray rides") == ["gamma-ray"]
        assert names(sort="target", size=2, page=2) == names(sort="target", size=2, page=9) == ["beta", "gamma-ray"]
        assert names(status="REJECTED", sort="-target") == ["gamma", "alpha"]
        assert names(stream="nowhere") == []
        found = twin.search_ptks("rides", find="gamma", size=1, page=7)
        assert (found.found, found.total, found.page) == (2, 4, 2)
        assert found.ptks == (twin.ptk("gamma-ray"),)
        for bad in ({"sort": "secret"}, {"status": "NONSENSE"}):
            assert reason(InvalidInput, lambda bad=bad: twin.search_ptks(**bad)) == "VALUE_INVALID"
        for page, size in ((1, 0), (1, 1001), (0, 5), (-(10**30), 5)):
            for one in (store, twin):
                act = partial(one.search_ptks, page=page, size=size)
                assert reason(InvalidInput, act) == "PAGE_INVALID"

    def test_configurations_that_a_ptk_had(self, store: Store, twin: Store) -> None:
        store.create_stream(spec())
        store.register("p", stream="rides", kind="statistics", config=config(), target=0.3)
        first = store.ptk("p").config
        store.update_config("p", config("count"))
        found = twin.ptk_configs("p")
        assert found == store.ptk_configs("p")
        assert [(one.version, one.config) for one in found] == [(2, store.ptk("p").config), (1, first)]
        assert twin.ptk_configs("p", limit=1) == found[:1]
        assert reason(Refused, lambda: twin.ptk_configs("nobody")) == "PTK_UNKNOWN"
        for limit in (0, 101):
            assert reason(InvalidInput, lambda limit=limit: twin.ptk_configs("p", limit=limit)) == "PAGE_INVALID"

    def test_nobody_is_told_of_a_ptk_at_first(self, store: Store, twin: Store) -> None:
        store.create_stream(spec())
        store.register("p", stream="rides", kind="statistics", config=config(), target=0.3)
        assert store.subscriptions("p") == twin.subscriptions("p") == []
        assert reason(Refused, lambda: twin.subscriptions("nobody")) == "PTK_UNKNOWN"

    def test_the_map_of_the_ledger(self, store: Store, twin: Store) -> None:
        filled(store, 2)
        before = twin.ledger_map("rides")
        assert before == store.ledger_map("rides")
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        found = twin.ledger_map("rides")
        assert found == store.ledger_map("rides")
        assert (found.begin, found.count, found.blocks) == (0, len(found.columns), len(store.blocks("rides").blocks))
        assert sum(one.retired for one in found.columns) == store.budget_summary("rides").blocks_retired
        for one in found.columns:
            assert all(0 <= share <= 1 for share in one.shares)
            assert min(one.shares) <= one.mean <= max(one.shares)
            # Put together again from the journal: some tags have more on them than others.
            assert not one.flat
        assert max(max(one.shares) for one in found.columns) > min(min(one.shares) for one in found.columns)
        assert {one.who for one in found.spenders} >= {"counts of blocks", "hour-speed"}
        assert sum(one.part for one in found.spenders) == pytest.approx(1, abs=1e-4)
        part = twin.ledger_map("rides", begin=1, count=1)
        assert [one.first for one in part.columns] == [found.columns[1].first]
        assert part.columns[0] == found.columns[1]
        assert twin.ledger_map("rides", begin=10**9).columns == ()
        for bad in ({"count": 0}, {"count": 2001}, {"begin": -1}):
            assert reason(InvalidInput, lambda bad=bad: twin.ledger_map("rides", **bad)) == "PAGE_INVALID"
        assert reason(Refused, lambda: twin.ledger_map("nowhere")) == "STREAM_UNKNOWN"

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
        assert numbers(find="hour-speed") == [one.number for one in reversed(every) if "hour-speed" in one.key]
        block = store.blocks("rides").blocks[0].name
        about = [one.number for one in reversed(every) if _about(one.entry, 0)]
        assert about
        assert numbers(blocks=block) == about
        assert numbers(blocks="2") == [one.number for one in reversed(every) if one.kind in ("reserve", "retire")]
        assert numbers(blocks=block, find="count") == [one for one in about if one in numbers(find="/count")]
        assert numbers(find="%") == numbers(find="nobody") == numbers(blocks="none") == []
        token = twin.charges("rides", limit=1, newest_first=True).next_page_token
        assert reason(InvalidInput, lambda: twin.charges("rides", page_token=token, find="x")) == "PAGE_TOKEN_INVALID"


def _about(entry: dict[str, Any], block: int) -> bool:
    runs = entry.get("runs") or [run for part in entry.get("slices", ()) for run in part[0]]
    return any(first <= block < first + count for first, count in runs)
