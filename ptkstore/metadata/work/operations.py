"""Operations: long work that somebody asked for, and how it goes. Reason: OPERATION_UNKNOWN."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ptklib.errors import Refused
from ptkstore.metadata.catalogue.streams import Streams
from ptkstore.metadata.checks import (
    MAX_TEXT,
    check_choice,
    check_json,
    check_name,
    check_text,
    check_whole_or_none,
)
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import operations

__all__ = ["STATUSES", "OperationRow", "Operations"]

STATUSES = ("RUNNING", "DONE", "FAILED")


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One operation. ``windows`` are those it works on, as far as they are known."""

    id: int
    kind: str
    stream: str
    until_ms: int | None
    windows: Any
    status: str
    progress: str
    reason: str
    message: str
    created_ms: int | None
    ended_ms: int | None


class Operations:
    """The operations of the store.

    One that runs ends once, and a restart takes up those that run.
    """

    def __init__(self, session: MetadataSession, streams: Streams) -> None:
        """Work inside one transaction."""
        self._session = session
        self._streams = streams

    def start(
        self, kind: str, stream: str, *, until_ms: int | None = None, at_ms: int | None = None
    ) -> OperationRow:
        """Write down that an operation is to be done; RUNNING from now on."""
        self._streams.get(stream)
        number = self._session.insert(
            operations,
            kind=check_name(kind, "an operation's kind"),
            stream=stream,
            until_ms=check_whole_or_none(until_ms, "until_ms"),
            windows="[]",
            status="RUNNING",
            progress="",
            reason="",
            message="",
            created_ms=check_whole_or_none(at_ms, "at_ms"),
        )
        return self.get(number)

    def get(self, operation: int) -> OperationRow:
        """The operation of that id, or OPERATION_UNKNOWN."""
        row = self._session.one(sa.select(operations).where(operations.c.id == operation))
        if row is None:
            raise Refused(
                "OPERATION_UNKNOWN", f"there is no operation {operation!r}", operation=operation
            )
        return OperationRow(**row)

    def add_windows(self, operation: int, windows: Iterable[int]) -> OperationRow:
        """Add windows that it works on; those it has stay."""
        known = self.get(operation).windows
        every = check_json(
            [*known, *(window for window in windows if window not in known)], "windows"
        )
        self._session.execute(
            operations.update().where(operations.c.id == operation).values(windows=every)
        )
        return self.get(operation)

    def set_progress(self, operation: int, progress: str) -> None:
        """What it is doing, for people."""
        text = check_text(progress[:MAX_TEXT], "progress")
        here = sa.and_(operations.c.id == operation, operations.c.status == "RUNNING")
        self._session.execute(operations.update().where(here).values(progress=text))

    def end(
        self,
        operation: int,
        status: str,
        *,
        reason: str = "",
        message: str = "",
        at_ms: int | None = None,
    ) -> OperationRow:
        """DONE or FAILED. An operation ends once: a second end changes nothing."""
        check_choice(status, "status", STATUSES[1:])
        here = sa.and_(operations.c.id == operation, operations.c.status == "RUNNING")
        values = {
            "reason": reason,
            "message": check_text(message[:MAX_TEXT], "message"),
            "ended_ms": at_ms,
        }
        self._session.execute(operations.update().where(here).values(status=status, **values))
        return self.get(operation)

    def running(self) -> tuple[OperationRow, ...]:
        """The operations that are not done, oldest first: where a restart resumes."""
        query = (
            sa.select(operations).where(operations.c.status == "RUNNING").order_by(operations.c.id)
        )
        return tuple(OperationRow(**row) for row in self._session.all(query))

    def list(
        self, stream: str | None = None, *, limit: int | None = None, before: int | None = None
    ) -> tuple[OperationRow, ...]:
        """Operations, newest first, of one stream if given; ``before`` is the last id of the page
        before.
        """
        query = sa.select(operations).order_by(operations.c.id.desc())
        if stream is not None:
            query = query.where(operations.c.stream == stream)
        if before is not None:
            query = query.where(operations.c.id < before)
        return tuple(OperationRow(**row) for row in self._session.all(query, limit))
