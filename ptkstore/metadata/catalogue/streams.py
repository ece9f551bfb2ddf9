"""Streams and their specifications. Reasons: STREAM_EXISTS, STREAM_UNKNOWN."""

from __future__ import annotations

import sqlalchemy as sa

from ptklib.errors import Refused
from ptkstore.metadata.checks import check_json, check_name, check_whole_or_none
from ptkstore.metadata.rows import StreamRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import streams

__all__ = ["Streams"]


class Streams:
    """The streams of the store."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def create(self, name: str, spec: object, *, at_ms: int | None = None) -> StreamRow:
        """Add a stream.

        ``spec`` is any JSON value. STREAM_EXISTS when the name is taken, whatever its spec.
        """
        values = {
            "name": check_name(name, "a stream's name"),
            "spec": check_json(spec, "a stream's spec"),
            "created_ms": check_whole_or_none(at_ms, "at_ms"),
        }
        if self._find(name) is not None:
            raise Refused("STREAM_EXISTS", f"stream {name!r} exists already", stream=name)
        self._session.insert(streams, **values)
        return self.get(name)

    def set_spec(self, name: str, spec: object) -> StreamRow:
        """Write what has changed of a stream: the caller knows what may. STREAM_UNKNOWN."""
        self.get(name)
        values = {"spec": check_json(spec, "a stream's spec")}
        self._session.execute(sa.update(streams).where(streams.c.name == name).values(**values))
        return self.get(name)

    def get(self, name: str) -> StreamRow:
        """The stream of that name, or STREAM_UNKNOWN."""
        row = self._find(name)
        if row is None:
            raise Refused(
                "STREAM_UNKNOWN", f"there is no stream {name!r}: create it first", stream=name
            )
        return row

    def list(self, *, limit: int | None = None, after: str | None = None) -> tuple[StreamRow, ...]:
        """Streams by name; ``after`` is the last name of the page before."""
        page = self._session.page(sa.select(streams), streams.c.name, after, limit)
        return tuple(StreamRow(**row) for row in page)

    def _find(self, name: str) -> StreamRow | None:
        row = self._session.one(sa.select(streams).where(streams.c.name == name))
        return None if row is None else StreamRow(**row)
