"""What every metadata store must do.

Subclass it, and give it a fixture ``url`` of an empty database.
"""

from __future__ import annotations

import dataclasses
import math
import random
import string
from collections.abc import Callable, Iterator, Sequence

import pytest

from ptklib.errors import InvalidInput, SageError
from ptkstore.metadata import (
    Metadata,
    MetadataUnavailable,
    PtkRow,
    ResultsTransaction,
    Transaction,
)
from ptkstore.metadata.access.audit import Decision, Segment
from ptkstore.metadata.checks import MAX_JSON_BYTES
from ptkstore.metadata.outbox.events import RESULT_KINDS
from ptkstore.metadata.tables import audit, audit_segments
from ptkstore.metadata.work.charges import IndexHead, SpentRow, SpentSum

DIGEST = "a" * 64
OTHER = "b" * 64


@pytest.fixture
def metadata(url: str) -> Iterator[Metadata]:
    with Metadata.open(url) as metadata:
        with metadata.write() as tx:
            tx.streams.create("s", {"unit": "event"}, at_ms=5)
        yield metadata


def reason(metadata: Metadata, act: Callable[[ResultsTransaction], object]) -> str:
    with pytest.raises(SageError) as refusal, metadata.write_results("known") as tx:
        act(tx)
    return refusal.value.reason


def new_ptk(tx: Transaction, name: str = "p") -> PtkRow:
    return tx.ptks.create(name, "s", "mean", {"column": "speed"}, 0.25, 2, at_ms=7)


