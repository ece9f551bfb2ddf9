"""What every RPC answers to whom, tried on a real server; ``python -m tests.rpc.permission_results
--write`` writes the page.

Every RPC is called with a right request about stream ``rides`` and its PTK ``hour-speed``: without
credentials, with a token of each role, with an operator's token for another stream, and with one
for another PTK. A cell is what came back. The page ``docs/reference/permissions.md`` is made from
these answers and nothing else; a test holds the two equal.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.permissions import PERMISSIONS, ROLES
from ptkstore.v1 import budget_pb2, operation_pb2, plan_pb2, ptk_pb2, stream_pb2
from ptkstore.wire import messages
from tests.engine.small import DAY_MS, FIRST_MS, config, spec
from tests.rpc.calling import ROOT, SERVED, Clients
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled

__all__ = ["PAGE", "WHO", "page", "request_for", "results", "tried"]

PAGE = ROOT / "docs/reference/permissions.md"
NOBODY, OTHER_STREAM, OTHER_PTK = "no credentials", "another stream's", "another PTK's"
WHO = (NOBODY, *ROLES, OTHER_STREAM, OTHER_PTK)
UNTIL = messages.moment(FIRST_MS)
_SHORT = {"PERMISSION_DENIED": "denied", "UNAUTHENTICATED": "unauthenticated"}
_INTRO = """# Who may call what, tried

