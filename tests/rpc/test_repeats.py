"""The same request again gives the first answer, and lists come in pages."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from ptklib.errors import Refused
from ptkstore import Store
from ptkstore.metadata import Metadata
from ptkstore.rpc.gate.idempotency import KEPT_MS, Once, Repeats
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
from tests.engine.small import DAY_MS, FIRST_MS, spec
from tests.rpc.requests import create, refusal, registration
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled


class TestRepeats:
    def test_the_same_request_gives_the_first_answer(self, streams: Any, ptks: Any) -> None:
        first = create(streams, "r1")
        assert create(streams, "r1") == first
        assert refusal(lambda: create(streams)) == "ALREADY_EXISTS STREAM_EXISTS"
        answer = ptks.RegisterPtk(registration(request_id="r2"))
        ptks.UpdatePtkPerformanceTarget(
            ptk_pb2.UpdatePtkPerformanceTargetRequest(name="a", target=0.4)
        )
        assert ptks.RegisterPtk(registration(request_id="r2")) == answer
        assert ptks.GetPtk(ptk_pb2.GetPtkRequest(name="a")).ptk.target == 0.4

    def test_another_request_under_the_id_is_refused(self, streams: Any, ptks: Any) -> None:
        create(streams, "r1")
        assert (
            refusal(lambda: create(streams, "r1", name="other"))
            == "ALREADY_EXISTS REQUEST_ID_REUSED"
        )
        assert (
            refusal(lambda: ptks.RegisterPtk(registration(request_id="r1")))
            == "ALREADY_EXISTS REQUEST_ID_REUSED"
        )

    def test_a_request_that_was_refused_leaves_its_id_free(self, streams: Any, ptks: Any) -> None:
        assert (
            refusal(lambda: ptks.RegisterPtk(registration(request_id="r1")))
            == "NOT_FOUND STREAM_UNKNOWN"
        )
        create(streams)
        assert ptks.RegisterPtk(registration(request_id="r1")).ptk.name == "a"

    def test_answers_survive_a_restart(self, tmp_path: Path) -> None:
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            first = create(stream_pb2_grpc.StreamServiceStub(channel), "r1")
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            assert create(stream_pb2_grpc.StreamServiceStub(channel), "r1") == first

    def test_answers_are_forgotten_after_a_while_without_a_restart(self, tmp_path: Path) -> None:
        now = [KEPT_MS]
        with closing(Metadata.open(tmp_path / "meta.db")) as metadata:
            repeats = Repeats(metadata, lambda: now[0])

            def ask(number: str) -> bytes:
                asked = ptk_pb2.DeregisterPtkRequest(request_id=number, name="a")
                return repeats.once("ann", "Deregister", asked, lambda _once: number.encode())

            def kept() -> list[bool]:
                with metadata.read() as tx:
                    return [
                        tx.requests.answer("ann", number) is not None for number in ("r1", "r2")
                    ]

            assert (ask("r1"), ask("r1")) == (b"r1", b"r1")
            now[0] += KEPT_MS - 1
            ask("r2")
            assert kept() == [True, True]
            now[0] += 24 * 3600 * 1000
            ask("r3")
            assert kept() == [False, True]

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

    def test_a_request_that_another_server_took_for_something_else_is_refused(
        self, tmp_path: Path
    ) -> None:
        asked, other = (
            ptk_pb2.DeregisterPtkRequest(request_id="r", name=name) for name in ("a", "b")
        )
        with Metadata.open(tmp_path / "meta.db") as metadata:
            slow, fast = (Repeats(metadata, lambda: 1_000_000_000_000) for _ in range(2))

            def change(once: Once, who: str) -> bytes:
                with metadata.write() as tx:
                    tx.events.add("changed", who, {})
                    stamp = operation_pb2.Finding(what=who)
                    return once.keep(tx, stamp).SerializeToString()

            def overtaken(once: Once) -> bytes:
                fast.once("ann", "m", other, lambda others: change(others, "fast"))
                return change(once, "slow")

            with pytest.raises(Refused, match="REQUEST_ID_REUSED"):
                slow.once("ann", "m", asked, overtaken)
            with metadata.read() as tx:
                assert [event.subject for event in tx.events.after(0)] == ["fast"]

    def test_a_request_costs_no_transaction_beside_that_of_its_change(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Metadata.open(tmp_path / "meta.db") as metadata:
            repeats = Repeats(metadata, lambda: 1_000_000_000_000)
            writes = []
            write = metadata.write

            def counted() -> Any:
                writes.append(1)
                return write()

            monkeypatch.setattr(metadata, "write", counted)

            def change(once: Once) -> bytes:
                with metadata.write() as tx:
                    return once.keep(tx, operation_pb2.Finding(what="done")).SerializeToString()

            def refused(once: Once) -> bytes:
                raise Refused("ETAG_STALE", "read it again")

            asked = ptk_pb2.DeregisterPtkRequest(request_id="r", name="a")
            assert repeats.once("ann", "m", asked, change) == repeats.once(
                "ann", "m", asked, refused
            )
            other = ptk_pb2.DeregisterPtkRequest(request_id="s", name="a")
            with pytest.raises(Refused, match="ETAG_STALE"):
                repeats.once("ann", "m", other, refused)
            assert len(writes) == 1


class TestPages:
    def test_pages_are_whole_and_tokens_belong_to_their_question(
        self, streams: Any, ptks: Any
    ) -> None:
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
        assert (
            refusal(lambda: ptks.ListPtks(ptk_pb2.ListPtksRequest(page_size=-1)))
            == "INVALID_ARGUMENT PAGE_INVALID"
        )
        assert len(ptks.ListPtks(ptk_pb2.ListPtksRequest(status="PTK_STATUS_RETIRED")).ptks) == 0

    def test_all_lists_have_pages(
        self, server: Server, channel: grpc.Channel, streams: Any
    ) -> None:
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
            refusal(
                lambda: budgets.GetBlock(budget_pb2.GetBlockRequest(stream="rides", name="none"))
            )
            == "NOT_FOUND BLOCK_UNKNOWN"
        )
        charges = budgets.ListCharges(budget_pb2.ListChargesRequest(stream="rides")).charges
        assert {one.kind for one in charges} == {"reserve", "spend", "retire"}
        assert {"count", "hour-speed"} <= {
            one.key.partition("/")[2] for one in charges if one.kind == "spend"
        }
        assert not budgets.ListCharges(budget_pb2.ListChargesRequest(stream="other")).charges
