"""OperationService: watch long work, list cycles, see the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptklib.errors import InvalidInput, Refused
from ptkstore.client import Store
from ptkstore.engine.cycle import cycle_views
from ptkstore.metadata.operations import OperationRow
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.happenings import number_of, operation_page, operation_view
from ptkstore.rpc.hub import Hub
from ptkstore.rpc.messages import cycle_message, operation_message
from ptkstore.rpc.pages import MAX_SIZE, Page
from ptkstore.v1 import operation_pb2

__all__ = ["MAX_CANARIES", "Operations"]

MAX_CANARIES = 100


class Operations:
    """See the contract."""

    def __init__(self, store: Store, hub: Hub) -> None:
        """Serve a store."""
        self._store = store
        self._hub = hub

    def get_operation(self, request: Any, call: Call) -> operation_pb2.GetOperationResponse:
        """See the contract."""
        return operation_pb2.GetOperationResponse(operation=self._message(self._row(request.id, call)))

    def list_operations(self, request: Any, call: Call) -> operation_pb2.ListOperationsResponse:
        """See the contract."""
        with self._store.home.metadata.read() as tx:
            page = operation_page(
                tx,
                request.stream,
                limit=request.page_size,
                page_token=request.page_token,
                sees=call.caller.sees_stream,
            )
        operations = [operation_message(one) for one in page.operations]
        return operation_pb2.ListOperationsResponse(operations=operations, next_page_token=page.next_page_token)

    def watch_operation(self, request: Any, call: Call) -> Iterator[operation_pb2.WatchOperationResponse]:
        """See the contract."""
        last = None
        with self._hub.watching(call.context) as looks:
            for _ in looks:
                row = self._row(request.id, call)
                message = self._message(row)
                if message != last:
                    yield operation_pb2.WatchOperationResponse(operation=message)
                    last = message
                if row.status != "RUNNING":
                    return

    def list_cycles(self, request: Any, _call: Call) -> operation_pb2.ListCyclesResponse:
        """See the contract."""
        self._store.stream(request.stream)
        if request.newest:
            count = min(request.newest, MAX_SIZE)
            most = request.most_trained if request.HasField("most_trained") else None
            found = self._store.cycles(request.stream, newest=count, most_trained=most)
            newest = [cycle_message(one) for one in found]
            return operation_pb2.ListCyclesResponse(cycles=newest)
        page = Page(f"cycles {request.stream}", request.page_size, request.page_token)
        with self._store.home.metadata.read() as tx:
            rows = tx.cycles.list(request.stream, limit=page.size + 1, after=page.after)
            part, token = page.cut(rows, lambda row: row.id)
            cycles = [cycle_message(one) for one in cycle_views(tx, part)]
        return operation_pb2.ListCyclesResponse(cycles=cycles, next_page_token=token)

    def run_doctor(self, request: Any, _call: Call) -> operation_pb2.RunDoctorResponse:
        """See the contract."""
        if len(request.canaries) > MAX_CANARIES or any(not one for one in request.canaries):
            raise InvalidInput("VALUE_INVALID", f"canaries must be at most {MAX_CANARIES}, none of them empty")
        texts = [one.decode() if _is_text(one) else one for one in request.canaries]
        found = self._store.doctor(texts)
        findings = [operation_pb2.Finding(level=one.level, what=one.what, detail=one.detail) for one in found]
        return operation_pb2.RunDoctorResponse(findings=findings)

    def _message(self, row: OperationRow) -> operation_pb2.Operation:
        with self._store.home.metadata.read() as tx:
            return operation_message(operation_view(tx, row))

    def _row(self, text: str, call: Call) -> OperationRow:
        with self._store.home.metadata.read() as tx:
            try:
                row = tx.operations.get(number_of(text, "an operation"))
            except Refused:
                # What is not there and what is not theirs look alike.
                if call.caller.limited:
                    call.caller.require_stream("")
                raise
        call.caller.require_stream(row.stream)
        return row


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
