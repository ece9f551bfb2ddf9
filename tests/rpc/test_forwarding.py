"""Calls that are handed on to the leader: under whose name, with which errors, and what there is
without a leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from ptkstore import LocalStore, Store
from ptkstore.api.permissions import PERMISSIONS
from ptkstore.engine.access.tokens import make_token
from ptkstore.engine.leadership.election import LEASE
from ptkstore.metadata import Metadata
from ptkstore.rpc.gate.forwarding import FORWARDED, Vouching
from ptkstore.server import Server, open_store
from ptkstore.v1 import stream_pb2
from ptkstore.wire.faults import AccessDenied, ServerUnavailable, error_of
from tests.engine.small import day, spec
from tests.rpc.small import PACE, settings_of


@contextmanager
def sharing(
    folder: Path, url: str, count: int = 2, **sections: Any
) -> Iterator[list[tuple[Server, LocalStore]]]:
    """Servers of one store in this process; the first leads."""
    settings = settings_of(
        metadata={"url": url},
        ledger={"url": url, "key_file": folder / "ledger.key"},
        workers={"processes": 0},
        **sections,
    )
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            store = stack.enter_context(open_store(folder / "store", settings))
            found.append((stack.enter_context(Server(store, settings, pace=PACE)), store))
        yield found


def sealing(remote: Any) -> Any:
    return remote._streams.SealStream(
        stream_pb2.SealStreamRequest(name="rides"), metadata=remote._connection.metadata, timeout=20
    )


def refusal(act: Any) -> Any:
    with pytest.raises(grpc.RpcError) as failure:
        act()
    return error_of(failure.value)


def test_what_is_handed_on_is_what_mutates_streams() -> None:
    assert set(PERMISSIONS) >= FORWARDED
    assert all(PERMISSIONS[method].mutates for method in FORWARDED)


def test_a_token_goes_along_and_the_leader_decides(tmp_path: Path, postgres_url: str) -> None:
    with sharing(tmp_path, postgres_url, auth={"required": True}) as (
        (leader, _),
        (follower, store),
    ):
        assert (leader.leads, follower.leads) == (True, False)
        assert follower.leader == leader.address
        store.create_stream(spec())
        metadata = store.parts.metadata
        tokens = {
            role: make_token(metadata, role, roles=[role], now_ms=1)[0]
            for role in ("producer", "reader")
        }
        with Store(follower.address, token=tokens["producer"]) as remote:
            remote.push("rides", day(0, 100), producer="p", seq=0)
        with (
            Store(follower.address, token=tokens["reader"]) as remote,
            pytest.raises(AccessDenied, match="PERMISSION"),
        ):
            remote.push("rides", day(0, 100))
        with Store(follower.address) as remote:
            assert refusal(lambda: sealing(remote)).reason == "CREDENTIALS_MISSING"
        with metadata.read() as tx:
            decisions = {
                (row.who, row.outcome) for row in tx.audit.list() if row.what.endswith("/Append")
            }
        # Each once: by the leader. Denials follow within a moment.
        assert ("producer", "ALLOWED") in decisions


def test_a_certificate_is_vouched_for_and_a_servers_own_lends_nobody_its_roles(
    tmp_path: Path, postgres_url: str, pki: Path
) -> None:
    tls = {
        "cert_file": pki / "server.pem",
        "key_file": pki / "server.key",
        "client_ca_file": pki / "ca.pem",
        "ca_file": pki / "ca.pem",
    }
    certificates = {"depot": {"roles": ["producer", "reader"]}, "server": {"roles": ["operator"]}}
    sections: dict[str, Any] = {
        "server": {"address": "localhost:0", "tls": tls},
        "auth": {"required": True, "certificates": certificates},
    }
    with sharing(tmp_path, postgres_url, **sections) as ((_, store), (follower, _store)):
        store.create_stream(spec())

        def as_(name: str) -> Any:
            files: dict[str, Any] = {
                "cert_file": pki / f"{name}.pem",
                "key_file": pki / f"{name}.key",
                "ca_file": pki / "ca.pem",
            }
            return Store(follower.address, **files)

        with as_("depot") as remote:
            remote.push("rides", day(0, 100), producer="p", seq=0)
            assert refusal(lambda: sealing(remote)).reason == "PERMISSION_DENIED"
        with as_("stranger") as remote:
            assert refusal(lambda: sealing(remote)).reason == "CREDENTIALS_MISSING"
        with as_("server") as remote:
            assert sealing(remote).blocks is not None


def test_vouching_is_believed_of_servers_of_the_store_alone_and_for_a_while() -> None:
    class Context:
        def __init__(self, header: str) -> None:
            self._header = header

        def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
            return (("sage-caller", self._header),)

    now = [1000.0]
    ours = Vouching(b"k" * 32, lambda: now[0])
    header = ours.header("depot")
    assert ours.caller(Context(header)) == "depot"
    assert Vouching(b"x" * 32, lambda: now[0]).caller(Context(header)) is None
    at, mac, name = header.split(".")
    for forged in (
        f"{at}.{mac}.{b'admin'.hex()}",
        f"{int(at) + 1}.{mac}.{name}",
        f"{at}.{mac}",
        f"{at}.{mac}.zz",
        "",
        "..é",
    ):
        assert ours.caller(Context(forged)) is None
    now[0] += 301
    assert ours.caller(Context(header)) is None


@pytest.mark.parametrize("address", ["", "127.0.0.1:1"], ids=["not known", "not there"])
def test_without_a_leader_readers_are_served_and_writers_told(
    tmp_path: Path, postgres_url: str, address: str
) -> None:
    with Metadata.open(postgres_url) as metadata, metadata.write() as tx:
        # Held by a server on another machine.
        tx.leases.take(
            LEASE, None, holder="far", address=address, place="elsewhere", lease_ms=600_000
        )
    with sharing(tmp_path, postgres_url, 1, server={"lease_seconds": 1}) as ((server, store),):
        assert not server.leads
        store.create_stream(spec())
        with Store(server.address) as remote:
            assert remote.stream("rides") == spec()
            told = refusal(lambda: sealing(remote))
        assert isinstance(told, ServerUnavailable)
        assert told.reason == "LEADER_UNAVAILABLE"


def test_a_store_of_its_own_hands_nothing_on(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store, Server(store, settings_of()) as server:
        assert server.leads
        assert server.leader == server.address
        assert server._forwarder is None
        assert not (tmp_path / "lead.lock").exists()
