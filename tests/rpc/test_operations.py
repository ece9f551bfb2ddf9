"""Long work is watched and survives restarts; plans are approved as a whole."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

from ptkstore import Store
from ptkstore.api.times import GRAIN_MS
from ptkstore.server import Server
from ptkstore.v1 import (
    operation_pb2,
    operation_pb2_grpc,
    plan_pb2,
    plan_pb2_grpc,
    stream_pb2,
    stream_pb2_grpc,
)
from ptkstore.wire import messages
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config
from tests.rpc.requests import create, refusal
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled


class TestOperations:
    def test_an_operation_is_watched_to_its_end(
        self, server: Server, channel: grpc.Channel, streams: Any
    ) -> None:
        with Store(server.address) as store:
            filled(store)
        request = stream_pb2.CloseWindowRequest(
            request_id="c1", stream="rides", until=messages.moment(FIRST_MS + DAY_MS)
        )
        operation = streams.CloseWindow(request).operation
        assert streams.CloseWindow(request).operation == operation
        stub = operation_pb2_grpc.OperationServiceStub(channel)
        seen = [
            one.operation
            for one in stub.WatchOperation(operation_pb2.WatchOperationRequest(id=operation.id))
        ]
        assert seen[-1].status == operation_pb2.OPERATION_STATUS_DONE
        assert seen[-1].cycles[0].trained[0].outcome == "PUBLISHED"
        assert seen[-1].HasField("end_time")
        for told in (seen[-1].create_time, seen[-1].end_time):
            assert told.ToMilliseconds() % GRAIN_MS == 0, (
                "to the millisecond it would tell how long the work took"
            )
        assert (
            stub.GetOperation(operation_pb2.GetOperationRequest(id=operation.id)).operation
            == seen[-1]
        )
        for wrong in ("", "x", "1" * 30, "-1", "\u0661"):
            asked = operation_pb2.GetOperationRequest(id=wrong)
            assert (
                refusal(lambda asked=asked: stub.GetOperation(asked))
                == "INVALID_ARGUMENT ID_INVALID"
            )
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

            embedded.parts.observers.add(die)
            with channel_to(server) as channel:
                streams = stream_pb2_grpc.StreamServiceStub(channel)
                until = messages.moment(FIRST_MS + DAY_MS)
                operation = streams.CloseWindow(
                    stream_pb2.CloseWindowRequest(stream="rides", until=until)
                ).operation
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

            embedded.parts.observers.add(fail)
            with pytest.raises(Exception, match="INTERNAL_ERROR") as error:
                store.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert CANARY not in str(error.value)
            embedded.parts.observers.remove(fail)
            assert store.run("rides", until_ms=FIRST_MS + DAY_MS)[0].status == "DONE"

    def test_sealing(self, streams: Any) -> None:
        create(streams)
        request = stream_pb2.SealStreamRequest(
            request_id="s", name="rides", until=messages.moment(FIRST_MS + DAY_MS)
        )
        sealed = streams.SealStream(request).blocks
        assert len(sealed) == 2
        assert streams.SealStream(request).blocks == sealed
        found = streams.GetStream(stream_pb2.GetStreamRequest(name="rides")).stream
        assert messages.millis(found, "watermark") == FIRST_MS + DAY_MS


class TestPlans:
    def test_what_was_looked_at_is_approved_as_a_whole(
        self, server: Server, channel: grpc.Channel
    ) -> None:
        with Store(server.address) as store:
            filled(store)
            stub = plan_pb2_grpc.PlanServiceStub(channel)
            add = plan_pb2.AddPtk(
                name="more", kind="statistics", config_json=json.dumps(config("count")), target=0.3
            )
            changes = [
                plan_pb2.PlanChange(add=add),
                plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=0.4)),
            ]
            looked = stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=changes))
            again = stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=changes))
            assert again.token == looked.token
            assert [one.name for one in store.ptks()] == ["hour-speed"]
            request = plan_pb2.ApprovePlanRequest(
                request_id="a", stream="rides", token=looked.token
            )
            plan = stub.ApprovePlan(request).plan
            assert [one.ptk for one in plan.assignments] == ["hour-speed", "more"]
            assert stub.ApprovePlan(request).plan == plan
            assert (store.ptk("more").status, store.ptk("hour-speed").target) == ("ACTIVE", 0.4)
            late = plan_pb2.ApprovePlanRequest(stream="rides", token=again.token)
            assert refusal(lambda: stub.ApprovePlan(late)) == "ABORTED PLAN_STALE"
            removal = plan_pb2.WhatIfRequest(
                stream="rides", changes=[plan_pb2.PlanChange(remove="more")]
            )
            stub.ApprovePlan(
                plan_pb2.ApprovePlanRequest(stream="rides", token=stub.WhatIf(removal).token)
            )
            assert store.ptk("more").status == "RETIRED"

    def test_what_cannot_be_approved_has_no_token(
        self, server: Server, channel: grpc.Channel
    ) -> None:
        with Store(server.address) as store:
            filled(store)
        stub = plan_pb2_grpc.PlanServiceStub(channel)
        assert not stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides")).token
        tight = plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=1e-6))
        assert not stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=[tight])).token
        loose = plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=0.5))
        assert not stub.WhatIf(
            plan_pb2.WhatIfRequest(stream="rides", changes=[loose], epsilon="0.5")
        ).token
        token = stub.WhatIf(plan_pb2.WhatIfRequest(stream="rides", changes=[loose])).token
        for bad in ("", "x", token[:-4], token.swapcase(), "A" * 100):
            request = plan_pb2.ApprovePlanRequest(stream="rides", token=bad)
            assert (
                refusal(lambda request=request: stub.ApprovePlan(request))
                == "INVALID_ARGUMENT PLAN_TOKEN_INVALID"
            )
