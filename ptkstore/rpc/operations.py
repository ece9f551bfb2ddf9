"""OperationService: watch long work, list cycles, see the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptklib.errors import InvalidInput, Refused
from ptkstore.client import Store
from ptkstore.engine.cycle import cycle_view
from ptkstore.metadata import Transaction
from ptkstore.metadata.operations import OperationRow
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.hub import Hub
from ptkstore.rpc.messages import cycle_message, moment
from ptkstore.rpc.pages import MAX_SIZE, Page
from ptkstore.v1 import operation_pb2

__all__ = ["MAX_CANARIES", "Operations", "number_of", "operation_message"]

MAX_CANARIES = 100
_STATUS = "OPERATION_STATUS_"


def number_of(text: str, what: str) -> int:
    """The number that an id is, or -1, which nothing has. Reason: ID_INVALID."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput("ID_INVALID", f"the id of {what} must be one that the server gave")
    return int(text)


def operation_message(tx: Transaction, row: OperationRow) -> operation_pb2.Operation:
    """An operation with the cycles of its windows as they are now."""
    known = {one.window: one.id for one in tx.cycles.list(row.stream) if one.window in row.windows}
    cycles = [cycle_message(cycle_view(tx, known[window])) for window in row.windows if window in known]
    return operation_pb2.Operation(
        id=str(row.id),
        kind=row.kind,
        stream=row.stream,
        status=_STATUS + row.status,
        progress=row.progress,
        cycles=cycles,
        reason=row.reason,
        message=row.message,
        create_time=moment(row.created_ms),
        end_time=moment(row.ended_ms),
    )


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
        page = Page(f"operations {request.stream}", request.page_size, request.page_token)
        found: list[OperationRow] = []
        before = page.after
        # Rows of other streams are passed over, so that a page is full unless it is the last.
        while len(found) <= page.size:
            with self._store.home.metadata.read() as tx:
                rows = tx.operations.list(request.stream or None, limit=page.size + 1, before=before)
            found += [row for row in rows if call.caller.sees_stream(row.stream)]
            if len(rows) <= page.size:
                break
            before = rows[-1].id
        part, token = page.cut(found, lambda row: row.id)
        operations = [self._message(row) for row in part]
        return operation_pb2.ListOperationsResponse(operations=operations, next_page_token=token)

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
            newest = [cycle_message(one) for one in self._store.cycles(request.stream, newest=count)]
            return operation_pb2.ListCyclesResponse(cycles=newest)
        page = Page(f"cycles {request.stream}", request.page_size, request.page_token)
        with self._store.home.metadata.read() as tx:
            rows = tx.cycles.list(request.stream, limit=page.size + 1, after=page.after)
            part, token = page.cut(rows, lambda row: row.id)
            cycles = [cycle_message(cycle_view(tx, row.id)) for row in part]
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
            return operation_message(tx, row)

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
