"""Who a caller is: tokens, certificates, nobody; how often they may ask; and where there is no
server without TLS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ptklib.errors import InvalidInput
from ptkstore import Store
from ptkstore.allowance import Allowance
from ptkstore.engine.access.tokens import make_token
from ptkstore.metadata import Metadata
from ptkstore.rpc.gate.identity import Callers
from ptkstore.server import Server
from ptkstore.wire.faults import AccessDenied, LimitExceeded, error_of
from tests.engine.small import day, spec
from tests.rpc.calling import SERVED, Clients
from tests.rpc.small import serving, settings_of


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
    assert clients.call(
        "/ptkstore.v1.StreamService/ListStreams", clients.token("late", "reader", expires_ms=1)
    ) == ("UNAUTHENTICATED CREDENTIALS_INVALID")


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
    monkeypatch.setattr("ptkstore.rpc.gate.identity.TOKEN_SECONDS", 0.0)
    token = clients.token("ann", "reader")
    assert clients.call("/ptkstore.v1.StreamService/ListStreams", token) == "OK"
    with clients.store.parts.metadata.write() as tx:
        tx.tokens.revoke("ann", at_ms=5)
    assert (
        clients.call("/ptkstore.v1.StreamService/ListStreams", token)
        == "UNAUTHENTICATED CREDENTIALS_INVALID"
    )


def test_secrets_are_nowhere_in_the_store(clients: Clients, tmp_path: Path) -> None:
    token = clients.token("ann", "reader")
    assert clients.call("/ptkstore.v1.StreamService/ListStreams", token) == "OK"
    clients.audit()
    # A secret may have the character in it that stands before it.
    secret = token.split("_", 2)[2].encode()
    assert len(secret) > 40
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert len(files) > 5
    assert [one for one in files if secret in one.read_bytes()] == []


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
    with (
        serving(tmp_path, server={"calls_per_second": 1}) as (server, _),
        Store(server.address) as store,
    ):
        store.kinds()
        store.kinds()
        with pytest.raises(LimitExceeded, match="RATE_LIMITED"):
            [store.kinds() for _ in range(10)]


def test_beyond_loopback_there_is_no_server_without_tls(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:7070", "sage.example:1"):
            with pytest.raises(InvalidInput, match="SERVER_UNPROTECTED"):
                Server(store, settings_of(server={"address": address}))


def test_tls_with_tokens_and_with_certificates(tmp_path: Path, pki: Path) -> None:
    tls = {"cert_file": pki / "server.pem", "key_file": pki / "server.key"}
    with serving(tmp_path, server={"address": "0.0.0.0:0", "tls": tls}) as (server, store):
        address = f"localhost:{server.address.rpartition(':')[2]}"
        parts = store.parts
        token = make_token(parts.metadata, "ann", roles=["operator"], now_ms=1)[0]
        with Store(address, token=token, ca_file=pki / "ca.pem") as remote:
            remote.create_stream(spec())
            assert [one.name for one in remote.streams()] == ["rides"]
        with (
            Store(address, ca_file=pki / "ca.pem") as remote,
            pytest.raises(AccessDenied, match="CREDENTIALS_MISSING"),
        ):
            remote.streams()
        with (
            Store(address, timeout_seconds=1) as plain,
            pytest.raises(Exception, match=r"UNAVAILABLE|DEADLINE"),
        ):
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
        with Store(
            address, cert_file=pki / "depot.pem", key_file=pki / "depot.key", **own
        ) as remote:
            remote.push("rides", day(0))
            with pytest.raises(AccessDenied, match="PERMISSION_DENIED"):
                remote.deregister("x")
        # Of the right CA, but with no name that the server knows.
        with (
            Store(
                address, cert_file=pki / "stranger.pem", key_file=pki / "stranger.key", **own
            ) as remote,
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