class MetadataSuite:
    """The contract of `Metadata`, on any database."""

    def test_what_was_committed_is_there_after_opening_again(
        self, url: str, metadata: Metadata
    ) -> None:
        with metadata.write_results("known") as tx:
            ptk = new_ptk(tx)
            tx.blocks.put("s", "b", 0, 10, 0)
            tx.events.add("created", "p", None)
        with Metadata.open(url) as again, again.read() as tx:
            assert tx.streams.get("s").spec == {"unit": "event"}
            assert tx.ptks.named("p") == tx.ptks.get(ptk.id) == ptk
            assert [block.name for block in tx.blocks.list("s")] == ["b"]
            assert tx.events.newest() == 1

    def test_a_transaction_that_fails_leaves_nothing(self, metadata: Metadata) -> None:
        def fail(tx: Transaction) -> None:
            new_ptk(tx)
            tx.events.add("created", "p", {})
            tx.streams.get("none")

        assert reason(metadata, fail) == "STREAM_UNKNOWN"
        with metadata.read() as tx:
            assert tx.ptks.list() == ()
            assert tx.events.after(0) == ()

    def test_a_read_sees_one_moment_and_never_waits(self, metadata: Metadata) -> None:
        with metadata.read() as before:
            assert before.events.newest() == 0
            with metadata.write() as tx:
                tx.events.add("a", "p", {})
                with metadata.read() as during:
                    assert during.events.newest() == 0
            assert before.events.newest() == 0
        with metadata.read() as after:
            assert after.events.newest() == 1

    def test_a_read_cannot_write_and_writes_do_not_nest(self, metadata: Metadata) -> None:
        with metadata.read() as tx, pytest.raises(InvalidInput, match="TRANSACTION_READ_ONLY"):
            tx.streams.create("t", {})
        with metadata.read() as tx, pytest.raises(InvalidInput, match="TRANSACTION_READ_ONLY"):
            tx.events.add("a", "p", {})
        nested = metadata.write()
        with metadata.write(), pytest.raises(InvalidInput, match="TRANSACTION_NESTED"):
            nested.__enter__()
        with metadata.write() as tx:
            assert tx.cycles.list("s") == ()

    def test_only_a_transaction_for_results_can_write_them(self, metadata: Metadata) -> None:
        writing = {
            "blocks": ("put", "set_status", "set_statuses", "set_dp_count"),
            "cycles": ("start", "add_step", "add_steps", "finish"),
            "plans": ("put",),
            "profiles": ("put",),
            "states": ("add", "add_all"),
        }
        with metadata.write() as tx:
            for noun, names in writing.items():
                assert not [name for name in names if hasattr(getattr(tx, noun), name)], noun
            for kind in sorted(RESULT_KINDS):
                with pytest.raises(InvalidInput, match="tells a result"):
                    tx.events.add(kind, "p", {})
        before = [tx.witness.number() for tx in self._moments(metadata)]
        with metadata.write_results("known") as results:
            for noun, names in writing.items():
                assert all(hasattr(getattr(results, noun), name) for name in names), noun
            assert results.witness.body() == "known"
            for kind in sorted(RESULT_KINDS):
                results.events.add(kind, "p", {})
        assert [tx.witness.number() for tx in self._moments(metadata)] == [before[0] + 1]

    def _moments(self, metadata: Metadata) -> Iterator[Transaction]:
        with metadata.read() as tx:
            yield tx

    def test_what_a_restore_gives_up_is_closed(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as results:
            results.blocks.put("s", "b", 0, 10, 0)
            first, second = (results.cycles.start("s", window) for window in range(2))
            results.cycles.finish(first, "DONE", {"dp_records": 7})
        with metadata.write() as tx:
            tx.blocks.give_up("s")
            assert tx.cycles.give_up("s", at_ms=9) == 1
            assert tx.cycles.give_up("s", at_ms=10) == 0
            assert tx.blocks.get("s", "b").status == "expired"
            assert tx.cycles.get(first).status == "DONE"
            closed = tx.cycles.get(second)
        assert (closed.status, closed.body, closed.finished_ms) == (
            "GIVEN_UP",
            {"dp_records": 0},
            9,
        )

    def test_closed_is_closed(self, url: str, metadata: Metadata) -> None:
        metadata.close()
        metadata.close()
        with pytest.raises(MetadataUnavailable, match="METADATA_CLOSED"), metadata.read():
            pass
        with pytest.raises(MetadataUnavailable, match="METADATA_CLOSED"), metadata.write():
            pass

    def test_rows_are_frozen(self, metadata: Metadata) -> None:
        with metadata.read() as tx:
            stream = tx.streams.get("s")
        with pytest.raises(dataclasses.FrozenInstanceError):
            stream.name = "t"  # type: ignore[misc]

    @pytest.mark.parametrize(
        "value", [None, 0, -1.5, 1e300, "text", "é\u0000\n", [], {"a": [1, {"b": None}]}, True]
    )
    def test_json_comes_back_as_it_went_in(self, metadata: Metadata, value: object) -> None:
        with metadata.write() as tx:
            tx.streams.create("t", value)
        with metadata.read() as tx:
            found = tx.streams.get("t").spec
        assert found == value
        assert type(found) is type(value)

    @pytest.mark.parametrize(
        ("act", "expected"),
        [
            (lambda tx: tx.streams.create("t", float("nan")), "JSON_INVALID"),
            (lambda tx: tx.streams.create("t", {"a": object()}), "JSON_INVALID"),
            (lambda tx: tx.streams.create("t", "\ud800"), "JSON_INVALID"),
            (lambda tx: tx.streams.create("t", "x" * MAX_JSON_BYTES), "JSON_INVALID"),
            (lambda tx: tx.streams.create("", {}), "NAME_INVALID"),
            (lambda tx: tx.streams.create("a\nb", {}), "NAME_INVALID"),
            (lambda tx: tx.streams.create("x" * 201, {}), "NAME_INVALID"),
            (lambda tx: tx.streams.create("t", {}, at_ms=2**63), "VALUE_INVALID"),
            (lambda tx: tx.streams.create("t", {}, at_ms=1.5), "VALUE_INVALID"),
            (lambda tx: tx.streams.create("s", {}), "STREAM_EXISTS"),
            (lambda tx: tx.streams.get("t"), "STREAM_UNKNOWN"),
            (lambda tx: tx.streams.list(limit=0), "PAGE_INVALID"),
            (lambda tx: tx.blocks.put("t", "b", 0, 1, 0), "STREAM_UNKNOWN"),
            (lambda tx: tx.blocks.put("s", "b", 1, 1, 0), "VALUE_INVALID"),
            (lambda tx: tx.blocks.get("s", "b"), "BLOCK_UNKNOWN"),
            (lambda tx: tx.blocks.set_status("s", "b", "sealed"), "BLOCK_UNKNOWN"),
            (lambda tx: tx.blocks.set_status("s", "b", "half"), "VALUE_INVALID"),
            (lambda tx: tx.ptks.create("p", "t", "mean", {}, 0.1, 1), "STREAM_UNKNOWN"),
            (lambda tx: tx.ptks.create("p", "s", "mean", {}, float("inf"), 1), "VALUE_INVALID"),
            (lambda tx: tx.ptks.create("p", "s", "mean", {}, 0.1, 0), "VALUE_INVALID"),
            (lambda tx: tx.ptks.create("p", "s", "mean", {}, None, 1), "VALUE_INVALID"),
            (lambda tx: (new_ptk(tx), new_ptk(tx)), "PTK_EXISTS"),
            (lambda tx: tx.ptks.get(9), "PTK_UNKNOWN"),
            (lambda tx: tx.ptks.named("q"), "PTK_UNKNOWN"),
            (lambda tx: tx.ptks.config(new_ptk(tx).id, 2), "PTK_UNKNOWN"),
            (lambda tx: tx.ptks.set_status(new_ptk(tx).id, "RUNNING"), "VALUE_INVALID"),
            (lambda tx: tx.profiles.put(new_ptk(tx).id, 2, 0.1, [], [], "x"), "PTK_UNKNOWN"),
            (lambda tx: tx.plans.put("t", 0, {}, "ok"), "STREAM_UNKNOWN"),
            (lambda tx: tx.plans.get(1), "PLAN_UNKNOWN"),
            (lambda tx: tx.cycles.start("t", 0), "STREAM_UNKNOWN"),
            (lambda tx: tx.cycles.get(1), "CYCLE_UNKNOWN"),
            (lambda tx: tx.cycles.add_step(1, "x"), "CYCLE_UNKNOWN"),
            (lambda tx: tx.cycles.add_step(tx.cycles.start("s", 0), ""), "VALUE_INVALID"),
            (lambda tx: tx.cycles.finish(tx.cycles.start("s", 0), "RUNNING"), "VALUE_INVALID"),
            (lambda tx: tx.states.get(1, 1), "STATE_UNKNOWN"),
            (lambda tx: tx.states.add(1, 1, "../" + "a" * 61, {}, 0, 0, cycle=1), "VALUE_INVALID"),
            (lambda tx: tx.states.add(1, 1, DIGEST, {}, 0, 0, cycle=1), "PTK_UNKNOWN"),
            (
                lambda tx: tx.states.add(new_ptk(tx).id, 1, DIGEST, {}, 0, 0, cycle=1),
                "CYCLE_UNKNOWN",
            ),
            (lambda tx: tx.events.mark_delivered("bus", 1), "EVENT_UNKNOWN"),
            (lambda tx: tx.subscriptions.add(1, "http://x"), "PTK_UNKNOWN"),
            (lambda tx: tx.subscriptions.add(new_ptk(tx).id, ""), "VALUE_INVALID"),
            (lambda tx: tx.subscriptions.add(new_ptk(tx).id, "é" * 1001), "VALUE_INVALID"),
            (lambda tx: tx.events.mark_delivered("é" * 1001, 1), "VALUE_INVALID"),
            (lambda tx: tx.subscriptions.remove(1), "SUBSCRIPTION_UNKNOWN"),
        ],
    )
    def test_what_is_refused(
        self, metadata: Metadata, act: Callable[[ResultsTransaction], object], expected: str
    ) -> None:
        assert reason(metadata, act) == expected

    def test_a_name_with_nul_is_an_error_of_ours(self, metadata: Metadata) -> None:
        for nouns in ("ptks", "newest"):
            with pytest.raises(SageError) as refusal, metadata.read() as tx:
                getattr(tx, nouns).named("a\0b")
            assert refusal.value.reason in ("VALUE_INVALID", "PTK_UNKNOWN")

    def test_streams_come_in_pages_by_name(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            for name in ("c", "a", "b"):
                tx.streams.create(name, {})
            assert [one.name for one in tx.streams.list()] == ["a", "b", "c", "s"]
            assert [one.name for one in tx.streams.list(limit=2)] == ["a", "b"]
            assert [one.name for one in tx.streams.list(limit=2, after="b")] == ["c", "s"]

    def test_a_block_moves_forward_only_and_is_counted_once(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            block = tx.blocks.put("s", "b", 0, 10, 3)
            assert (block.status, block.dp_count) == ("open", None)
            assert tx.blocks.set_status("s", "b", "sealed").status == "sealed"
            assert tx.blocks.set_dp_count("s", "b", -4).dp_count == -4
            assert tx.blocks.set_dp_count("s", "b", -4).dp_count == -4
            assert tx.blocks.put("s", "b", 0, 10, 3).status == "sealed"
            assert tx.blocks.set_status("s", "b", "sealed").status == "sealed"
            assert tx.blocks.set_status("s", "b", "expired").status == "expired"
        assert (
            reason(metadata, lambda tx: tx.blocks.set_status("s", "b", "sealed"))
            == "BLOCK_STATUS_INVALID"
        )
        assert reason(metadata, lambda tx: tx.blocks.set_dp_count("s", "b", 5)) == "BLOCK_COUNTED"
        assert reason(metadata, lambda tx: tx.blocks.put("s", "b", 0, 11, 3)) == "BLOCK_EXISTS"
        assert reason(metadata, lambda tx: tx.blocks.put("s", "b", 0, 10, 4)) == "BLOCK_EXISTS"

    def test_blocks_come_by_time_in_pages_and_by_window(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            tx.streams.create("t", {})
            tx.blocks.put("t", "d", 0, 10, 0)
            for name, start_ms in (("z", 0), ("b", 10), ("a", 10), ("c", 20)):
                tx.blocks.put("s", name, start_ms, start_ms + 10, start_ms // 20)
            tx.blocks.set_status("s", "a", "sealed")
            assert [one.name for one in tx.blocks.list("s")] == ["z", "a", "b", "c"]
            assert [one.name for one in tx.blocks.list("s", 0)] == ["z", "a", "b"]
            assert [one.name for one in tx.blocks.list("s", 1)] == ["c"]
            assert [one.name for one in tx.blocks.list("s", status="sealed")] == ["a"]
            assert [one.name for one in tx.blocks.list("s", limit=2)] == ["z", "a"]
            assert [one.name for one in tx.blocks.list("s", limit=2, after="a")] == ["b", "c"]

    def test_a_ptk_keeps_its_configurations_and_guards_its_etag(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            ptk = new_ptk(tx)
            assert (ptk.status, ptk.config_version, ptk.etag, ptk.created_ms) == (
                "WAITING",
                1,
                1,
                7,
            )
            second = tx.ptks.update_config(ptk.id, {"column": "fare"}, etag=1, at_ms=8)
            assert (second.config, second.config_version, second.etag, second.updated_ms) == (
                {"column": "fare"},
                2,
                2,
                8,
            )
            assert tx.ptks.config(ptk.id, 1) == {"column": "speed"}
            third = tx.ptks.update_target(ptk.id, 0.5, etag=2)
            assert (third.target, third.config_version, third.etag) == (0.5, 2, 3)
            fourth = tx.ptks.set_status(
                ptk.id, "REJECTED", reason="no room", suggestion={"target": 0.6}
            )
            assert (fourth.status, fourth.reason, fourth.suggestion, fourth.etag) == (
                "REJECTED",
                "no room",
                {"target": 0.6},
                4,
            )
            assert tx.ptks.set_status(ptk.id, "ACTIVE", etag=4).suggestion is None
            effort = tx.ptks.create("e", "s", "mean", {}, None, 1, epsilon="0.3")
            assert (effort.target, effort.epsilon) == (None, "0.3")
            assert effort == tx.ptks.get(effort.id) == tx.newest.named("e").ptk
            assert tx.ptks.list("s")[-1] == effort == tx.ptks.some([effort.id])[0]
            aimed = tx.ptks.update_target(effort.id, 0.2, etag=1)
            assert (aimed.target, aimed.epsilon) == (0.2, None)
            again = tx.ptks.update_target(effort.id, None, etag=2, epsilon="1/3")
            assert (again.target, again.epsilon) == (None, "1/3")
        for act in (
            lambda tx: tx.ptks.update_config(ptk.id, {}, etag=4),
            lambda tx: tx.ptks.update_target(ptk.id, 1.0, etag=4),
            lambda tx: tx.ptks.set_status(ptk.id, "RETIRED", etag=4),
        ):
            assert reason(metadata, act) == "ETAG_STALE"
        with metadata.read() as tx:
            assert tx.ptks.get(ptk.id) == dataclasses.replace(
                fourth, status="ACTIVE", reason="", suggestion=None, etag=5
            )

    def test_ptks_come_by_stream_and_status_in_pages(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            ptks = [new_ptk(tx, name) for name in ("z", "y", "x")]
            tx.streams.create("t", {})
            tx.ptks.create("w", "t", "mean", {}, 1, 1)
            tx.ptks.set_status(ptks[1].id, "ACTIVE")
            assert [one.name for one in tx.ptks.list()] == ["z", "y", "x", "w"]
            assert [one.name for one in tx.ptks.list("s")] == ["z", "y", "x"]
            assert [one.name for one in tx.ptks.list("s", status="WAITING")] == ["z", "x"]
            assert [one.name for one in tx.ptks.list(limit=1, after=ptks[0].id)] == ["y"]

    def test_the_newest_profile_of_a_key_counts(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            ptk = new_ptk(tx).id
            first = tx.profiles.put(ptk, 1, 0.1, [0.5, 1.0], [900, None], "analytic")
            assert tx.profiles.put(ptk, 1, 0.1, [0.5, 1.0], [900, None], "analytic") == first
            second = tx.profiles.put(ptk, 1, 0.1, [0.5, 1.0], [800, None], "measured")
            neighbour = tx.profiles.put(ptk, 1, math.nextafter(0.1, 1), [0.5], [7], "analytic")
            assert tx.profiles.latest(ptk, 1, 0.2) is None
            assert tx.profiles.latest(ptk, 2, 0.1) is None
            assert tx.profiles.list(ptk, limit=1, after=first.id) == (second,)
        with metadata.read() as tx:
            assert tx.profiles.latest(ptk, 1, 0.1) == second
            assert tx.profiles.latest(ptk, 1, math.nextafter(0.1, 1)) == neighbour
            assert (second.levels, second.samples, second.source) == (
                [0.5, 1.0],
                [800, None],
                "measured",
            )

    def test_plans(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            assert tx.plans.latest("s") is None
            first = tx.plans.put("s", 0, {"k": 1}, "adopted", at_ms=3)
            second = tx.plans.put("s", 1, {"k": 2}, "kept")
            assert second > first
            latest = tx.plans.latest("s")
            assert latest is not None
            assert (latest.id, latest.window, latest.body, latest.status) == (
                second,
                1,
                {"k": 2},
                "kept",
            )
            assert tx.plans.latest("s", status="adopted") == tx.plans.get(first)
            assert [one.id for one in tx.plans.list("s")] == [first, second]
            assert [one.id for one in tx.plans.list("s", limit=1, after=first)] == [second]

    def test_a_cycle_resumes_where_it_was(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            later = tx.cycles.start("s", 8)
            cycle = tx.cycles.start("s", 7, at_ms=1)
            assert tx.cycles.start("s", 7) == cycle
            first = tx.cycles.add_step(cycle, "sealed", {"blocks": 2}, at_ms=2)
            tx.cycles.add_step(cycle, "trained:" + "x" * 200)
            assert tx.cycles.add_step(cycle, "sealed", {"blocks": 3}) == first
            assert first.body == {"blocks": 2}
            assert [one.id for one in tx.cycles.unfinished("s")] == [cycle, later]
            assert [one.step for one in tx.cycles.steps(cycle)] == [
                "sealed",
                "trained:" + "x" * 200,
            ]
            assert tx.cycles.step(cycle, "planned") is None
            done = tx.cycles.finish(cycle, "DONE", {"states": 1}, at_ms=9)
            assert (done.status, done.body, done.started_ms, done.finished_ms) == (
                "DONE",
                {"states": 1},
                1,
                9,
            )
            assert tx.cycles.finish(cycle, "DONE", {"states": 1}) == done
            assert tx.cycles.add_step(cycle, "sealed") == first
            assert tx.cycles.start("s", 7) == cycle
            assert [one.id for one in tx.cycles.unfinished("s")] == [later]
            assert [one.id for one in tx.cycles.list("s", limit=1, after=later)] == [cycle]
        assert reason(metadata, lambda tx: tx.cycles.add_step(cycle, "planned")) == "CYCLE_FINISHED"
        assert reason(metadata, lambda tx: tx.cycles.finish(cycle, "FAILED")) == "CYCLE_FINISHED"

    def test_versions_count_up_and_a_cycle_gives_one(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            ptk, other = new_ptk(tx).id, new_ptk(tx, "q").id
            cycles = [tx.cycles.start("s", window) for window in range(4)]
            assert tx.states.latest(ptk) is None
            assert tx.states.next_version(ptk) == 1
            first = tx.states.add(ptk, 1, DIGEST, {"version": 1}, 0, 100, cycle=cycles[0])
            assert (
                tx.states.add(ptk, None, DIGEST, {"version": 9}, 0, 999, cycle=cycles[0]) == first
            )
            second = tx.states.add(ptk, None, OTHER, {"version": 2}, 1, 200, cycle=cycles[1])
            assert (
                first.version,
                second.version,
                tx.states.add(other, 1, DIGEST, {}, 0, 100, cycle=cycles[0]).version,
            ) == (
                1,
                2,
                1,
            )
        with metadata.read() as seen:
            assert seen.states.get(ptk, 1) == first
            assert first.manifest == {"version": 1}
            assert seen.states.latest(ptk) == second
            assert [seen.states.as_of(ptk, time) for time in (99, 100, 199, 200)] == [
                None,
                first,
                first,
                second,
            ]
            assert seen.states.list(ptk) == (first, second)
            assert seen.states.list(ptk, limit=5, after=1) == (second,)
            assert seen.states.digests() == {DIGEST, OTHER}
            assert [
                seen.states.has_digest(ptk, digest) for digest in (DIGEST, OTHER, "2" * 64, "\0")
            ] == [
                True,
                True,
                False,
                False,
            ]
            assert not seen.states.has_digest(other, OTHER)

        def add(digest: str, version: int | None, cycle: int) -> str:
            return reason(
                metadata, lambda tx: tx.states.add(ptk, version, digest, {}, 0, 300, cycle=cycle)
            )

        assert add(OTHER, None, cycles[0]) == "STATE_EXISTS"
        assert add(DIGEST, 2, cycles[0]) == "STATE_EXISTS"
        assert add(DIGEST, 2, cycles[3]) == "VERSION_STALE"
        assert add(DIGEST, 4, cycles[3]) == "VERSION_STALE"

    def test_cycles_and_versions_are_counted_by_stream(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            tx.streams.create("t", {})
            p, q = new_ptk(tx).id, new_ptk(tx, "q").id
            elsewhere = tx.ptks.create("r", "t", "mean", {}, 0.5, 1).id
            first, second, _ = (tx.cycles.start("s", window) for window in range(3))
            other = tx.cycles.start("t", 0)
            tx.states.add_all({p: (1, DIGEST, {}), q: (1, OTHER, {})}, 0, 100, cycle=first)
            tx.states.add(p, 2, OTHER, {}, 1, 200, cycle=second)
            tx.states.add(elsewhere, 1, DIGEST, {}, 0, 300, cycle=other)
            tx.cycles.finish(first, "DONE")
            tx.cycles.finish(second, "SHORT")
        with metadata.read() as tx:
            assert tx.cycles.count("s") == {"DONE": 1, "SHORT": 1, "RUNNING": 1}
            assert (
                tx.cycles.count("none"),
                tx.states.count("none"),
                tx.states.newest_times("none"),
            ) == ({}, 0, {})
            assert (tx.states.count("s"), tx.states.count("t")) == (3, 1)
            assert tx.states.newest_times("s") == {p: 200, q: 100}

    def test_several_states_are_added_all_or_none(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            p, q, r = (new_ptk(tx, name).id for name in "pqr")
            cycles = [tx.cycles.start("s", window) for window in range(2)]
            tx.states.add(p, 1, DIGEST, {}, 0, 100, cycle=cycles[0])
            added = tx.states.add_all(
                {q: (1, OTHER, {"q": 1}), p: (2, OTHER, {})}, 1, 200, cycle=cycles[1]
            )
            assert [(one.ptk, one.version, one.digest) for one in added] == [
                (q, 1, OTHER),
                (p, 2, OTHER),
            ]
            again = tx.states.add_all(
                {p: (2, OTHER, {}), r: (None, DIGEST, {})}, 1, 300, cycle=cycles[1]
            )
            assert again[0] == added[1]
            assert tx.states.add_all({}, 1, 300, cycle=cycles[1]) == ()
        with metadata.read() as seen:
            assert seen.states.newest([p, q]) == {p: added[1], q: added[0]}
            assert seen.states.newest([]) == {}
            assert seen.states.latest(r) == again[1]
        late: dict[int, tuple[int | None, str, object]] = {q: (2, DIGEST, {}), p: (2, DIGEST, {})}
        assert (
            reason(metadata, lambda tx: tx.states.add_all(late, 1, 300, cycle=cycles[0]))
            == "STATE_EXISTS"
        )
        unknown: dict[int, tuple[int | None, str, object]] = {
            q: (2, DIGEST, {}),
            99: (1, DIGEST, {}),
        }
        assert (
            reason(metadata, lambda tx: tx.states.add_all(unknown, 1, 300, cycle=cycles[0]))
            == "PTK_UNKNOWN"
        )
        with metadata.read() as seen:
            assert seen.states.latest(q) == added[0]

    def test_several_blocks_move_on_all_or_none(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            for place, name in enumerate("abc"):
                tx.blocks.put("s", name, place * 10, place * 10 + 10, 0)
            tx.blocks.set_statuses("s", ["a", "b"], "sealed")
            tx.blocks.set_statuses("s", [], "expired")
        assert (
            reason(metadata, lambda tx: tx.blocks.set_statuses("s", ["c", "d"], "sealed"))
            == "BLOCK_UNKNOWN"
        )
        assert (
            reason(metadata, lambda tx: tx.blocks.set_statuses("s", ["c", "a"], "open"))
            == "BLOCK_STATUS_INVALID"
        )
        with metadata.read() as seen:
            assert [one.status for one in seen.blocks.list("s")] == ["sealed", "sealed", "open"]

    def test_events_of_some_streams_and_ptks(self, metadata: Metadata) -> None:
        with metadata.write_results("known") as tx:
            tx.streams.create("other", {})
            new_ptk(tx, "p")
            new_ptk(tx, "q")
            # A PTK with the name of a stream is not the stream.
            tx.ptks.create("s", "other", "mean", {}, 0.25, 2)
            for kind, subject in (
                ("stream.made", "s"),
                ("ptk.state", "p"),
                ("ptk.state", "s"),
                ("plan.kept", "other"),
            ):
                tx.events.add(kind, subject, {})
            tx.events.add("ptk.state", "q", {})

            def ids(streams: Sequence[str] = (), names: Sequence[str] = ()) -> list[int]:
                return [one.id for one in tx.events.after(0, streams=streams, names=names)]

            assert ids() == [1, 2, 3, 4, 5]
            assert ids(streams=["s"]) == [1, 2, 5]
            assert ids(streams=["other"]) == [3, 4]
            assert ids(streams=["s", "other"]) == [1, 2, 3, 4, 5]
            assert ids(names=["p", "s"]) == [2, 3]
            assert ids(streams=["s"], names=["p", "s"]) == [2]
            assert [one.id for one in tx.events.after(2, 1, streams=["s"])] == [5]

    def test_blocks_are_counted_and_those_that_are_held_have_counts(
        self, metadata: Metadata
    ) -> None:
        with metadata.write_results("known") as tx:
            for number, name in enumerate("abcd"):
                tx.blocks.put("s", name, 10 * (number // 2), 10 * (number // 2) + 10, number)
            tx.blocks.set_statuses("s", ["a", "b"], "expired")
            tx.blocks.set_dp_count("s", "a", 3)
            tx.blocks.set_dp_count("s", "c", 5)
            assert tx.blocks.count("s") == 4
            assert tx.blocks.count("nowhere") == 0
            assert tx.blocks.dp_counts("s") == {"c": 5, "d": 0}
            assert tx.blocks.dp_total("s") == (8, 2)
            assert tx.blocks.dp_total("nowhere") == (0, 0)
            tx.blocks.set_status("s", "c", "sealed")
            assert tx.blocks.closed("s", ["a", "c", "d", "nowhere"]) == {"a", "c"}
            assert tx.blocks.closed("s", (f"x{number}" for number in range(2000))) == set()
            # Two begin at the same time: a page goes on between them.
            assert [one.name for one in tx.blocks.list("s", after="a")] == ["b", "c", "d"]
            assert [one.name for one in tx.blocks.list("s", after="b", limit=1)] == ["c"]

    def test_several_events_keep_their_order(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            tx.events.add_all([("state", name, {"n": n}) for n, name in enumerate("qpq")], at_ms=5)
            tx.events.add_all([])
            assert [(one.subject, one.body, one.at_ms) for one in tx.events.after(0)] == [
                ("q", {"n": 0}, 5),
                ("p", {"n": 1}, 5),
                ("q", {"n": 2}, 5),
            ]

    def test_the_outbox_counts_up_and_marks_never_go_back(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            ids = [
                tx.events.add("state", subject, {"n": n}, at_ms=n)
                for n, subject in enumerate("pqp")
            ]
        assert ids == sorted(set(ids))
        with metadata.write() as tx:
            assert [one.subject for one in tx.events.after(0)] == ["p", "q", "p"]
            assert [one.id for one in tx.events.after(ids[0], 1)] == [ids[1]]
            assert tx.events.after(ids[2]) == ()
            assert tx.events.delivered("bus") == 0
            tx.events.mark_delivered("bus", ids[1], at_ms=50)
            tx.events.mark_delivered("bus", ids[0], at_ms=60)
            tx.events.mark_delivered("api", ids[0])
            assert tx.events.delivered("bus") == ids[1]
            assert [(one.subscriber, one.event, one.at_ms) for one in tx.events.deliveries()] == [
                ("api", ids[0], None),
                ("bus", ids[1], 50),
            ]
            assert [one.subscriber for one in tx.events.deliveries(limit=1, after="api")] == ["bus"]

    def test_the_newest_profiles_of_a_stream_are_those_of_its_ptks(
        self, metadata: Metadata
    ) -> None:
        with metadata.write_results("known") as tx:
            tx.streams.create("t", {})
            first, other = new_ptk(tx), tx.ptks.create("q", "t", "mean", {}, 0.5, 1)
            for ptk, target in ((first, 0.25), (first, 0.25), (first, 0.1), (other, 0.5)):
                tx.profiles.put(
                    ptk.id, 1, target, ["1"], [len(tx.profiles.list(ptk.id))], "measured"
                )
            keys = [(first.id, 1, 0.25), (first.id, 1, 0.1)]
            newest = {key: tx.profiles.latest(*key) for key in keys}
            found = tx.profiles.newest_of_stream("s")
            assert found == {key: one.id for key, one in newest.items() if one is not None}
            assert len(found) == 2
            assert list(tx.profiles.newest_of_stream("t")) == [(other.id, 1, 0.5)]
            assert tx.profiles.newest_of_stream("nowhere") == {}

    def test_what_was_spent_is_added_up(self, metadata: Metadata) -> None:
        def add(seq: int, *sums: SpentRow) -> None:
            with metadata.write() as tx:
                tx.charges.add([], IndexHead(seq, "m", seq), sums)

        add(1, SpentRow("s", "p", "training", 10, 2, 5), SpentRow("s", "p", "training", 30, 1, 2))
        add(
            2,
            SpentRow("s", "p", "training", 10, 1, 5),
            SpentRow("s", "q", "profile", 7, 1, 1 << 50),
        )
        add(3, SpentRow("other", "p", "training", 10, 1, 1), SpentRow("s", "p", "profile", 1, 1, 1))
        with metadata.read() as tx:
            assert tx.charges.spent("s", limit=10) == (
                SpentSum("q", "profile", 1, 7, 7.0 * (1 << 50)),
                SpentSum("p", "training", 4, 30, 160.0),
                SpentSum("p", "profile", 1, 1, 1.0),
            )
            assert len(tx.charges.spent("s", limit=2)) == 2
            assert tx.charges.spent_by_purpose("s") == (
                (
                    SpentSum("", "profile", 2, 7, 7.0 * (1 << 50) + 1),
                    SpentSum("", "training", 4, 30, 160.0),
                ),
                3,
            )
        # The largest one is given back: what is left has the next one.
        add(
            4,
            SpentRow("s", "p", "training", 30, -1, -2),
            SpentRow("s", "q", "profile", 7, -1, -(1 << 50)),
        )
        with metadata.read() as tx:
            assert tx.charges.spent("s", limit=10) == (
                SpentSum("p", "training", 3, 10, 100.0),
                SpentSum("p", "profile", 1, 1, 1.0),
            )
        many = [SpentRow("s", f"p{number}", "training", 1, 1, number) for number in range(2000)]
        add(5, *many)
        add(6, *many)
        with metadata.read() as tx:
            assert [one.charges for one in tx.charges.spent("s", limit=50)] == [2] * 50
            assert tx.charges.spent_by_purpose("s")[1] == 2002
        with metadata.write() as tx:
            tx.charges.clear()
            assert tx.charges.spent("s", limit=10) == ()
            assert tx.charges.spent_by_purpose("s") == ((), 0)

    def test_subscriptions(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            p, q = new_ptk(tx).id, new_ptk(tx, "q").id
            first = tx.subscriptions.add(p, "http://a")
            assert tx.subscriptions.add(p, "http://a") == first
            second = tx.subscriptions.add(q, "http://a")
            assert tx.subscriptions.list() == (first, second)
            assert tx.subscriptions.list(q) == (second,)
            assert tx.subscriptions.list(limit=1, after=first.id) == (second,)
            tx.subscriptions.remove(first.id)
            assert tx.subscriptions.list() == (second,)
            assert tx.subscriptions.add(p, "http://a").id > second.id

    def test_the_longest_endpoint_and_the_longest_names_are_kept(self, metadata: Metadata) -> None:
        # Nothing in it can be compressed away: a database with bounded indexes must take it as it
        # is.
        text = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=2000))
        long = "".join(chr(random.Random(2).randrange(0x4E00, 0x9FFF)) for _ in range(200))
        with metadata.write_results("known") as tx:
            assert tx.subscriptions.add(new_ptk(tx, long).id, text).endpoint == text
            tx.events.mark_delivered(text, tx.events.add("a", long, {}))
            assert tx.events.delivered(text) > 0
            tx.streams.create(long, {})
            assert tx.blocks.put(long, long, 0, 10, 0).name == long
            assert tx.cycles.add_step(tx.cycles.start(long, 0), long + long).step == long + long

    def test_audit_entries_leave_only_into_a_segment(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            tx.audit.add_all(
                Decision(number, "ann", "what", "", "ALLOWED", 1 + number) for number in range(5)
            )
            held = tx.audit.oldest(3, 10)
        assert [one.times for one in held] == [1, 2, 3]
        with pytest.raises(Exception, match="append-only"), metadata.write() as tx:
            tx.audit._session.execute(audit.delete().where(audit.c.id <= held[-1].id))
        with pytest.raises(Exception, match="ends with an entry"), metadata.write() as tx:
            tx.audit.release(Segment(held[-1].id, 3, "0" * 64, "file", "0" * 64, 9))
        segment = Segment(held[-1].id, 3, held[-1].digest, "file", "0" * 64, 9)
        with metadata.write() as tx:
            tx.audit.release(segment)
        with metadata.read() as tx:
            assert tx.audit.segments() == (segment,)
            assert tx.audit.verify() == 2
        with pytest.raises(Exception, match="append-only"), metadata.write() as tx:
            tx.audit._session.execute(audit_segments.delete())
