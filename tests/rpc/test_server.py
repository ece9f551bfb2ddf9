"""The server itself: repeats, pages, limits, streams of batches, operations, watching, draining, restarts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ptklib.errors import InvalidInput, Refused
from ptkstore.client import Store
from ptkstore.metadata import Metadata
from ptkstore.remote_push import Push
from ptkstore.rpc import messages
from ptkstore.rpc.faults import error_of
from ptkstore.rpc.repeats import Once, Repeats
from ptkstore.server import Server
from ptkstore.v1 import (
    budget_pb2,
    budget_pb2_grpc,
    operation_pb2,
    operation_pb2_grpc,
    plan_pb2,
    plan_pb2_grpc,
    ptk_pb2,
    ptk_pb2_grpc,
    stream_pb2,
    stream_pb2_grpc,
)
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.small import channel_to, serving, settings_of
from tests.rpc.store_suite import filled


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as (server, _):
        yield server


@pytest.fixture
def channel(server: Server) -> Iterator[grpc.Channel]:
    with channel_to(server) as channel:
        yield channel


@pytest.fixture
def streams(channel: grpc.Channel) -> Any:
    return stream_pb2_grpc.StreamServiceStub(channel)


@pytest.fixture
def ptks(channel: grpc.Channel) -> Any:
    return ptk_pb2_grpc.PtkServiceStub(channel)


def refusal(act: Any) -> str:
    """Code and reason of a refusal."""
    with pytest.raises(grpc.RpcError) as error:
        act()
    return f"{error.value.code().name} {error_of(error.value).reason}"  # type: ignore[attr-defined, unused-ignore]


def create(streams: Any, request_id: str = "", **changes: Any) -> stream_pb2.CreateStreamResponse:
    request = stream_pb2.CreateStreamRequest(request_id=request_id, spec_json=spec(**changes).to_json_text())
    made: stream_pb2.CreateStreamResponse = streams.CreateStream(request)
    return made


def registration(name: str = "a", request_id: str = "", target: float = 0.3) -> ptk_pb2.RegisterPtkRequest:
    return ptk_pb2.RegisterPtkRequest(
        request_id=request_id,
        name=name,
        stream="rides",
        kind="statistics",
        config_json=json.dumps(config()),
        target=target,
    )


def ipc(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def append(streams: Any, *batches: bytes, producer: str = "p", fingerprint: str = "", first: int = 0) -> list[int]:
    def requests() -> Iterator[stream_pb2.AppendRequest]:
        yield stream_pb2.AppendRequest(
            open=stream_pb2.AppendOpen(stream="rides", producer=producer, schema_fingerprint=fingerprint)
        )
        for seq, data in enumerate(batches, first):
            yield stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=seq, arrow_ipc=data))

    return [ack.seq for ack in streams.Append(requests())]


class TestRepeats:
    def test_the_same_request_gives_the_first_answer(self, streams: Any, ptks: Any) -> None:
        first = create(streams, "r1")
        assert create(streams, "r1") == first
        assert refusal(lambda: create(streams)) == "ALREADY_EXISTS STREAM_EXISTS"
        answer = ptks.RegisterPtk(registration(request_id="r2"))
        ptks.UpdatePtkPerformanceTarget(ptk_pb2.UpdatePtkPerformanceTargetRequest(name="a", target=0.4))
        assert ptks.RegisterPtk(registration(request_id="r2")) == answer
        assert ptks.GetPtk(ptk_pb2.GetPtkRequest(name="a")).ptk.target == 0.4

    def test_another_request_under_the_id_is_refused(self, streams: Any, ptks: Any) -> None:
        create(streams, "r1")
        assert refusal(lambda: create(streams, "r1", name="other")) == "ALREADY_EXISTS REQUEST_ID_REUSED"
        assert refusal(lambda: ptks.RegisterPtk(registration(request_id="r1"))) == "ALREADY_EXISTS REQUEST_ID_REUSED"

    def test_a_request_that_was_refused_leaves_its_id_free(self, streams: Any, ptks: Any) -> None:
        assert refusal(lambda: ptks.RegisterPtk(registration(request_id="r1"))) == "NOT_FOUND STREAM_UNKNOWN"
        create(streams)
        assert ptks.RegisterPtk(registration(request_id="r1")).ptk.name == "a"

    def test_answers_survive_a_restart(self, tmp_path: Path) -> None:
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            first = create(stream_pb2_grpc.StreamServiceStub(channel), "r1")
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            assert create(stream_pb2_grpc.StreamServiceStub(channel), "r1") == first

    def test_two_servers_that_are_asked_the_same_make_one_change(self, tmp_path: Path) -> None:
        request = ptk_pb2.DeregisterPtkRequest(request_id="r", name="a")
        with Metadata.open(tmp_path / "meta.db") as metadata:
            slow, fast = (Repeats(metadata, lambda: 1_000_000_000_000) for _ in range(2))

            def change(once: Once, who: str) -> bytes:
                with metadata.write() as tx:
                    tx.events.add("changed", who, {})
                    stamp = operation_pb2.Finding(what=who)
                    return once.keep(tx, stamp).SerializeToString()

            def overtaken(once: Once) -> bytes:
                assert fast.once("ann", "m", request, lambda other: change(other, "fast")) == told
                return change(once, "slow")

            def refused(once: Once) -> bytes:
                fast.once("ann", "m", again, lambda other: change(other, "fast"))
                raise Refused("ETAG_STALE", "the other was faster")

            told = operation_pb2.Finding(what="fast").SerializeToString()
            assert slow.once("ann", "m", request, overtaken) == told
            again = ptk_pb2.DeregisterPtkRequest(request_id="s", name="a")
            assert slow.once("ann", "m", again, refused) == told
            with metadata.read() as tx:
                assert [one.subject for one in tx.events.after(0)] == ["fast", "fast"]


class TestPages:
    def test_pages_are_whole_and_tokens_belong_to_their_question(self, streams: Any, ptks: Any) -> None:
        create(streams)
        for number in range(5):
            ptks.RegisterPtk(registration(f"p{number}", target=0.9))
        names: list[str] = []
        request = ptk_pb2.ListPtksRequest(page_size=2)
        sizes = []
        while True:
            page = ptks.ListPtks(request)
            names += [one.name for one in page.ptks]
            sizes.append(len(page.ptks))
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        assert (names, sizes) == (["p0", "p1", "p2", "p3", "p4"], [2, 2, 1])
        token = request.page_token
        other = ptk_pb2.ListPtksRequest(page_size=2, page_token=token, stream="rides")
        assert refusal(lambda: ptks.ListPtks(other)) == "INVALID_ARGUMENT PAGE_TOKEN_INVALID"
        for bad in ("x", "!!!!", token[:-2], token + "AAAA", "A" * 5000, "bnVsbA=="):
            request.page_token = bad
            assert refusal(lambda: ptks.ListPtks(request)) == "INVALID_ARGUMENT PAGE_TOKEN_INVALID"
        assert refusal(lambda: ptks.ListPtks(ptk_pb2.ListPtksRequest(page_size=-1))) == "INVALID_ARGUMENT PAGE_INVALID"
        assert len(ptks.ListPtks(ptk_pb2.ListPtksRequest(status="PTK_STATUS_RETIRED")).ptks) == 0

    def test_all_lists_have_pages(self, server: Server, channel: grpc.Channel, streams: Any) -> None:
        with Store(server.address) as store:
            filled(store, 3)
            store.create_stream(spec(name="other"))
            for number in (1, 2, 3):
                store.run("rides", until_ms=FIRST_MS + number * DAY_MS)
        operations = operation_pb2_grpc.OperationServiceStub(channel)
        budgets = budget_pb2_grpc.BudgetServiceStub(channel)
        plans = plan_pb2_grpc.PlanServiceStub(channel)
        events = operation_pb2_grpc.EventServiceStub(channel)
        ptks = ptk_pb2_grpc.PtkServiceStub(channel)
        lists: list[tuple[Any, Any, str, int]] = [
            (streams.ListStreams, stream_pb2.ListStreamsRequest(), "streams", 2),
            (ptks.ListStates, ptk_pb2.ListStatesRequest(name="hour-speed"), "states", 3),
            (operations.ListOperations, operation_pb2.ListOperationsRequest(), "operations", 3),
            (operations.ListCycles, operation_pb2.ListCyclesRequest(stream="rides"), "cycles", 3),
            (budgets.ListBlocks, budget_pb2.ListBlocksRequest(stream="rides"), "blocks", 6),
            (budgets.ListCharges, budget_pb2.ListChargesRequest(stream="rides"), "charges", 15),
            (plans.ListPlans, plan_pb2.ListPlansRequest(stream="rides"), "plans", 3),
            (events.ListAuditEntries, operation_pb2.ListAuditEntriesRequest(), "entries", 0),
        ]
        for method, request, field, count in lists:
            whole = list(getattr(method(request), field))
            found: list[Any] = []
            request.page_size = 2
            while True:
                page = method(request)
                found += getattr(page, field)
                assert len(getattr(page, field)) <= 2
                if not page.next_page_token:
                    break
                request.page_token = page.next_page_token
            if field == "entries":
                assert len(found) >= len(whole)
                continue
            assert found == whole
            assert len(found) == count, field
        (block, *_) = budgets.ListBlocks(budget_pb2.ListBlocksRequest(stream="rides")).blocks
        told = budgets.GetBlock(budget_pb2.GetBlockRequest(stream="rides", name=block.name))
        assert told.block == block
        assert told.losses[0].start == "0"
        assert (
            refusal(lambda: budgets.GetBlock(budget_pb2.GetBlockRequest(stream="rides", name="none")))
            == "NOT_FOUND BLOCK_UNKNOWN"
        )
        charges = budgets.ListCharges(budget_pb2.ListChargesRequest(stream="rides")).charges
        assert {one.kind for one in charges} == {"reserve", "spend", "retire"}
        assert {"count", "hour-speed"} <= {one.key.partition("/")[2] for one in charges if one.kind == "spend"}
        assert not budgets.ListCharges(budget_pb2.ListChargesRequest(stream="other")).charges


class TestAppend:
    def test_batches_are_acknowledged_in_order_and_duplicates_are_dropped(self, server: Server, streams: Any) -> None:
        create(streams)
        batches = [ipc(day(0).slice(begin, 500)) for begin in range(0, 4000, 500)]
        assert append(streams, *batches) == list(range(8))
        assert append(streams, *batches) == list(range(8))
        with Store(server.address) as store:
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 4000) < 200

    def test_without_a_fingerprint_columns_are_converted(self, server: Server, streams: Any) -> None:
        create(streams)
        table = day(0)
        shuffled = table.select(["driver", "speed", "at", "hour"]).append_column("more", pa.nulls(4000))
        wide = shuffled.set_column(3, "hour", shuffled["hour"].cast(pa.int64()))
        assert append(streams, ipc(wide), ipc(wide.slice(0, 0))) == [0, 1]
        assert refusal(lambda: append(streams, ipc(wide), fingerprint=spec().fingerprint)).endswith("SCHEMA_MISMATCH")
        several = pa.concat_tables([table.slice(0, 10), table.slice(10, 10)])
        assert append(streams, ipc(several), fingerprint=spec().fingerprint, first=7) == [7]

    @pytest.mark.parametrize(
        ("first", "reason"),
        [
            (stream_pb2.AppendRequest(), "INVALID_ARGUMENT APPEND_ORDER"),
            (stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=1)), "INVALID_ARGUMENT APPEND_ORDER"),
            (
                stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="none", producer="p")),
                "NOT_FOUND STREAM_UNKNOWN",
            ),
            (stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides")), "INVALID_ARGUMENT NAME_INVALID"),
            (
                stream_pb2.AppendRequest(
                    open=stream_pb2.AppendOpen(stream="rides", producer="p", schema_fingerprint="f")
                ),
                "INVALID_ARGUMENT SCHEMA_MISMATCH",
            ),
        ],
        ids=["nothing", "a batch first", "no such stream", "no producer", "another fingerprint"],
    )
    def test_the_first_message_opens(self, streams: Any, first: Any, reason: str) -> None:
        create(streams)
        assert refusal(lambda: list(streams.Append(iter([first])))) == reason

    def test_a_second_opening_and_an_empty_call_are_refused(self, streams: Any) -> None:
        create(streams)
        opening = stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", producer="p"))
        assert refusal(lambda: list(streams.Append(iter([opening, opening])))) == "INVALID_ARGUMENT APPEND_ORDER"
        assert refusal(lambda: list(streams.Append(iter([])))) == "INVALID_ARGUMENT APPEND_ORDER"
        assert list(streams.Append(iter([opening]))) == []

    def test_what_was_acknowledged_before_an_error_stays(self, server: Server, streams: Any) -> None:
        create(streams)
        good = ipc(day(0))
        acks = []
        call = streams.Append(
            iter(
                [
                    stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", producer="p")),
                    stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=0, arrow_ipc=good)),
                    stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=1, arrow_ipc=b"rubbish")),
                    stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=2, arrow_ipc=good)),
                ]
            )
        )
        with pytest.raises(grpc.RpcError) as error:
            acks += [ack.seq for ack in call]
        assert error_of(error.value).reason == "BATCH_INVALID"
        with Store(server.address) as store:
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert cycle.dp_records > 3500

    def test_a_seq_beyond_63_bits_is_refused(self, streams: Any) -> None:
        create(streams)
        assert refusal(lambda: append(streams, ipc(day(0)), first=2**64 - 1)) == "INVALID_ARGUMENT SEQ_INVALID"

    def test_a_message_that_is_too_large_is_refused(self, tmp_path: Path) -> None:
        with serving(tmp_path, server={"max_message_bytes": 1 << 16}) as (server, _), Store(server.address) as store:
            store.create_stream(spec())
            with pytest.raises(InvalidInput, match="MESSAGE_TOO_LARGE"):
                store.push("rides", day(0))

    def test_a_push_goes_on_after_the_connection_broke(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The server is replaced by another on the same port in the middle of a push."""
        monkeypatch.setattr("ptkstore.remote.rows_of", lambda *_: 100)
        with serving(tmp_path, server={"drain_seconds": 0}) as (server, _):
            address = server.address
            with Store(address) as store:
                store.create_stream(spec())
        taken: list[int] = []
        replaced = threading.Event()
        real = Push.take

        def slow(self: Push, sending: Any) -> Any:
            found = real(self, sending)
            taken.append(1)
            if len(taken) == 20:
                half.set()
                replaced.wait(20)
            return found

        half = threading.Event()
        monkeypatch.setattr(Push, "take", slow)

        def replace() -> None:
            with serving(tmp_path, server={"address": address, "drain_seconds": 0}):
                half.wait(20)
            with serving(tmp_path, server={"address": address, "drain_seconds": 0}):
                replaced.set()
                over.wait(30)

        over = threading.Event()
        thread = threading.Thread(target=replace)
        thread.start()
        with Store(address) as store:
            assert store.push("rides", day(0), producer="p", seq=1) == FIRST_MS
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        over.set()
        thread.join()
        assert len(taken) > 30
        assert abs(cycle.dp_records - 4000) < 200


