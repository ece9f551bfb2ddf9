"""OperationService: watch long work, list cycles, see the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptklib.errors import InvalidInput, Refused
from ptkstore.api.views import OperationView
from ptkstore.engine.history.cycles import CycleViews
from ptkstore.engine.history.operations import operation, operation_page
from ptkstore.engine.parts import Parts
from ptkstore.engine.safekeeping.doctor import examine
from ptkstore.rpc.feeds.hub import Hub
from ptkstore.rpc.gate.dispatch import Call
from ptkstore.v1 import operation_pb2
from ptkstore.wire.messages import cycle_message, operation_message

__all__ = ["MAX_CANARIES", "OperationService"]

MAX_CANARIES = 100


class OperationService:
    """See the contract."""

    def __init__(self, parts: Parts, hub: Hub) -> None:
        """Serve a store."""
        self._parts = parts
        self._cycles = CycleViews(parts)
        self._hub = hub

    def get_operation(self, request: Any, call: Call) -> operation_pb2.GetOperationResponse:
        """See the contract."""
        return operation_pb2.GetOperationResponse(
            operation=operation_message(self._operation(request.id, call))
        )

    def list_operations(self, request: Any, call: Call) -> operation_pb2.ListOperationsResponse:
        """See the contract."""
        page = operation_page(
            self._parts,
            request.stream,
            limit=request.page_size,
            page_token=request.page_token,
            sees=call.caller.sees_stream,
        )
        operations = [operation_message(operation_view) for operation_view in page.operations]
        return operation_pb2.ListOperationsResponse(
            operations=operations, next_page_token=page.next_page_token
        )

    def watch_operation(
        self, request: Any, call: Call
    ) -> Iterator[operation_pb2.WatchOperationResponse]:
        """See the contract."""
        last = None
        with self._hub.watching(call.who, call.context) as looks:
            for _ in looks:
                now = self._operation(request.id, call)
                message = operation_message(now)
                if message != last:
                    yield operation_pb2.WatchOperationResponse(operation=message)
                    last = message
                if now.status != "RUNNING":
                    return

    def list_cycles(self, request: Any, _call: Call) -> operation_pb2.ListCyclesResponse:
        """See the contract."""
        if request.newest:
            most = request.most_trained if request.HasField("most_trained") else None
            newest = self._cycles.listed(request.stream, newest=request.newest, most_trained=most)
            return operation_pb2.ListCyclesResponse(
                cycles=[cycle_message(cycle) for cycle in newest]
            )
        page = self._cycles.page(
            request.stream, limit=request.page_size, page_token=request.page_token
        )
        return operation_pb2.ListCyclesResponse(
            cycles=[cycle_message(cycle) for cycle in page.cycles],
            next_page_token=page.next_page_token,
        )

    def run_doctor(self, request: Any, _call: Call) -> operation_pb2.RunDoctorResponse:
        """See the contract."""
        if len(request.canaries) > MAX_CANARIES or any(not canary for canary in request.canaries):
            raise InvalidInput(
                "VALUE_INVALID", f"canaries must be at most {MAX_CANARIES}, none of them empty"
            )
        texts = [canary.decode() if _is_text(canary) else canary for canary in request.canaries]
        diagnosis = examine(self._parts, texts)
        findings = [
            operation_pb2.Finding(level=finding.level, what=finding.what, detail=finding.detail)
            for finding in diagnosis
        ]
        return operation_pb2.RunDoctorResponse(findings=findings)

    def _operation(self, text: str, call: Call) -> OperationView:
        try:
            view = operation(self._parts, text)
        except Refused:
            # What is not there and what is not theirs look alike.
            if call.caller.limited:
                call.caller.require_stream("")
            raise
        call.caller.require_stream(view.stream)
        return view


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
