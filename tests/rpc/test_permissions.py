"""Who may call what: the table is complete, documented and enforced, and every decision is in the audit log."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ptklib.errors import InvalidInput
from ptkstore.client import Store
from ptkstore.metadata import Metadata
from ptkstore.metadata.audit import Decision
from ptkstore.rpc.auditing import Auditor
from ptkstore.rpc.callers import Allowance, Callers, make_token
from ptkstore.rpc.faults import AccessDenied, LimitExceeded, error_of
from ptkstore.rpc.permissions import PERMISSIONS, ROLES, SCOPES, table
from ptkstore.server import Server
from ptkstore.v1 import budget_pb2, operation_pb2, plan_pb2, ptk_pb2, stream_pb2
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.small import channel_to, serving, settings_of
from tests.rpc.store_suite import filled

ROOT = Path(__file__).parents[2]
FILES = (budget_pb2, operation_pb2, plan_pb2, ptk_pb2, stream_pb2)
RPCS = {
    f"/{service.full_name}/{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


def test_every_rpc_of_every_service_is_in_the_table() -> None:
    ours = {name for name in PERMISSIONS if name.startswith("/ptkstore.")}
    assert ours == set(RPCS)


def test_the_table_names_fields_that_exist_and_rules_that_mean_something() -> None:
    for name, rule in PERMISSIONS.items():
        assert rule.roles <= set(ROLES)
        assert rule.scope in SCOPES
        assert ("operator" in rule.roles) == (name != "/ptkstore.v1.SubscriberService/NotifyNewPtkState")
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


class Clients:
    """A server that wants credentials, and callers with tokens."""

    def __init__(self, server: Server, store: Store, channel: grpc.Channel) -> None:
        self.server, self.store, self.channel = server, store, channel

    def token(self, name: str, *roles: str, **limits: Any) -> str:
        home = self.store.home
        return make_token(home.metadata, name, roles=roles, now_ms=home.now_ms(), **limits)[0]

    def call(self, method: str, token: str | None, request: Any = None) -> str:
        """The code and reason of a call with an empty or given request; OK where there is none."""
        rpc = RPCS[method]
        kind = GetMessageClass(rpc.input_type)
        body = (request if request is not None else kind()).SerializeToString()
        metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        try:
            if rpc.client_streaming:
                list(self.channel.stream_stream(method)(iter([body]), metadata=metadata, timeout=5))
            elif rpc.server_streaming:
                next(self.channel.unary_stream(method)(body, metadata=metadata, timeout=5), None)
            else:
                self.channel.unary_unary(method)(body, metadata=metadata, timeout=5)
        except grpc.RpcError as error:
            return f"{error.code().name} {error_of(error).reason}"
        return "OK"

    def audit(self) -> list[tuple[str, str, str, str]]:
        self.server._auditor.flush()
        with self.store.home.metadata.read() as tx:
            tx.audit.verify()
            return [(one.who, one.what.rpartition("/")[2], one.subject, one.outcome) for one in tx.audit.list()]


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    with serving(tmp_path, auth={"required": True}) as (server, store), channel_to(server) as channel:
        filled(store)
        store.create_stream(spec(name="other"))
        store.register("foreign", stream="other", kind="statistics", config=config(), target=0.3)
        yield Clients(server, store, channel)


SERVED = [name for name in RPCS if "SubscriberService" not in name]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_call_what_the_table_says_and_nothing_else(clients: Clients, role: str) -> None:
    token = clients.token("somebody", role)
    for method in SERVED:
        answer = clients.call(method, token)
        denied = answer == "PERMISSION_DENIED PERMISSION_DENIED"
        assert denied == (role not in PERMISSIONS[method].roles), f"{method}: {answer}"


def test_nobody_calls_without_valid_credentials(clients: Clients) -> None:
    good = clients.token("ann", "operator")
    clients.token("gone", "operator", expires_ms=1)
    number, secret = good.split("_", 2)[1:]
    wrong = [
        "",
        "x",
        good[:-1],
        good + "a",
        f"sage_{number}_{'A' * 43}",
        f"sage_{'0' * 12}_{secret}",
        "sage_" + "f" * 10_000,
        "' OR 1=1 --",
    ]
    for method in SERVED:
        assert clients.call(method, None) == "UNAUTHENTICATED CREDENTIALS_MISSING"
    for token in wrong:
        assert clients.call(SERVED[0], token).startswith("UNAUTHENTICATED")
    assert clients.call("/ptkstore.v1.StreamService/ListStreams", good) == "OK"
    assert clients.call("/ptkstore.v1.StreamService/ListStreams", clients.token("late", "reader", expires_ms=1)) == (
        "UNAUTHENTICATED CREDENTIALS_INVALID"
    )


def test_what_is_not_in_the_contract_is_not_there(clients: Clients) -> None:
    for method in ("/ptkstore.v1.PtkService/Nothing", "/x.Y/Z", "/ptkstore.v1.SubscriberService/NotifyNewPtkState"):
        with pytest.raises(grpc.RpcError) as error:
            clients.channel.unary_unary(method)(b"", timeout=5)
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined, unused-ignore]


def test_health_is_for_anyone_and_reflection_for_the_known(clients: Clients) -> None:
    health_pb2_grpc.HealthStub(clients.channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
    stub = reflection_pb2_grpc.ServerReflectionStub(clients.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    with pytest.raises(grpc.RpcError) as error:
        list(stub.ServerReflectionInfo(iter([request]), timeout=5))
    assert error_of(error.value).reason == "CREDENTIALS_MISSING"
    metadata = (("authorization", f"Bearer {clients.token('ann', 'reader')}"),)
    (answer,) = stub.ServerReflectionInfo(iter([request]), metadata=metadata, timeout=5)
    assert answer.list_services_response.service


def test_a_revoked_token_is_dead_soon(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptkstore.rpc.callers.TOKEN_SECONDS", 0.0)
    token = clients.token("ann", "reader")
    assert clients.call("/ptkstore.v1.StreamService/ListStreams", token) == "OK"
    with clients.store.home.metadata.write() as tx:
        tx.tokens.revoke("ann", at_ms=5)
    assert clients.call("/ptkstore.v1.StreamService/ListStreams", token) == "UNAUTHENTICATED CREDENTIALS_INVALID"


def test_secrets_are_nowhere_in_the_store(clients: Clients, tmp_path: Path) -> None:
    token = clients.token("ann", "reader")
    assert clients.call("/ptkstore.v1.StreamService/ListStreams", token) == "OK"
    clients.audit()
    secret = token.rpartition("_")[2].encode()
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert len(files) > 5
    assert [one for one in files if secret in one.read_bytes()] == []


DENIED = "PERMISSION_DENIED PERMISSION_DENIED"


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
    for method in ("EventService/ListAuditEntries", "OperationService/RunDoctor", "StreamService/CreateStream"):
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


def test_every_decision_is_in_the_audit_log(clients: Clients) -> None:
    token = clients.token("ann", "developer")
    clients.call("/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="hour-speed"))
    clients.call("/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="nobody"))
    clients.call("/ptkstore.v1.StreamService/CreateStream", token)
    clients.call("/ptkstore.v1.PtkService/DeregisterPtk", token, ptk_pb2.DeregisterPtkRequest(name="foreign"))
    clients.call("/ptkstore.v1.PtkService/GetPtk", None, ptk_pb2.GetPtkRequest(name="x\x00y" + "z" * 500))
    clients.call("/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="x\x00y" + "z" * 500))
    log = clients.audit()
    assert {
        ("ann", "GetPtk", "hour-speed", "ALLOWED"),
        ("ann", "GetPtk", "nobody", "ALLOWED"),
        ("ann", "GetPtk", "nobody", "PTK_UNKNOWN"),
        ("ann", "CreateStream", "", "DENIED"),
        ("ann", "DeregisterPtk", "foreign", "ALLOWED"),
        ("unknown", "GetPtk", "", "DENIED"),
        ("ann", "GetPtk", "(no name)", "PTK_UNKNOWN"),
    } <= set(log)


def test_nothing_is_done_that_cannot_be_logged(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptkstore.metadata.audit import Audit
    from ptkstore.metadata.errors import MetadataUnavailable

    token = clients.token("ann", "operator")

    def full(*_: object) -> None:
        raise MetadataUnavailable("METADATA_UNAVAILABLE", "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Audit, "add_links", full)
        request = ptk_pb2.DeregisterPtkRequest(name="foreign")
        answer = clients.call("/ptkstore.v1.PtkService/DeregisterPtk", token, request)
        assert answer == "UNAVAILABLE METADATA_UNAVAILABLE"
        patch.setattr("ptkstore.rpc.auditing.MAX_WAITING", 0)
        read = clients.call("/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="foreign"))
        assert read == "UNAVAILABLE AUDIT_UNAVAILABLE"
    assert clients.store.ptk("foreign").status == "ACTIVE"


def test_two_servers_share_one_log_and_nothing_is_lost(tmp_path: Path) -> None:
    with Metadata.open(tmp_path / "meta.db") as one, Metadata.open(tmp_path / "meta.db") as two:
        auditors = [Auditor(one), Auditor(two)]

        def write(number: int) -> None:
            for place in range(60):
                decision = Decision(place, f"w{number}", "what", "", "ALLOWED")
                auditor = auditors[number % 2]
                auditor.now(decision) if place % 7 == 0 else auditor.soon(decision)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for auditor in auditors:
            auditor.close()
        with one.read() as tx:
            assert tx.audit.verify() == 240
            entries = tx.audit.list()
        for number in range(4):
            mine = [entry.at_ms for entry in reversed(entries) if entry.who == f"w{number}"]
            assert mine == list(range(60))


def test_roles_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    with Metadata.open(tmp_path / "meta.db") as metadata:
        for roles in ((), ("boss",), ("reader", "root")):
            with pytest.raises(InvalidInput, match="ROLE_UNKNOWN"):
                make_token(metadata, "x", roles=roles, now_ms=1)


def test_an_allowance_refills_with_time() -> None:
    now = [0.0]
    allowance = Allowance(10, burst_seconds=1, clock=lambda: now[0])
    for _ in range(10):
        allowance.take("ann")
    with pytest.raises(LimitExceeded, match="RATE_LIMITED"):
        allowance.take("ann")
    allowance.take("bob")
    now[0] = 0.1
    allowance.take("ann")
    with pytest.raises(LimitExceeded) as error:
        allowance.take("ann", 5)
    assert error.value.details["retry_seconds"] == 0.5
    now[0] = 5.0
    allowance.take("ann", 100)
    with pytest.raises(LimitExceeded):
        allowance.take("ann")
    Allowance(0).take("ann", 1e12)


def test_a_caller_that_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    with serving(tmp_path, server={"calls_per_second": 1}) as (server, _), Store(server.address) as store:
        store.kinds()
        store.kinds()
        with pytest.raises(LimitExceeded, match="RATE_LIMITED"):
            [store.kinds() for _ in range(10)]


def test_beyond_loopback_there_is_no_server_without_tls(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:7070", "sage.example:1"):
            with pytest.raises(InvalidInput, match="SERVER_UNPROTECTED"):
                Server(store, settings_of(server={"address": address}))


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, a server's certificate and two clients'."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    request = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(*request, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    for name in ("server", "depot", "stranger"):
        openssl(*request, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.pem",
            "-days", "2", "-extfile", "ext",
        )  # fmt: skip
    return folder


def test_tls_with_tokens_and_with_certificates(tmp_path: Path, pki: Path) -> None:
    tls = {"cert_file": pki / "server.pem", "key_file": pki / "server.key"}
    with serving(tmp_path, server={"address": "0.0.0.0:0", "tls": tls}) as (server, store):
        address = f"localhost:{server.address.rpartition(':')[2]}"
        home = store.home
        token = make_token(home.metadata, "ann", roles=["operator"], now_ms=1)[0]
        with Store(address, token=token, ca_file=pki / "ca.pem") as remote:
            remote.create_stream(spec())
            assert [one.name for one in remote.streams()] == ["rides"]
        with Store(address, ca_file=pki / "ca.pem") as remote, pytest.raises(AccessDenied, match="CREDENTIALS_MISSING"):
            remote.streams()
        with Store(address, timeout_seconds=1) as plain, pytest.raises(Exception, match=r"UNAVAILABLE|DEADLINE"):
            plain.streams()
    mutual = tls | {"client_ca_file": pki / "ca.pem"}
    certificates = {"depot": {"roles": ["producer", "reader"], "streams": ["rides"]}}
    sections: dict[str, Any] = {
        "server": {"address": "0.0.0.0:0", "tls": mutual},
        "auth": {"certificates": certificates},
    }
    with serving(tmp_path, **sections) as (server, store):
        address = f"localhost:{server.address.rpartition(':')[2]}"
        own: dict[str, Any] = {"ca_file": pki / "ca.pem"}
        with Store(address, cert_file=pki / "depot.pem", key_file=pki / "depot.key", **own) as remote:
            remote.push("rides", day(0))
            with pytest.raises(AccessDenied, match="PERMISSION_DENIED"):
                remote.deregister("x")
        # Of the right CA, but with no name that the server knows.
        with (
            Store(address, cert_file=pki / "stranger.pem", key_file=pki / "stranger.key", **own) as remote,
            pytest.raises(AccessDenied, match="CREDENTIALS_MISSING"),
        ):
            remote.streams()
        with (
            Store(address, timeout_seconds=1, **own) as remote,
            pytest.raises(Exception, match=r"UNAVAILABLE|DEADLINE"),
        ):
            remote.streams()


def test_anonymous_is_only_for_those_who_are_let() -> None:
    class Context:
        def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
            return ()

        def auth_context(self) -> dict[str, list[bytes]]:
            return {"x509_common_name": [b"ann"]}

    metadata: Any = None
    assert Callers(metadata, anonymous=True).identify(Context()).name == "anonymous"
    with pytest.raises(AccessDenied):
        Callers(metadata, anonymous=False).identify(Context())
