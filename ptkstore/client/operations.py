"""Wait for long work of a server, however long it takes and however often the server restarts
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

import grpc

from ptklib.errors import SageError
from ptkstore.api.views import CycleView
from ptkstore.client.channel import Connection
from ptkstore.v1 import operation_pb2, operation_pb2_grpc
from ptkstore.wire.faults import error_of
from ptkstore.wire.messages import cycle_view

__all__ = ["finished"]

# How often a lost connection is tried again: about two minutes.
_RESTART_ATTEMPTS = 60


def finished(
    connection: Connection, operation: str, progress: Callable[[str], None]
) -> list[CycleView]:
    """The cycles of an operation once it is done; the error it ended with where it failed."""
    watch = connection.stub(operation_pb2_grpc.OperationServiceStub).WatchOperation
    request = operation_pb2.WatchOperationRequest(id=operation)
    told, attempt = "", 0
    while True:
        try:
            for response in connection.streaming(watch, request):
                attempt = 0
                now = response.operation
                if now.progress and now.progress != told:
                    told = now.progress
                    progress(told)
                if now.status == operation_pb2.OPERATION_STATUS_FAILED:
                    raise SageError(now.reason, now.message)
                if now.status == operation_pb2.OPERATION_STATUS_DONE:
                    return [cycle_view(cycle) for cycle in now.cycles]
        except grpc.RpcError as failure:
            attempt += 1
            if failure.code() != grpc.StatusCode.UNAVAILABLE or attempt > _RESTART_ATTEMPTS:
                raise error_of(failure) from None
        connection.wait(attempt)
