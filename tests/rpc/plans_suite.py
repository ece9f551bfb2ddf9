"""Plans in every store: as they are, as they would be, and approved.

See `tests.rpc.store_suite`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ptklib.encoding.error_fields import field_of
from ptklib.errors import InvalidInput, Refused
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.views.remedies import remedies_of
from tests.engine.small import DAY_MS, FIRST_MS, config, spec
from tests.rpc.store_suite import filled, reason


class PlansSuite:
    """The contract of `Store`."""

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
        assert (
            reason(Refused, lambda: store.what_if("rides", Changes(remove=("nobody",))))
            == "PTK_UNKNOWN"
        )
        assert reason(Refused, lambda: store.plan("nowhere")) == "STREAM_UNKNOWN"

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

    def test_changes_are_applied_all_or_none(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=6000))

        def added(name: str, target: float, stream: str = "rides") -> AddedPtk:
            return AddedPtk(
                name=name, stream=stream, kind="statistics", config=config(), target=target
            )

        first = Changes(
            streams=(spec(name="other"),), add=(added("a", 0.1), added("b", 0.2, "other"))
        )
        applied = store.apply(first, request_id="first")
        assert applied.streams == ("other",)
        assert [(one.name, one.status) for one in applied.registrations] == [
            ("b", "ACTIVE"),
            ("a", "ACTIVE"),
        ]
        assert store.apply(first, request_id="first") == applied
        assert twin.ptks() == store.ptks()
        before = store.ptks(), store.streams(), store.events(limit=1000)
        second = Changes(
            streams=(spec(name="third"),),
            add=(added("c", 0.3), added("tight", 0.0001)),
            retarget={"b": 0.25},
            remove=("a",),
        )
        with pytest.raises(Refused) as caught:
            store.apply(second)
        with pytest.raises(Refused) as other:
            twin.apply(second)
        assert caught.value.reason == "PLAN_INFEASIBLE"
        assert caught.value.details == other.value.details
        assert caught.value.details["ptk"] == "tight"
        assert [one.kind for one in remedies_of(caught.value)] == ["remove"]
        assert (store.ptks(), store.streams(), store.events(limit=1000)) == before
        wrong = Changes(add=(replace(added("d", 0.3), config={**config(), "keys": 3}),))
        with pytest.raises(InvalidInput) as told:
            store.apply(wrong)
        assert (told.value.details["ptk"], field_of(told.value)) == ("d", ("config", "keys"))

    def test_what_was_asked_is_approved_once_and_whole(self, store: Store, twin: Store) -> None:
        filled(store)
        assert (
            store.register(
                "sharp", stream="rides", kind="statistics", config=config(), target=1e-6
            ).status
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
        assert (
            reason(Refused, lambda: store.approve("rides", found.token, request_id="twice"))
            == "PLAN_STALE"
        )
        assert reason(InvalidInput, lambda: store.approve("rides", "x")) == "PLAN_TOKEN_INVALID"
        assert reason(Refused, lambda: store.approve("nowhere", found.token)) == "STREAM_UNKNOWN"
        assert (
            reason(Refused, lambda: store.what_if("rides", Changes(retarget={"old": 0.2})))
            == "PTK_RETIRED"
        )
        assert {one.name: (one.status, one.target) for one in store.ptks()} == fates

    def test_what_a_stream_uses_is_looked_at_approved_and_applied(
        self, store: Store, twin: Store
    ) -> None:
        filled(store)
        assert (store.stream("rides").use, twin.stream("rides").use) == ("surplus", "surplus")
        found = store.what_if("rides", Changes(use={"rides": "minimum"}))
        assert (found.current.use, found.proposed.use) == ("surplus", "minimum")
        store.approve("rides", found.token, request_id="less")
        assert [one.use for one in (store.stream("rides"), twin.stream("rides"))] == ["minimum"] * 2
        store.apply(Changes(use={"rides": "surplus"}), request_id="more")
        assert [one.use for one in twin.streams()] == ["surplus"]
        wrong = Changes(use={"nowhere": "minimum"})
        assert reason(Refused, lambda: store.apply(wrong)) == "STREAM_UNKNOWN"
        nonsense = Changes(use={"rides": "everything"})
        assert reason(InvalidInput, lambda: store.apply(nonsense)) == "CHANGE_INVALID"
        assert store.what_if("rides", Changes()).token == ""

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
