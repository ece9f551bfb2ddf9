"""Long work that a server was asked for: written down before it is begun, with its windows when
they are known, told of while it runs and ended once.

All of it is public: names, times, reasons and words of ours. Reasons: ID_INVALID,
OPERATION_UNKNOWN, PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ptkstore.api.paging import PageRequest
from ptkstore.api.references import number_of
from ptkstore.api.views import CycleView, OperationPage, OperationView
from ptkstore.engine.parts import Parts
from ptkstore.engine.window.views import cycle_views
from ptkstore.engine.within import Within
from ptkstore.metadata import Transaction
from ptkstore.metadata.work.operations import OperationRow

__all__ = [
    "add_windows",
    "end",
    "known",
    "operation",
    "operation_page",
    "running",
    "start",
    "tell",
]


def operation(parts: Parts, text: str) -> OperationView:
    """The operation with that id, with the cycles of its windows as they are now."""
    number = number_of(text, "an operation")
    with parts.metadata.read() as tx:
        return _view(tx, tx.operations.get(number))


def operation_page(
    parts: Parts,
    stream: str,
    *,
    limit: int,
    page_token: str,
    sees: Callable[[str], bool] = lambda _stream: True,
) -> OperationPage:
    """Operations of a stream (all if empty) that ``sees`` allows, newest first."""
    page = PageRequest(f"operations {stream}", limit, page_token)
    seen: list[OperationRow] = []
    before = page.after
    with parts.metadata.read() as tx:
        # Rows of other streams are passed over, so that a page is full unless it is the last.
        while len(seen) <= page.size:
            rows = tx.operations.list(stream or None, limit=page.size + 1, before=before)
            seen += [row for row in rows if sees(row.stream)]
            if len(rows) <= page.size:
                break
            before = rows[-1].id
        part, token = page.cut(seen, lambda row: row.id)
        return OperationPage(tuple(_views(tx, part)), token)


def known(parts: Parts, number: int) -> OperationRow:
    """The operation with that number, for whoever works on it."""
    with parts.metadata.read() as tx:
        return tx.operations.get(number)


def running(parts: Parts) -> list[int]:
    """The numbers of the operations that were begun and not ended, oldest first."""
    with parts.metadata.read() as tx:
        return [row.id for row in tx.operations.running()]


def start(
    parts: Parts,
    kind: str,
    stream: str,
    *,
    until_ms: int,
    windows: Sequence[int],
    within: Within[OperationView],
) -> int:
    """Write an operation down, with the windows that are known by now; returns its number."""
    with parts.metadata.write() as tx:
        row = tx.operations.start(kind, stream, until_ms=until_ms, at_ms=parts.public_ms())
        row = tx.operations.add_windows(row.id, windows)
        within(tx, _view(tx, row))
    return row.id


def add_windows(parts: Parts, number: int, windows: Sequence[int]) -> Sequence[int]:
    """Write down windows that belong to an operation; returns all of them."""
    with parts.metadata.write() as tx:
        known: Sequence[int] = tx.operations.add_windows(number, windows).windows
        return known


def tell(parts: Parts, number: int, text: str) -> None:
    """Say how far an operation is."""
    with parts.metadata.write() as tx:
        tx.operations.set_progress(number, text)


def end(parts: Parts, number: int, status: str, *, reason: str, message: str) -> None:
    """End an operation: DONE, or FAILED with the reason."""
    with parts.metadata.write() as tx:
        tx.operations.end(number, status, reason=reason, message=message, at_ms=parts.public_ms())


def _view(tx: Transaction, row: OperationRow) -> OperationView:
    return _views(tx, [row])[0]


def _views(tx: Transaction, rows: Sequence[OperationRow]) -> list[OperationView]:
    """Operations with their cycles, all of them at once."""
    windows: dict[str, set[int]] = {}
    for row in rows:
        windows.setdefault(row.stream, set()).update(row.windows)
    cycles = [
        cycle for stream, some in windows.items() for cycle in tx.cycles.of_windows(stream, some)
    ]
    views = {(view.stream, view.window): view for view in cycle_views(tx, cycles)}
    return [_operation_view(row, views) for row in rows]


def _operation_view(row: OperationRow, views: Mapping[tuple[str, int], CycleView]) -> OperationView:
    cycles = tuple(
        views[row.stream, window] for window in row.windows if (row.stream, window) in views
    )
    return OperationView(
        id=str(row.id),
        kind=row.kind,
        stream=row.stream,
        status=row.status,
        progress=row.progress,
        cycles=cycles,
        reason=row.reason,
        message=row.message,
        created_ms=row.created_ms,
        ended_ms=row.ended_ms,
    )