class TestOperations:
    def test_an_operation_is_watched_to_its_end(self, server: Server, channel: grpc.Channel, streams: Any) -> None:
        with Store(server.address) as store:
            filled(store)
        request = stream_pb2.CloseWindowRequest(
            request_id="c1", stream="rides", until=messages.moment(FIRST_MS + DAY_MS)
        )
        operation = streams.CloseWindow(request).operation
        assert streams.CloseWindow(request).operation == operation
        stub = operation_pb2_grpc.OperationServiceStub(channel)
        seen = [one.operation for one in stub.WatchOperation(operation_pb2.WatchOperationRequest(id=operation.id))]
        assert seen[-1].status == operation_pb2.OPERATION_STATUS_DONE
        assert seen[-1].cycles[0].trained[0].outcome == "PUBLISHED"
        assert seen[-1].HasField("end_time")
        assert stub.GetOperation(operation_pb2.GetOperationRequest(id=operation.id)).operation == seen[-1]
        for wrong in ("", "x", "1" * 30, "-1", "\u0661"):
            asked = operation_pb2.GetOperationRequest(id=wrong)
            assert refusal(lambda asked=asked: stub.GetOperation(asked)) == "INVALID_ARGUMENT ID_INVALID"
        asked = operation_pb2.GetOperationRequest(id="999")
        assert refusal(lambda: stub.GetOperation(asked)) == "NOT_FOUND OPERATION_UNKNOWN"

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_a_restart_takes_up_what_was_running(self, tmp_path: Path) -> None:
        with serving(tmp_path) as (server, embedded), Store(server.address) as store:
            filled(store)
            reached = threading.Event()

            def die(step: str, moment: str) -> None:
                if (step, moment) == ("reserved", "written"):
                    reached.set()
                    raise SystemExit  # as if the process were gone: nothing after it is written

            embedded.home.on_step = die
            with channel_to(server) as channel:
                streams = stream_pb2_grpc.StreamServiceStub(channel)
                until = messages.moment(FIRST_MS + DAY_MS)
                operation = streams.CloseWindow(stream_pb2.CloseWindowRequest(stream="rides", until=until)).operation
            assert reached.wait(20)
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            stub = operation_pb2_grpc.OperationServiceStub(channel)
            *_, last = stub.WatchOperation(operation_pb2.WatchOperationRequest(id=operation.id))
            assert last.operation.status == operation_pb2.OPERATION_STATUS_DONE
            assert last.operation.cycles[0].trained[0].outcome == "PUBLISHED"

    def test_one_that_fails_says_why_without_a_text_of_others(self, tmp_path: Path) -> None:
        with serving(tmp_path) as (server, embedded), Store(server.address) as store:
            filled(store)

            def fail(_step: str, _moment: str) -> None:
                raise ValueError(CANARY)

            embedded.home.on_step = fail
            with pytest.raises(Exception, match="INTERNAL_ERROR") as error:
                store.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert CANARY not in str(error.value)
            embedded.home.on_step = lambda _step, _moment: None
            assert store.run("rides", until_ms=FIRST_MS + DAY_MS)[0].status == "DONE"

    def test_sealing(self, streams: Any) -> None:
        create(streams)
        request = stream_pb2.SealStreamRequest(request_id="s", name="rides", until=messages.moment(FIRST_MS + DAY_MS))
        sealed = streams.SealStream(request).blocks
        assert len(sealed) == 2
        assert streams.SealStream(request).blocks == sealed
        found = streams.GetStream(stream_pb2.GetStreamRequest(name="rides")).stream
        assert messages.millis(found, "watermark") == FIRST_MS + DAY_MS


