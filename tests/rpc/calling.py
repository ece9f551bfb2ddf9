"""Callers with and without credentials, and every RPC of the contract by its full name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass

from ptkstore import Store
from ptkstore.engine.access.tokens import make_token
from ptkstore.server import Server
from ptkstore.v1 import budget_pb2, operation_pb2, plan_pb2, ptk_pb2, stream_pb2
from ptkstore.wire.faults import error_of

__all__ = ["DENIED", "ROOT", "RPCS", "SERVED", "Clients"]

ROOT = Path(__file__).parents[2]
FILES = (budget_pb2, operation_pb2, plan_pb2, ptk_pb2, stream_pb2)
RPCS = {
    f"/{service.full_name}/{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
SERVED = [name for name in RPCS if "SubscriberService" not in name]
DENIED = "PERMISSION_DENIED PERMISSION_DENIED"


class Clients:
    """A server that wants credentials, and callers with tokens."""

    def __init__(self, server: Server, store: Store, channel: grpc.Channel) -> None:
        self.server, self.store, self.channel = server, store, channel

    def token(self, name: str, *roles: str, **limits: Any) -> str:
        parts = self.store.parts
        return make_token(parts.metadata, name, roles=roles, now_ms=parts.now_ms(), **limits)[0]

    def call(self, method: str, token: str | None, request: Any = None) -> str:
        """The code and reason of a call with an empty or given request; OK where there is none."""
        return self.answer(method, token, request)[0]

    def answer(self, method: str, token: str | None, request: Any = None) -> tuple[str, bytes]:
        """The same, and the bytes of the (first) answer."""
        rpc = RPCS[method]
        kind = GetMessageClass(rpc.input_type)
        body = (request if request is not None else kind()).SerializeToString()
        metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        try:
            if rpc.client_streaming:
                found = b"".join(
                    self.channel.stream_stream(method)(iter([body]), metadata=metadata, timeout=5)
                )
            elif rpc.server_streaming:
                call = self.channel.unary_stream(method)(body, metadata=metadata, timeout=5)
                found = next(call, b"")
                call.cancel()
            else:
                found = self.channel.unary_unary(method)(body, metadata=metadata, timeout=30)
        except grpc.RpcError as error:
            return f"{error.code().name} {error_of(error).reason}", b""
        return "OK", found

    def audit(self) -> list[tuple[str, str, str, str]]:
        self.server._auditor.flush()
        with self.store.parts.metadata.read() as tx:
            tx.audit.verify()
            return [
                (one.who, one.what.rpartition("/")[2], one.subject, one.outcome)
                for one in tx.audit.list()
            ]
