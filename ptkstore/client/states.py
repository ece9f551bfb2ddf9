"""States over the wire: their bytes are read, in pieces where they are many, and checked against
their digest. Reason: STATE_DAMAGED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptklib.encoding.state_digest import digest_of
from ptklib.errors import StateDamaged
from ptkstore.api.references import parse_reference
from ptkstore.client.channel import Connection
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc
from ptkstore.wire.messages import moment

if TYPE_CHECKING:
    from ptklib.state import State

__all__ = ["read_state"]


def read_state(
    connection: Connection, stub: ptk_pb2_grpc.PtkServiceStub, reference: str, as_of_ms: int | None
) -> State:
    """A state by name: the newest, ``name@v7``, or the newest as of a time."""
    # NumPy and the kinds are imported when a state is read.
    from ptklib.state import State

    name, version = parse_reference(reference, as_of_ms)
    request = ptk_pb2.GetStateRequest(name=name, version=version, as_of=moment(as_of_ms))
    response = connection.call(stub.GetState, request)
    arrays = response.arrays
    if response.arrays_bytes != len(arrays):
        arrays = _pieces(
            connection, stub, ptk_pb2.ReadStateRequest(name=name, digest=response.state.digest)
        )
    if digest_of(arrays, response.manifest) != response.state.digest:
        raise StateDamaged(
            "STATE_DAMAGED", f"the bytes of {reference!r:.80} are not those of its digest"
        )
    return State.from_bytes(arrays, response.manifest)


def _pieces(
    connection: Connection, stub: ptk_pb2_grpc.PtkServiceStub, request: ptk_pb2.ReadStateRequest
) -> bytes:
    """Arrays that were too large for one message."""

    def once() -> bytes:
        pieces = stub.ReadState(
            request, timeout=connection.timeout_seconds, metadata=connection.metadata
        )
        return b"".join(piece.piece for piece in pieces)

    arrays: bytes = connection.patiently(once)
    return arrays
