"""Every mutation is cut short by a crash after each of its durable writes, and asked again with the
same request_id.

The answer must be that of a call which nothing disturbed, and the store must be as after such a
call: nothing happens twice, and nobody is told that their own change is in their way. Where the
change was made before the crash, this must also hold when others change the same things before the
second try.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.permissions import PERMISSIONS
from ptkstore.engine.window.running import due_windows
from ptkstore.v1 import operation_pb2, plan_pb2, plan_pb2_grpc, ptk_pb2, stream_pb2
from ptkstore.wire import messages
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.crashing import CRASHED, SECTIONS, call, first_try
from tests.rpc.requests import ipc
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled

GROUPS = {
    "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
    "clusters": 2,
}
ENDPOINT = "127.0.0.1:9"
MOST_WRITES = 12
children = get_context("forkserver")
children.set_forkserver_preload(["tests.rpc.crashing"])


@dataclass(frozen=True)
class Case:
    """``change`` is the part of `state_of` that tells that it was done; ``others`` is what others
    do before the second try.
    """

    request: Message
    answer: type[Message]
    change: str
    others: Callable[[Store], Any] = lambda _store: None
    more: tuple[Message, ...] = ()


def retarget(name: str) -> Callable[[Store], Any]:
    return lambda store: store.update_target(name, 0.45)


def resubscribe(store: Store) -> None:
    with store.parts.metadata.write() as tx:
        tx.subscriptions.add(tx.ptks.named("hour-speed").id, ENDPOINT)


def unsubscribe(store: Store) -> None:
    with store.parts.metadata.write() as tx:
        for one in tx.subscriptions.list():
            if one.endpoint == "127.0.0.1:11":
                tx.notifications.forget(one.id)
                tx.subscriptions.remove(one.id)


def give_up(store: Store) -> None:
    with store.parts.metadata.write() as tx:
        tx.notifications.put(1, 1, attempts=7, status="DEAD", reason="UNAVAILABLE", due_ms=0)


UNTIL = messages.moment(FIRST_MS + 2 * DAY_MS)
CASES: dict[str, Case] = {
    "PtkService/RegisterPtk": Case(
        ptk_pb2.RegisterPtkRequest(
            request_id="r",
            name="new",
            stream="rides",
            kind="statistics",
            config_json=json.dumps(config()),
            target=0.3,
        ),
        ptk_pb2.RegisterPtkResponse,
        "ptks",
        retarget("new"),
    ),
    "PtkService/ApplyChanges": Case(
        ptk_pb2.ApplyChangesRequest(
            request_id="r",
            changes_json=json.dumps(
                Changes(
                    streams=(spec(name="more"),),
                    add=(
                        AddedPtk(
                            name="new",
                            stream="rides",
                            kind="statistics",
                            config=config(),
                            target=0.3,
                        ),
                    ),
                    remove=("groups",),
                ).as_json()
            ),
        ),
        ptk_pb2.ApplyChangesResponse,
        "ptks",
        retarget("new"),
    ),
    "PtkService/DeregisterPtk": Case(
        ptk_pb2.DeregisterPtkRequest(request_id="r", name="hour-speed"),
        ptk_pb2.DeregisterPtkResponse,
        "ptks",
    ),
    "PtkService/UpdatePtkConfig": Case(
        ptk_pb2.UpdatePtkConfigRequest(
            request_id="r", name="hour-speed", config_json=json.dumps(config("count")), etag="2"
        ),
        ptk_pb2.UpdatePtkConfigResponse,
        "ptks",
        retarget("hour-speed"),
    ),
    "PtkService/UpdatePtkPerformanceTarget": Case(
        ptk_pb2.UpdatePtkPerformanceTargetRequest(
            request_id="r", name="hour-speed", target=0.35, etag="2"
        ),
        ptk_pb2.UpdatePtkPerformanceTargetResponse,
        "ptks",
        retarget("hour-speed"),
    ),
    "PtkService/RenewPtkProfile": Case(
        ptk_pb2.RenewPtkProfileRequest(request_id="r", name="groups"),
        ptk_pb2.RenewPtkProfileResponse,
        "events",
        retarget("groups"),
    ),
    "PtkService/SubscribeToPtk": Case(
        ptk_pb2.SubscribeToPtkRequest(
            request_id="r", ptk="hour-speed", rpc_endpoint="127.0.0.1:11"
        ),
        ptk_pb2.SubscribeToPtkResponse,
        "subscriptions",
        unsubscribe,
    ),
    "PtkService/UnsubscribeFromPtk": Case(
        ptk_pb2.UnsubscribeFromPtkRequest(request_id="r", id="1"),
        ptk_pb2.UnsubscribeFromPtkResponse,
        "subscriptions",
        resubscribe,
    ),
    "StreamService/CreateStream": Case(
        stream_pb2.CreateStreamRequest(
            request_id="r",
            spec_json=spec(name="fresh", quotas={"door:count": "0.5"}).to_json_text(),
        ),
        stream_pb2.CreateStreamResponse,
        "streams",
        lambda store: due_windows(store.parts, "fresh", FIRST_MS + DAY_MS),
    ),
    "StreamService/Append": Case(
        stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", producer="depot")),
        stream_pb2.AppendResponse,
        "records",
        more=(
            stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=100, arrow_ipc=ipc(day(2)))),
        ),
    ),
    "StreamService/SealStream": Case(
        stream_pb2.SealStreamRequest(request_id="r", name="rides", until=UNTIL),
        stream_pb2.SealStreamResponse,
        "streams",
        lambda store: store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS),
    ),
    "StreamService/CloseWindow": Case(
        stream_pb2.CloseWindowRequest(request_id="r", stream="rides", until=UNTIL),
        stream_pb2.CloseWindowResponse,
        "operations",
        lambda store: store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS),
    ),
    # Its token is asked for when the store is there.
    "PlanService/ApprovePlan": Case(
        plan_pb2.ApprovePlanRequest(request_id="r", stream="rides"),
        plan_pb2.ApprovePlanResponse,
        "ptks",
        retarget("hour-speed"),
    ),
    "EventService/RetryDelivery": Case(
        operation_pb2.RetryDeliveryRequest(request_id="r", id="1"),
        operation_pb2.RetryDeliveryResponse,
        "revived",
        give_up,
    ),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store with everything that a mutation can be about, and the token of a plan that can be
    approved.
    """
    path = tmp_path_factory.mktemp("template") / "store"
    with serving(path, **SECTIONS) as (server, store), channel_to(server) as channel:
        filled(store, 2)
        store.register("groups", stream="rides", kind="clusters", config=GROUPS, target=0.5)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named("hour-speed").id, ENDPOINT)
            tx.notifications.set_mark(one.id, 1)
            tx.notifications.put(
                one.id, 1, attempts=4, status="DEAD", reason="UNAVAILABLE", due_ms=0
            )
        change = plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=0.4))
        asked = plan_pb2.WhatIfRequest(stream="rides", changes=[change])
        token = plan_pb2_grpc.PlanServiceStub(channel).WhatIf(asked).token
    assert token
    return path, token