Every RPC was called on a real server with a right request about stream `rides` and its PTK `hour-speed`: without
credentials, with a token of each role, with an operator's token that is limited to another stream, and with one limited to
another PTK. A cell is what came back: `OK`, *denied* (`PERMISSION_DENIED`), *unauthenticated* (`UNAUTHENTICATED`), or
`OK, nothing of it` where the answer leaves out what the caller may not see. The rules are in
[RPCs](rpc.md#who-may-call-what).

Made by `python -m tests.rpc.permission_results --write`; `tests/rpc/test_permission_results.py` tries all of it again and
holds it against this page.

"""


@contextmanager
def tried(path: Path) -> Iterator[Clients]:
    """A server with something for every RPC to be about."""
    allowed: dict[str, Any] = {
        "subscribers": {"allowed": ["127.0.0.1:*"]},
        "auth": {"required": True},
    }
    with serving(path, **allowed) as (server, store), channel_to(server) as channel:
        filled(store)
        store.create_stream(spec(name="other"))
        store.register("foreign", stream="other", kind="statistics", config=config(), target=0.3)
        for place in range(len(WHO)):
            store.register(
                f"old-{place}",
                stream="rides",
                kind="statistics",
                config=config("count"),
                target=0.9,
            )
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        with store.parts.metadata.write() as tx:
            ptk = tx.ptks.named("hour-speed").id
            made = [
                tx.subscriptions.add(ptk, f"127.0.0.1:{20 + place}") for place in range(len(WHO))
            ]
            for one in made:
                tx.notifications.set_mark(one.id, 1)
            tx.notifications.put(
                made[0].id, 1, attempts=4, status="DEAD", reason="UNAVAILABLE", due_ms=0
            )
            tx.operations.end(tx.operations.start("CloseWindow", "rides").id, "DONE")
        yield Clients(server, store, channel)


def results(clients: Clients) -> dict[str, dict[str, str]]:
    """By RPC and by who asked."""
    tokens: dict[str, str | None] = {role: clients.token(role, role) for role in ROLES}
    tokens[NOBODY] = None
    tokens[OTHER_STREAM] = clients.token("limited-stream", "operator", streams=["other"])
    tokens[OTHER_PTK] = clients.token("limited-ptk", "operator", ptks=["foreign"])
    found: dict[str, dict[str, str]] = {}
    for method in SERVED:
        found[method] = {}
        for place, who in enumerate(WHO):
            request = request_for(
                clients, method.rpartition("/")[2], place, str(tokens["operator"])
            )
            answer, data = clients.answer(method, tokens[who], request)
            hidden = PERMISSIONS[method].scope == "filtered" and who in (OTHER_STREAM, OTHER_PTK)
            if answer == "OK" and hidden:
                answer = "OK" if b"rides" in data or b"hour-speed" in data else "OK, nothing of it"
            found[method][who] = answer
    return found | _frame(clients, tokens)


def _frame(clients: Clients, tokens: Mapping[str, str | None]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"/grpc.health.v1.Health/Check": {}}
    reflected = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    found[reflected] = {}
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    for who in WHO:
        metadata = () if tokens[who] is None else (("authorization", f"Bearer {tokens[who]}"),)
        calls: dict[str, Any] = {
            "/grpc.health.v1.Health/Check": lambda metadata=metadata: health_pb2_grpc.HealthStub(
                clients.channel
            ).Check(health_pb2.HealthCheckRequest(), metadata=metadata, timeout=5),
            reflected: lambda metadata=metadata: list(
                reflection_pb2_grpc.ServerReflectionStub(clients.channel).ServerReflectionInfo(
                    iter([asked]), metadata=metadata, timeout=5
                )
            ),
        }
        for method, call in calls.items():
            try:
                call()
                found[method][who] = "OK"
            except grpc.RpcError as error:
                found[method][who] = str(error.code().name)
    return found


def request_for(clients: Clients, name: str, place: int, operator: str) -> Any:
    """A right request; each caller has things of its own to create and to remove."""
    store = clients.store
    change = plan_pb2.PlanChange(retarget=plan_pb2.RetargetPtk(name="hour-speed", target=0.4))
    asked = plan_pb2.WhatIfRequest(stream="rides", changes=[change])
    if name == "ApprovePlan":
        data = clients.answer("/ptkstore.v1.PlanService/WhatIf", operator, asked)[1]
        token = plan_pb2.WhatIfResponse.FromString(data).token
        return plan_pb2.ApprovePlanRequest(stream="rides", token=token)
    ptk: dict[str, Any] = {"name": "hour-speed"}
    text = json.dumps(config())
    requests: dict[str, Any] = {
        "RegisterPtk": ptk_pb2.RegisterPtkRequest(
            name=f"new-{place}", stream="rides", kind="statistics", config_json=text, target=0.9
        ),
        "DeregisterPtk": ptk_pb2.DeregisterPtkRequest(name=f"old-{place}"),
        "UpdatePtkConfig": ptk_pb2.UpdatePtkConfigRequest(config_json=text, **ptk),
        "UpdatePtkPerformanceTarget": ptk_pb2.UpdatePtkPerformanceTargetRequest(target=0.25, **ptk),
        "ApplyChanges": ptk_pb2.ApplyChangesRequest(changes_json=_applied(place)),
        "GetPtk": ptk_pb2.GetPtkRequest(**ptk),
        "ListPtkConfigs": ptk_pb2.ListPtkConfigsRequest(**ptk),
        "GetPtkProfile": ptk_pb2.GetPtkProfileRequest(**ptk),
        "RenewPtkProfile": ptk_pb2.RenewPtkProfileRequest(**ptk),
        "ListStates": ptk_pb2.ListStatesRequest(**ptk),
        "GetState": ptk_pb2.GetStateRequest(**ptk),
        "ReadState": ptk_pb2.ReadStateRequest(digest=store.states("hour-speed")[0].digest, **ptk),
        "WatchPtk": ptk_pb2.WatchPtkRequest(**ptk),
        "SubscribeToPtk": ptk_pb2.SubscribeToPtkRequest(
            ptk="hour-speed", rpc_endpoint="127.0.0.1:9"
        ),
        "UnsubscribeFromPtk": ptk_pb2.UnsubscribeFromPtkRequest(id=str(place + 1)),
        "CreateStream": stream_pb2.CreateStreamRequest(
            spec_json=spec(name=f"stream-{place}").to_json_text()
        ),
        "GetStream": stream_pb2.GetStreamRequest(name="rides"),
        "Append": stream_pb2.AppendRequest(
            open=stream_pb2.AppendOpen(stream="rides", producer="p")
        ),
        "SealStream": stream_pb2.SealStreamRequest(name="rides", until=UNTIL),
        "CloseWindow": stream_pb2.CloseWindowRequest(stream="rides", until=UNTIL),
        "GetPlan": plan_pb2.GetPlanRequest(stream="rides"),
        "ListPlans": plan_pb2.ListPlansRequest(stream="rides"),
        "WhatIf": asked,
        "GetBudget": budget_pb2.GetBudgetRequest(stream="rides"),
        "ListBlocks": budget_pb2.ListBlocksRequest(stream="rides"),
        "GetBlock": budget_pb2.GetBlockRequest(
            stream="rides", name=store.blocks("rides").blocks[0].name
        ),
        "ListCharges": budget_pb2.ListChargesRequest(stream="rides"),
        "GetLedgerMap": budget_pb2.GetLedgerMapRequest(stream="rides"),
        "GetOperation": operation_pb2.GetOperationRequest(id="1"),
        "WatchOperation": operation_pb2.WatchOperationRequest(id="1"),
        "ListCycles": operation_pb2.ListCyclesRequest(stream="rides"),
        "RetryDelivery": operation_pb2.RetryDeliveryRequest(id="1"),
    }
    return requests.get(name)


def _applied(place: int) -> str:
    new = AddedPtk(
        name=f"applied-{place}", stream="rides", kind="statistics", config=config(), target=0.9
    )
    return json.dumps(Changes(add=(new,)).as_json())


def page(found: Mapping[str, Mapping[str, str]]) -> str:
    """The whole page."""
    lines = ["| RPC | " + " | ".join(WHO) + " |", "|---|" + "---|" * len(WHO)]
    for method, cells in found.items():
        name = method.removeprefix("/ptkstore.v1.").removeprefix("/")
        texts = [
            cells[who].partition(" ")[0] if cells[who][:2] != "OK" else cells[who] for who in WHO
        ]
        lines.append(f"| `{name}` | " + " | ".join(_SHORT.get(one, one) for one in texts) + " |")
    return _INTRO + "\n".join(lines) + "\n"


def main() -> None:
    """Try all of it, and print or write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.rpc.permission_results", description=__doc__
    )
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as folder, tried(Path(folder)) as clients:
        text = page(results(clients))
    if write:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
