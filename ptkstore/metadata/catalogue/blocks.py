"""Blocks: the public facts of each.

Reasons: BLOCK_EXISTS, BLOCK_UNKNOWN, BLOCK_STATUS_INVALID, BLOCK_COUNTED.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata.catalogue.streams import Streams
from ptkstore.metadata.checks import check_choice, check_name, check_whole
from ptkstore.metadata.rows import BlockRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import blocks

__all__ = ["STATUSES", "BlockResults", "Blocks"]

STATUSES = ("open", "sealed", "expired")
# Names in one query: fewer than any database takes.
_ASKED = 900


class Blocks:
    """The blocks of the streams."""

    def __init__(self, session: MetadataSession, streams: Streams) -> None:
        """Work inside one transaction."""
        self._session = session
        self._streams = streams

    def get(self, stream: str, name: str) -> BlockRow:
        """The block of that name, or BLOCK_UNKNOWN."""
        row = self._find(stream, name)
        if row is None:
            raise _unknown(stream, name)
        return row

    def list(
        self,
        stream: str,
        window: int | None = None,
        *,
        status: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[BlockRow, ...]:
        """Blocks by start and name, of one window and status if given; ``after`` is the last name
        of the page before.
        """
        query = (
            sa.select(blocks)
            .where(blocks.c.stream == stream)
            .order_by(blocks.c.start_ms, blocks.c.name)
        )
        if window is not None:
            query = query.where(blocks.c.window == window)
        if status is not None:
            query = query.where(blocks.c.status == check_choice(status, "status", STATUSES))
        if after is not None:
            start_ms = self.get(stream, after).start_ms
            # The first of the two is what the index can begin at.
            query = query.where(
                blocks.c.start_ms >= start_ms,
                sa.or_(blocks.c.start_ms > start_ms, blocks.c.name > after),
            )
        return tuple(BlockRow(**row) for row in self._session.all(query, limit))

    def windows(self, stream: str, names: Iterable[str]) -> dict[str, int]:
        """The windows of some blocks; those that are not known are left out."""
        wanted, windows = sorted(set(names)), dict[str, int]()
        for begin in range(0, len(wanted), _ASKED):
            here = sa.and_(
                blocks.c.stream == stream, blocks.c.name.in_(wanted[begin : begin + _ASKED])
            )
            windows |= {
                row["name"]: row["window"]
                for row in self._session.all(sa.select(blocks).where(here))
            }
        return windows

    def count(self, stream: str) -> int:
        """How many blocks there are."""
        return self._session.number(
            sa.select(sa.func.count()).select_from(blocks).where(blocks.c.stream == stream)
        )

    def dp_counts(self, stream: str) -> dict[str, int]:
        """The DP counts of the blocks whose records are still held, 0 where there is none yet."""
        here = sa.and_(blocks.c.stream == stream, blocks.c.status != "expired")
        rows = self._session.all(sa.select(blocks.c.name, blocks.c.dp_count).where(here))
        return {row["name"]: row["dp_count"] or 0 for row in rows}

    def dp_total(self, stream: str) -> tuple[int, int]:
        """The sum of all DP counts that were published, and how many there are."""
        known = sa.and_(blocks.c.stream == stream, blocks.c.dp_count.is_not(None))
        counted = sa.select(sa.func.count()).select_from(blocks).where(known)
        return self._session.number(
            sa.select(sa.func.sum(blocks.c.dp_count)).where(known)
        ), self._session.number(counted)

    def closed(self, stream: str, names: Iterable[str]) -> set[str]:
        """Those of these blocks that are sealed or expired."""
        wanted, closed = sorted(set(names)), set[str]()
        for begin in range(0, len(wanted), _ASKED):
            some = blocks.c.name.in_(wanted[begin : begin + _ASKED])
            here = sa.and_(blocks.c.stream == stream, some, blocks.c.status != "open")
            closed |= {
                row["name"] for row in self._session.all(sa.select(blocks.c.name).where(here))
            }
        return closed

    def give_up(self, stream: str) -> None:
        """All blocks of a stream are gone with their records, as after a restore: no result."""
        self._session.execute(
            blocks.update().where(blocks.c.stream == stream).values(status="expired")
        )

    def _find(self, stream: str, name: str) -> BlockRow | None:
        row = self._session.one(sa.select(blocks).where(_is(stream, name)))
        return None if row is None else BlockRow(**row)


class BlockResults(Blocks):
    """The same, and what windows write of them: only in a transaction for results."""

    def put(self, stream: str, name: str, start_ms: int, end_ms: int, window: int) -> BlockRow:
        """Add an open block that covers ``[start_ms, end_ms)``. The same again is the same block,
        as it is by now; another span or window under its name is BLOCK_EXISTS.
        """
        check_name(name, "a block's name")
        check_whole(start_ms, "start_ms")
        check_whole(end_ms, "end_ms")
        check_whole(window, "window")
        if end_ms <= start_ms:
            raise InvalidInput(
                "VALUE_INVALID", f"a block must end after it starts, got {start_ms} to {end_ms}"
            )
        self._streams.get(stream)
        block = self._find(stream, name)
        if block is None:
            values = {"start_ms": start_ms, "end_ms": end_ms, "window": window}
            self._session.insert(blocks, stream=stream, name=name, status="open", **values)
            return self.get(stream, name)
        if (block.start_ms, block.end_ms, block.window) != (start_ms, end_ms, window):
            raise Refused(
                "BLOCK_EXISTS",
                f"block {name!r} of {stream!r} exists with another span or window",
                blocks=[name],
            )
        return block

    def set_status(self, stream: str, name: str, status: str) -> BlockRow:
        """Move a block on: open, sealed, expired.

        Never back (BLOCK_STATUS_INVALID); the same again changes nothing.
        """
        self.set_statuses(stream, [name], status)
        return self.get(stream, name)

    def set_statuses(self, stream: str, names: Iterable[str], status: str) -> None:
        """`set_status` of several blocks at once, all or none."""
        check_choice(status, "status", STATUSES)
        wanted = list(names)
        here = sa.and_(blocks.c.stream == stream, blocks.c.name.in_(wanted))
        statuses = {
            row["name"]: row["status"] for row in self._session.all(sa.select(blocks).where(here))
        }
        for name in wanted:
            if name not in statuses:
                raise _unknown(stream, name)
            if STATUSES.index(status) < STATUSES.index(statuses[name]):
                raise Refused(
                    "BLOCK_STATUS_INVALID",
                    f"block {name!r} is {statuses[name]} and never {status} again",
                    blocks=[name],
                )
        self._session.execute(blocks.update().where(here).values(status=status))

    def set_dp_count(self, stream: str, name: str, value: int) -> BlockRow:
        """Publish the block's one DP count. The same again changes nothing, another one is
        BLOCK_COUNTED: two counts would be two releases at the price of one.
        """
        check_whole(value, "a DP count")
        block = self.get(stream, name)
        if block.dp_count is not None and block.dp_count != value:
            raise Refused(
                "BLOCK_COUNTED",
                f"block {name!r} of {stream!r} has its DP count already",
                blocks=[name],
            )
        self._session.execute(blocks.update().where(_is(stream, name)).values(dp_count=value))
        return self.get(stream, name)


def _is(stream: str, name: str) -> sa.ColumnElement[bool]:
    return sa.and_(blocks.c.stream == stream, blocks.c.name == name)


def _unknown(stream: str, name: str) -> Refused:
    return Refused("BLOCK_UNKNOWN", f"stream {stream!r} has no block {name!r}", blocks=[name])