def test_every_mutation_has_a_case() -> None:
    assert {f"/ptkstore.v1.{name}" for name in CASES} == {
        name for name, one in PERMISSIONS.items() if one.mutates
    }


@pytest.mark.parametrize("name", CASES)
def test_a_crash_after_any_write_is_no_mistake_of_the_caller(
    name: str, template: tuple[Path, str], tmp_path: Path
) -> None:
    case = CASES[name]
    if name == "PlanService/ApprovePlan":
        case.request.token = template[1]  # type: ignore[attr-defined]
    trial = Trial(f"/ptkstore.v1.{name}", case, template[0], tmp_path)
    answer, alone, disturbed = trial.undisturbed()
    assert answer != case.answer() or case.answer in (
        ptk_pb2.DeregisterPtkResponse,
        ptk_pb2.UnsubscribeFromPtkResponse,
    )
    crashes = changes = 0
    for writes in range(1, MOST_WRITES):
        path = trial.fresh(f"crash-{writes}")
        if trial.begin(path, writes) is not None:
            break
        crashes += 1
        with Store(path, workers=0) as store:
            changed = state_of(store).get(case.change) != trial.before.get(case.change)
        other = shutil.copytree(path, path.with_name(path.name + "-others"))
        assert trial.again(path) == (answer, alone), f"{writes} writes"
        if changed:
            changes += 1
            with Store(other, workers=0) as store:
                case.others(store)
            assert trial.again(other) == (answer, disturbed), (
                f"{writes} writes, and others were there"
            )
    assert crashes >= 1
    assert changes >= (case.change != "records"), "one of the crashes must come after the change"