class TestPlans:
    def test_what_was_looked_at_is_approved_as_a_whole(self, server: Server, channel: grpc.Channel) -> None:
        with Store(server.address) as store:
            filled(store)
            stub = plan_pb2_grpc.PlanServiceStub(channel)
            add = plan_pb2.AddPtk(name="more", kind="statistics", config_json=json.dumps(config("count")), target=0.3)
            changes = [
                plan_pb2.PlanChange(add=add),
                plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=0.4)),
            ]
            looked = stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=changes))
            again = stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=changes))
            assert again.token == looked.token
            assert [one.name for one in store.ptks()] == ["hour-speed"]
            request = plan_pb2.ApprovePlanRequest(request_id="a", stream="rides", token=looked.token)
            plan = stub.ApprovePlan(request).plan
            assert [one.ptk for one in plan.assignments] == ["hour-speed", "more"]
            assert stub.ApprovePlan(request).plan == plan
            assert (store.ptk("more").status, store.ptk("hour-speed").target) == ("ACTIVE", 0.4)
            late = plan_pb2.ApprovePlanRequest(stream="rides", token=again.token)
            assert refusal(lambda: stub.ApprovePlan(late)) == "ABORTED PLAN_STALE"
            removal = plan_pb2.WhatIfRequest(stream="rides", changes=[plan_pb2.PlanChange(remove="more")])
            stub.ApprovePlan(plan_pb2.ApprovePlanRequest(stream="rides", token=stub.WhatIf(removal).token))
            assert store.ptk("more").status == "RETIRED"

    def test_what_cannot_be_approved_has_no_token(self, server: Server, channel: grpc.Channel) -> None:
        with Store(server.address) as store:
            filled(store)
        stub = plan_pb2_grpc.PlanServiceStub(channel)
        assert not stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides")).token
        tight = plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=1e-6))
        assert not stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=[tight])).token
        loose = plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=0.5))
        assert not stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=[loose], epsilon="0.5")).token
        token = stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=[loose])).token
        for bad in ("", "x", token[:-4], token.swapcase(), "A" * 100):
            request = plan_pb2.ApprovePlanRequest(stream="rides", token=bad)
            assert refusal(lambda request=request: stub.ApprovePlan(request)) == "INVALID_ARGUMENT PLAN_TOKEN_INVALID"


