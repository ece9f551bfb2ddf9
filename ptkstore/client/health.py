"""Ask a server how it is, without credentials. Reasons: SERVER_UNAVAILABLE, DEADLINE_PASSED."""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ptkstore.client.channel import Connection
from ptkstore.wire.faults import error_of

__all__ = ["SERVING", "serving_status"]

SERVING = "SERVING"


def serving_status(
    address: str, service: str = "", *, ca_file: str | None, timeout_seconds: float
) -> str:
    """What the server says of itself, or of one of its services: `SERVING`, or another word."""
    connection = Connection(address, ca_file=ca_file)
    try:
        request = health_pb2.HealthCheckRequest(service=service)
        stub = health_pb2_grpc.HealthStub(connection.channel)
        answer = stub.Check(request, timeout=timeout_seconds)
    except grpc.RpcError as failure:
        raise error_of(failure) from None
    finally:
        connection.close()
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