class Trial:
    """Tries of one case, each on a copy of the template."""

    def __init__(self, method: str, case: Case, template: Path, folder: Path) -> None:
        self.method, self.case, self.template, self.folder = method, case, template, folder
        self.requests = [one.SerializeToString() for one in (case.request, *case.more)]
        with Store(self.fresh("before"), workers=0) as store:
            self.before = state_of(store)

    def fresh(self, name: str) -> Path:
        return Path(shutil.copytree(self.template, self.folder / name))

    def begin(self, path: Path, writes: int) -> bytes | None:
        """The first try in a process of its own; None where it crashed."""
        ours, theirs = children.Pipe(duplex=False)
        child = children.Process(
            target=first_try, args=(path, self.method, self.requests, writes, theirs)
        )
        child.start()
        theirs.close()
        child.join(120)
        assert child.exitcode in (0, CRASHED)
        found = ours.recv() if child.exitcode == 0 else None
        ours.close()
        return found

    def undisturbed(self) -> tuple[Message, Any, Any]:
        """The answer of a call without a crash, the store after it, and after others were there."""
        path = self.fresh("whole")
        found = self.begin(path, 1000)
        assert found is not None
        other = shutil.copytree(path, self.folder / "whole-others")
        answer, alone = self.again(path)
        assert answer == self.normal(found)
        with Store(other, workers=0) as store:
            self.case.others(store)
        return answer, alone, self.again(other)[1]

    def again(self, path: Path) -> tuple[Message, Any]:
        """The answer of the next try, twice the same, and the store when all is done."""
        with serving(path, **SECTIONS) as (server, store), channel_to(server) as channel:
            found = call(channel, self.method, self.requests)
            assert call(channel, self.method, self.requests) == found
            finished(channel)
            if self.case.more:
                # Records that were sent again are there once.
                cycles = store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
                assert all(abs(one.dp_records - 4000) < 200 for one in cycles)
                assert len(cycles) == 2
            return self.normal(found), state_of(store)

    def normal(self, data: bytes) -> Message:
        """The answer without the times, which differ from try to try."""
        found = self.case.answer.FromString(data)
        for path in ("operation.create_time", "delivery.next_attempt_time", "plan.solve_seconds"):
            outer, inner = path.split(".")
            if outer in found.DESCRIPTOR.fields_by_name:
                getattr(found, outer).ClearField(inner)
        return found


def finished(channel: grpc.Channel) -> None:
    """Wait for all operations."""
    listed = "/ptkstore.v1.OperationService/ListOperations"
    answer = channel.unary_unary(listed)(b"", timeout=60)
    for one in operation_pb2.ListOperationsResponse.FromString(answer).operations:
        request = operation_pb2.WatchOperationRequest(id=one.id).SerializeToString()
        *_, last = channel.unary_stream("/ptkstore.v1.OperationService/WatchOperation")(
            request, timeout=60
        )
        ended = operation_pb2.WatchOperationResponse.FromString(last).operation
        assert ended.status == operation_pb2.OPERATION_STATUS_DONE


def state_of(store: Store) -> dict[str, Any]:
    """Everything that a mutation can change, without times and without what deliveries do by
    themselves.
    """
    with store.parts.metadata.read() as tx:
        rows = tx.ptks.list()
        profiles = [tx.profiles.latest(one.id, one.config_version, one.target) for one in rows]
        found: dict[str, Any] = {
            "ptks": [
                (one.name, one.status, one.etag, one.target, one.config_version) for one in rows
            ],
            "renewed": [None if one is None else "renew_ms" in one.samples for one in profiles],
            "subscriptions": [(one.id, one.ptk, one.endpoint) for one in tx.subscriptions.list()],
            "given up": [one for one in tx.notifications.list(status="DEAD") if one.attempts > 4],
            "revived": [
                one.id for one in tx.notifications.list() if one.version == 1 and one.due_ms > 0
            ],
            "operations": [
                (one.id, one.stream, one.until_ms, one.windows) for one in tx.operations.list()
            ],
        }
    found["streams"] = {
        one.name: store.parts.writer(one.name).watermark_ms for one in store.streams()
    }
    # The ledger may know a stream before it is one.
    entries = [
        one
        for one in store.parts.ledger.history()
        if one["kind"] == "quota" and one["stream"] in found["streams"]
    ]
    found["quotas"] = sorted({(one["stream"], one["context"], one["share"]) for one in entries})
    found["events"] = sorted((one.kind, one.subject) for one in store.events(limit=1000))
    return found