class TestWatching:
    def test_a_watcher_gets_old_and_new_states(self, server: Server, ptks: Any) -> None:
        with Store(server.address) as store:
            filled(store, 2)
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
            call = ptks.WatchPtk(ptk_pb2.WatchPtkRequest(name="hour-speed"))
            assert next(call).state.version == 1
            store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
            assert next(call).state.version == 2
            call.cancel()

    def test_events_are_watched(self, server: Server, channel: grpc.Channel) -> None:
        stub = operation_pb2_grpc.EventServiceStub(channel)
        call = stub.WatchEvents(operation_pb2.WatchEventsRequest())
        with Store(server.address) as store:
            filled(store)
        assert [next(call).event.kind for _ in range(2)] == ["stream.created", "ptk.accepted"]
        call.cancel()

    def test_watchers_never_take_all_threads(self, tmp_path: Path) -> None:
        with serving(tmp_path, server={"watchers": 2, "threads": 8}) as (server, _), channel_to(server) as channel:
            stub = operation_pb2_grpc.EventServiceStub(channel)
            with Store(server.address) as store:
                store.create_stream(spec())
                calls = [stub.WatchEvents(operation_pb2.WatchEventsRequest()) for _ in range(2)]
                assert all(next(call).event.id for call in calls)
                third = stub.WatchEvents(operation_pb2.WatchEventsRequest())
                assert refusal(lambda: next(third)) == "RESOURCE_EXHAUSTED TOO_MANY_WATCHERS"
                assert store.streams()
                for call in calls:
                    call.cancel()
                _until(lambda: next(stub.WatchEvents(operation_pb2.WatchEventsRequest())).event.id == 1)

    def test_a_subscription_survives_a_restart_and_misses_nothing(self, tmp_path: Path) -> None:
        seen: list[int] = []
        with serving(tmp_path) as (server, _):
            address = server.address
            with Store(address) as store:
                filled(store, 3)
                store.run("rides", until_ms=FIRST_MS + DAY_MS)
        follower = None
        for number in (2, 3):
            with serving(tmp_path, server={"address": address}) as (_, embedded):
                if follower is None:
                    follower = Store(address)
                    end = follower.subscribe("hour-speed", lambda view: seen.append(view.version))
                    embedded.run("rides", until_ms=FIRST_MS + number * DAY_MS)
                    _until(lambda number=number: seen[-1:] == [number])
                else:
                    # Nobody watches yet when this one comes: the connection is still being made anew.
                    embedded.run("rides", until_ms=FIRST_MS + number * DAY_MS)
                    _until(lambda number=number: seen[-1:] == [number])
                    end()
                    follower.close()
        assert seen == [2, 3]


