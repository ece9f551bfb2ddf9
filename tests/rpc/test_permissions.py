"""Who may call what: the table is complete, documented and enforced."""

from __future__ import annotations

import re
from typing import Any

import grpc
import pytest

from ptkstore import Store
from ptkstore.api.permissions import PERMISSIONS, ROLES, SCOPES, table
from ptkstore.v1 import budget_pb2, operation_pb2, ptk_pb2, stream_pb2
from ptkstore.wire.faults import AccessDenied
from tests.engine.small import DAY_MS, FIRST_MS
from tests.rpc.calling import DENIED, ROOT, RPCS, SERVED, Clients


def test_every_rpc_of_every_service_is_in_the_table() -> None:
    ours = {name for name in PERMISSIONS if name.startswith("/ptkstore.")}
    assert ours == set(RPCS)


def test_the_table_names_fields_that_exist_and_rules_that_mean_something() -> None:
    for name, rule in PERMISSIONS.items():
        assert rule.roles <= set(ROLES)
        assert rule.scope in SCOPES
        assert ("operator" in rule.roles) == (
            name != "/ptkstore.v1.SubscriberService/NotifyNewPtkState"
        )
        if name not in RPCS:
            continue
        fields = {field.name for field in RPCS[name].input_type.fields}
        assert {field for field in (rule.stream, rule.ptk) if field} <= fields
        assert (rule.scope == "named") == bool(rule.stream or rule.ptk), name
        # Whatever takes a request_id changes something, and the other way round.
        assert rule.mutates == ("request_id" in fields or name.endswith("/Append")), name


def test_the_reference_has_the_table() -> None:
    text = (ROOT / "docs/reference/rpc.md").read_text()
    found = re.search(r"<!-- permissions -->\n(.*?)<!-- end -->", text, flags=re.S)
    assert found
    assert found[1] == table()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_call_what_the_table_says_and_nothing_else(clients: Clients, role: str) -> None:
    token = clients.token("somebody", role)
    for method in SERVED:
        answer = clients.call(method, token)
        denied = answer == "PERMISSION_DENIED PERMISSION_DENIED"
        assert denied == (role not in PERMISSIONS[method].roles), f"{method}: {answer}"


def test_what_is_not_in_the_contract_is_not_there(clients: Clients) -> None:
    for method in (
        "/ptkstore.v1.PtkService/Nothing",
        "/x.Y/Z",
        "/ptkstore.v1.SubscriberService/NotifyNewPtkState",
    ):
        with pytest.raises(grpc.RpcError) as error:
            clients.channel.unary_unary(method)(b"", timeout=5)
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined, unused-ignore]


def test_a_token_for_one_stream_sees_that_stream_only(clients: Clients) -> None:
    token = clients.token("ann", "developer", "producer", streams=["other"])
    expected: list[tuple[str, Any, str]] = [
        ("StreamService/GetStream", stream_pb2.GetStreamRequest(name="rides"), DENIED),
        ("StreamService/GetStream", stream_pb2.GetStreamRequest(name="nowhere"), DENIED),
        ("StreamService/GetStream", stream_pb2.GetStreamRequest(name="other"), "OK"),
        ("PtkService/GetPtk", ptk_pb2.GetPtkRequest(name="hour-speed"), DENIED),
        ("PtkService/GetPtk", ptk_pb2.GetPtkRequest(name="nobody"), DENIED),
        ("PtkService/GetPtk", ptk_pb2.GetPtkRequest(name="foreign"), "OK"),
        ("PtkService/RegisterPtk", ptk_pb2.RegisterPtkRequest(name="x", stream="rides"), DENIED),
        ("BudgetService/GetBudget", budget_pb2.GetBudgetRequest(stream="rides"), DENIED),
        ("BudgetService/GetBudget", budget_pb2.GetBudgetRequest(stream="other"), "OK"),
        (
            "StreamService/Append",
            stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", producer="p")),
            DENIED,
        ),
        (
            "StreamService/Append",
            stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="other", producer="p")),
            "OK",
        ),
        ("OperationService/GetOperation", operation_pb2.GetOperationRequest(id="1"), DENIED),
    ]
    for method, request, answer in expected:
        assert clients.call(f"/ptkstore.v1.{method}", token, request) == answer, (method, request)
    with Store(clients.server.address, token=token) as store:
        assert [one.name for one in store.streams()] == ["other"]
        assert [one.name for one in store.ptks()] == ["foreign"]
        assert {one.subject for one in store.events()} == {"other", "foreign"}
    whole = clients.token("boss", "operator", streams=["other"])
    for method in (
        "EventService/ListAuditEntries",
        "OperationService/RunDoctor",
        "StreamService/CreateStream",
    ):
        assert clients.call(f"/ptkstore.v1.{method}", whole) == DENIED


def test_a_token_for_one_ptk_sees_that_ptk_only(clients: Clients) -> None:
    token = clients.token("ann", "reader", ptks=["foreign"])
    with Store(clients.server.address, token=token) as store:
        assert [one.name for one in store.ptks()] == ["foreign"]
        assert store.ptk("foreign").stream == "other"
        assert {one.subject for one in store.events()} == {"foreign"}
        for act in (
            lambda: store.ptk("hour-speed"),
            lambda: store.get_state("hour-speed"),
            lambda: store.budget("other"),
        ):
            with pytest.raises(AccessDenied, match="PERMISSION_DENIED"):
                act()


def test_an_operation_of_another_stream_looks_like_none(clients: Clients) -> None:
    operator = clients.token("boss", "operator")
    with Store(clients.server.address, token=operator) as store:
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
    mine = clients.token("ann", "reader", streams=["other"])
    theirs = clients.token("bob", "reader", streams=["rides"])
    request = operation_pb2.GetOperationRequest(id="1")
    nothing = operation_pb2.GetOperationRequest(id="99")
    for method in ("GetOperation", "WatchOperation"):
        name = f"/ptkstore.v1.OperationService/{method}"
        assert clients.call(name, mine, request) == clients.call(name, mine, nothing) == DENIED
        assert clients.call(name, theirs, request) == "OK"
