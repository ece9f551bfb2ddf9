"""States over the wire: their bytes are read, in pieces where they are many, and checked against their digest. Reason:
STATE_DAMAGED."""

from __future__ import annotations

from ptklib.state import State
from ptkstore.lake import StateDamaged, digest_of
from ptkstore.references import parse_reference
from ptkstore.remote_channel import Connection
from ptkstore.rpc.messages import moment
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc

__all__ = ["read_state"]


def read_state(
    connection: Connection, stub: ptk_pb2_grpc.PtkServiceStub, reference: str, as_of_ms: int | None
) -> State:
    """A state by name: the newest, ``name@v7``, or the newest as of a time."""
    name, version = parse_reference(reference, as_of_ms)
    request = ptk_pb2.GetStateRequest(name=name, version=version, as_of=moment(as_of_ms))
    found = connection.call(stub.GetState, request)
    arrays = found.arrays
    if found.arrays_bytes != len(arrays):
        arrays = _pieces(connection, stub, ptk_pb2.ReadStateRequest(name=name, digest=found.state.digest))
    if digest_of(arrays, found.manifest) != found.state.digest:
        raise StateDamaged("STATE_DAMAGED", f"the bytes of {reference!r:.80} are not those of its digest")
    return State.from_bytes(arrays, found.manifest)


def _pieces(connection: Connection, stub: ptk_pb2_grpc.PtkServiceStub, request: ptk_pb2.ReadStateRequest) -> bytes:
    """Arrays that were too large for one message."""

    def once() -> bytes:
        pieces = stub.ReadState(request, timeout=connection.timeout_seconds, metadata=connection.metadata)
        return b"".join(one.piece for one in pieces)

    arrays: bytes = connection.patiently(once)
    return arrays
