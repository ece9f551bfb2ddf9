"""PTKs in every store: registrations, profiles, states, configurations, searches.

See `tests.rpc.store_suite`.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from ptklib.errors import InvalidInput, Refused
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.views import StateView
from tests.engine.small import DAY_MS, FIRST_MS, config, spec
from tests.rpc.store_suite import filled, reason


class PtksSuite:
    """The contract of `Store`."""

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
        assert (
            reason(Refused, lambda: store.register("c", target=0.3, **ask | {"stream": "x"}))
            == "STREAM_UNKNOWN"
        )
        assert (
            reason(InvalidInput, lambda: store.register("c", target=0.3, **ask | {"kind": "x"}))
            == "PTK_KIND_UNKNOWN"
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

    def test_a_choice_of_windows_is_kept_and_told(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        ask: dict[str, Any] = {"stream": "rides", "kind": "statistics", "config": config()}
        store.register("rolled", target=0.3, over="rolling:07", **ask)
        store.apply(Changes(add=(AddedPtk(name="faded", target=0.4, over="decay:0.5", **ask),)))
        what_if = Changes(add=(AddedPtk(name="alone", target=0.4, over="last", **ask),))
        looked = store.what_if("rides", what_if)
        assert looked.token is not None
        store.approve("rides", looked.token)
        told = {"rolled": "rolling:7", "faded": "decay:0.5", "alone": "last"}
        assert {ptk.name: ptk.over for ptk in store.ptks("rides")} == told
        assert {ptk.name: ptk.over for ptk in twin.ptks("rides")} == told
        for wrong in ("rolling", "decay:2"):
            with pytest.raises(InvalidInput) as caught:
                store.register("wrong", target=0.3, over=wrong, **ask)
            assert caught.value.reason == "OVER_INVALID"

    def test_best_effort_is_kept_told_and_changed(self, store: Store, twin: Store) -> None:
        store.create_stream(spec())
        ask: dict[str, Any] = {"stream": "rides", "kind": "statistics", "config": config()}
        accepted = store.register("rest", epsilon="0.30", **ask)
        assert (accepted.status, accepted.planned_epsilon) == ("ACTIVE", "0.3")
        found = store.ptk("rest")
        assert (found.target, found.epsilon) == (None, "0.3")
        assert found == twin.ptk("rest") == store.ptks()[0] == twin.ptks()[0]
        assert store.profile("rest") == twin.profile("rest")
        refused = store.register("more", epsilon=2, **ask)
        assert refused.status == "REJECTED"
        assert [remedy.value for remedy in refused.remedies] == ["0.8"]
        assert store.ptk("more").remedies == refused.remedies == twin.ptk("more").remedies
        assert reason(InvalidInput, lambda: store.register("c", **ask)) == "TARGET_OR_EPSILON"
        both = ask | {"target": 0.3, "epsilon": "0.3"}
        assert reason(InvalidInput, lambda: store.register("c", **both)) == "TARGET_OR_EPSILON"
        assert store.update_target("rest", 0.3).status == "ACTIVE"
        assert (store.ptk("rest").target, store.ptk("rest").epsilon) == (0.3, None)
        assert store.update_target("rest", epsilon="0.2").status == "ACTIVE"
        add = AddedPtk(name="late", epsilon="0.1", **ask)
        store.apply(Changes(add=(add,), best_effort={"rest": "0.25"}))
        what_if = Changes(
            add=(AddedPtk(name="later", epsilon="0.05", **ask),), best_effort={"late": "0.15"}
        )
        looked = store.what_if("rides", what_if)
        assert looked.proposed.lines == twin.what_if("rides", what_if).proposed.lines
        assert {line.ptk: (line.epsilon, line.target) for line in looked.proposed.lines} == {
            "rest": ("0.25", None),
            "late": ("0.15", None),
            "later": ("0.05", None),
        }
        store.approve("rides", looked.token)
        told = {"rest": "0.25", "late": "0.15", "later": "0.05", "more": "2"}
        assert {ptk.name: ptk.epsilon for ptk in twin.ptks("rides")} == told
        assert {ptk.name: ptk.epsilon for ptk in store.ptks("rides")} == told

    def test_states_of_best_effort_tell_their_error(self, store: Store, twin: Store) -> None:
        filled(store, 1)
        ask: dict[str, Any] = {"stream": "rides", "kind": "statistics", "config": config()}
        store.register("rest", epsilon="0.3", **ask)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        (state,) = store.states("rest")
        assert state.error is not None
        assert state.error.source == "closed form"
        assert [state] == twin.states("rest")
        told = {line.ptk: line.error for line in cycle.trained}
        assert told["rest"] == state.error.text
        assert told["hour-speed"] == ""
        assert twin.cycles("rides") == [cycle]
        assert store.get_state("rest").manifest.error == {
            "source": "closed form",
            "at_most": state.error.at_most,
            "confidence": "0.95",
        }

    def test_a_rejected_ptk_says_what_would_admit_it(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        ask: dict[str, Any] = {"stream": "rides", "kind": "statistics", "config": config()}
        refused = store.register("b", target=0.0001, **ask)
        found = store.ptk("b")
        assert (found.nearest_target, found.changes) == (refused.nearest_target, refused.changes)
        assert found.nearest_target is not None
        assert found.remedies == refused.remedies
        assert [remedy.text for remedy in found.remedies] == list(found.changes)
        assert {remedy.kind for remedy in found.remedies} <= {
            "n_max",
            "target",
            "remove",
            "epsilon",
        }
        assert found == twin.ptk("b") == store.ptks()[0] == twin.ptks()[0]

    def test_profiles(self, store: Store, twin: Store) -> None:
        filled(store)
        assert store.profile("hour-speed") == twin.profile("hour-speed")
        levels = ("0.5", "1")
        assert store.profile("hour-speed", levels).levels == levels
        assert store.renew_profile("hour-speed") == twin.profile("hour-speed")
        groups = {
            "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
            "clusters": 2,
        }
        answer = store.register(
            "groups", stream="rides", kind="clusters", config=groups, target=0.5
        )
        assert answer.status == "WAITING"
        assert store.profile("groups") == twin.profile("groups")
        assert reason(Refused, lambda: store.profile("nobody")) == "PTK_UNKNOWN"

    def test_states_by_version_and_time(self, store: Store) -> None:
        filled(store, 2)
        assert reason(Refused, lambda: store.get_state("hour-speed")) == "STATE_UNKNOWN"
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        first, second = store.states("hour-speed")
        assert store.get_state("hour-speed@v2").manifest.version == 2
        assert store.get_state("hour-speed", as_of_ms=second.created_ms).manifest.version == 2
        assert (
            reason(Refused, lambda: store.get_state("hour-speed", as_of_ms=first.created_ms - 1))
            == "STATE_UNKNOWN"
        )
        assert reason(Refused, lambda: store.get_state("hour-speed@v3")) == "STATE_UNKNOWN"
        assert reason(Refused, lambda: store.get_state("hour-speed@v0")) == "STATE_UNKNOWN"
        assert reason(Refused, lambda: store.get_state("nobody")) == "PTK_UNKNOWN"
        for wrong in ("hour-speed@7", "a@b@c", "", f"hour-speed@v{10**50}"):
            assert (
                reason(InvalidInput, lambda wrong=wrong: store.get_state(wrong))
                == "REFERENCE_INVALID"
            )

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

    def test_nobody_is_told_of_a_ptk_at_first(self, store: Store, twin: Store) -> None:
        store.create_stream(spec())
        store.register("p", stream="rides", kind="statistics", config=config(), target=0.3)
        assert store.subscriptions("p") == twin.subscriptions("p") == []
        assert reason(Refused, lambda: twin.subscriptions("nobody")) == "PTK_UNKNOWN"

    def test_ptks_by_status(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        for name, target in (("a", 0.3), ("b", 0.0001), ("c", 0.4), ("d", 0.0002)):
            store.register(name, stream="rides", kind="statistics", config=config(), target=target)
        assert [one.name for one in store.ptks("rides", status="REJECTED")] == ["b", "d"]
        assert (
            store.ptks(status="REJECTED", limit=1)
            == twin.ptks(status="REJECTED", limit=1)
            == [twin.ptk("b")]
        )
        assert [one.name for one in store.ptks(limit=3)] == ["a", "b", "c"]
        assert store.ptks("rides", status="WAITING") == []
        assert reason(InvalidInput, lambda: store.ptks(status="NONSENSE")) == "VALUE_INVALID"
        assert reason(InvalidInput, lambda: store.ptks(limit=0)) == "PAGE_INVALID"
        counts = {"ACTIVE": 2, "REJECTED": 2}
        assert store.count_ptks() == store.count_ptks("rides") == twin.count_ptks() == counts
        assert store.count_ptks("nowhere") == {}

    def test_ptks_are_searched_and_sorted(self, store: Store, twin: Store) -> None:
        store.create_stream(spec(n_max=1000))
        for name, target in (
            ("beta", 0.3),
            ("alpha", 0.0001),
            ("gamma-ray", 0.4),
            ("gamma", 0.0002),
        ):
            store.register(name, stream="rides", kind="statistics", config=config(), target=target)

        def names(**asked: Any) -> list[str]:
            found = store.search_ptks(**asked)
            assert found == twin.search_ptks(**asked)
            return [one.name for one in found.ptks]

        assert names() == ["alpha", "beta", "gamma", "gamma-ray"]
        assert names(sort="-name", find="GAM") == ["gamma-ray", "gamma"]
        assert names(find="gamma stat ray rides") == ["gamma-ray"]
        assert (
            names(sort="target", size=2, page=2)
            == names(sort="target", size=2, page=9)
            == ["beta", "gamma-ray"]
        )
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
        assert [(one.version, one.config) for one in found] == [
            (2, store.ptk("p").config),
            (1, first),
        ]
        assert twin.ptk_configs("p", limit=1) == found[:1]
        assert reason(Refused, lambda: twin.ptk_configs("nobody")) == "PTK_UNKNOWN"
        for limit in (0, 101):
            assert (
                reason(InvalidInput, lambda limit=limit: twin.ptk_configs("p", limit=limit))
                == "PAGE_INVALID"
            )

    def test_the_kinds(self, store: Store, twin: Store) -> None:
        assert store.kinds() == twin.kinds()
        assert "statistics" in store.kinds()