class TestFrame:
    def test_health_and_reflection(self, channel: grpc.Channel) -> None:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "ptkstore.v1.PtkService", "ptkstore.v1.EventService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = stub.ServerReflectionInfo(iter([request]))
        names = {one.name for one in answer.list_services_response.service}
        assert {"ptkstore.v1.PtkService", "ptkstore.v1.StreamService"} <= names
        assert "ptkstore.v1.SubscriberService" not in names

    def test_a_drained_server_has_said_so_and_ended_watchers(self, tmp_path: Path) -> None:
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
            call = operation_pb2_grpc.EventServiceStub(channel).WatchEvents(operation_pb2.WatchEventsRequest())
            streams = stream_pb2_grpc.StreamServiceStub(channel)
            create(streams)
            next(call)
            begin = time.monotonic()
            server.stop()
            assert time.monotonic() - begin < 10
            assert refusal(lambda: next(call)) == "UNAVAILABLE SERVER_STOPPING"
            assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING

    def test_an_idle_append_ends_when_the_server_stops(self, tmp_path: Path) -> None:
        over = threading.Event()
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            streams = stream_pb2_grpc.StreamServiceStub(channel)
            create(streams)

            def requests() -> Iterator[Any]:
                yield stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", producer="p"))
                yield stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=1, arrow_ipc=ipc(day(0))))
                over.wait(20)

            call = streams.Append(requests())
            assert next(call).seq == 1
            server.stop()
            assert refusal(lambda: next(call)) == "UNAVAILABLE SERVER_STOPPING"
            over.set()

    def test_a_caller_in_a_hurry_is_told(self, streams: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        create(streams)
        release = threading.Event()
        monkeypatch.setattr(Store, "streams", lambda _: release.wait(20) and [])
        with pytest.raises(grpc.RpcError) as error:
            streams.ListStreams(stream_pb2.ListStreamsRequest(), timeout=0.1)
        release.set()
        assert error_of(error.value).reason == "DEADLINE_PASSED"

    def test_an_address_that_is_taken_is_an_error_of_ours(self, server: Server, tmp_path: Path) -> None:
        with Store(tmp_path / "second", workers=0) as store, pytest.raises(InvalidInput, match="SERVER_ADDRESS_TAKEN"):
            Server(store, settings_of(server={"address": server.address}))

    def test_large_states_come_in_pieces_and_damage_is_noticed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ptkstore.rpc.ptks.INLINE_BYTES", 10)
        monkeypatch.setattr("ptkstore.rpc.ptks.PIECE_BYTES", 100)
        with serving(tmp_path) as (server, embedded), Store(server.address) as store:
            filled(store)
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert store.get_state("hour-speed").to_bytes() == embedded.get_state("hour-speed").to_bytes()
            with channel_to(server) as channel:
                ptks = ptk_pb2_grpc.PtkServiceStub(channel)
                digest = store.states("hour-speed")[0].digest
                pieces = list(ptks.ReadState(ptk_pb2.ReadStateRequest(name="hour-speed", digest=digest)))
                assert len(pieces) > 1
                other = ptk_pb2.ReadStateRequest(name="hour-speed", digest="0" * 64)
                assert refusal(lambda: list(ptks.ReadState(other))) == "NOT_FOUND STATE_UNKNOWN"
            monkeypatch.setattr("ptkstore.rpc.ptks.StateCache.get", lambda *_: (b"x" * 1000, b"{}"))
            with pytest.raises(Exception, match="STATE_DAMAGED"):
                store.get_state("hour-speed")


def _until(holds: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except grpc.RpcError:
            pass
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")
