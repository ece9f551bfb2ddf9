"""The PTKs of a store as people see them: one, all, a page, a search, how many, and the
configurations that one had.

Each function is one look at the metadata. ``sees`` says of a PTK and its stream whether the caller
may see it; PTKs of others are passed over. Reasons: PTK_UNKNOWN, PAGE_INVALID, PAGE_TOKEN_INVALID,
VALUE_INVALID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ptklib.errors import InvalidInput
from ptkstore.api.limits import MAX_CONFIGS
from ptkstore.api.paging import PageRequest
from ptkstore.api.views import PtkConfig, PtkView
from ptkstore.engine.catalogue.finding import find_ptks
from ptkstore.engine.catalogue.ptk_views import ptk_view
from ptkstore.engine.parts import Parts
from ptkstore.metadata import rows
from ptkstore.metadata.database.store import Transaction

__all__ = [
    "PtkRecord",
    "PtkRecordPage",
    "PtkSearch",
    "Sees",
    "configs",
    "count",
    "everything",
    "listed",
    "named",
    "page_of",
    "record",
    "search",
]

Sees = Callable[[str, str], bool]
# Rows in one query.
_AT_ONCE = 1000


@dataclass(frozen=True)
class PtkRecord:
    """A PTK, and which state of its row was seen: a change may ask for exactly that."""

    view: PtkView
    etag: int


@dataclass(frozen=True)
class PtkRecordPage:
    """A page of PTKs by id, and the token of the next."""

    ptks: tuple[PtkRecord, ...]
    next_page_token: str


@dataclass(frozen=True)
class PtkSearch:
    """A page by its number: what was found in all, and how many PTKs there are."""

    ptks: tuple[PtkRecord, ...]
    found: int
    total: int
    page: int


def everything(_ptk: str, _stream: str) -> bool:
    """What somebody sees who may see every PTK."""
    return True


def record(tx: Transaction, name: str) -> PtkRecord:
    """One PTK, inside a transaction. Refused: PTK_UNKNOWN."""
    known = tx.newest.named(name)
    return _record(known.ptk, known.state)


def named(parts: Parts, name: str) -> PtkRecord:
    """One PTK. Refused: PTK_UNKNOWN."""
    with parts.metadata.read() as tx:
        return record(tx, name)


def listed(
    parts: Parts, stream: str | None, *, status: str | None, limit: int | None
) -> list[PtkView]:
    """The PTKs by id, with that status if given; the first ``limit`` of them."""
    with parts.metadata.read() as tx:
        ptks = tx.ptks.list(stream, status=status, limit=limit)
        newest: dict[int, rows.StateRow] = {}
        for begin in range(0, len(ptks), _AT_ONCE):
            newest |= tx.states.newest([row.id for row in ptks[begin : begin + _AT_ONCE]])
    return [ptk_view(row, newest.get(row.id)) for row in ptks]


def page_of(
    parts: Parts, stream: str, status: str, *, limit: int, page_token: str, sees: Sees
) -> PtkRecordPage:
    """PTKs by id, of a stream and with a status where these are not empty."""
    page = PageRequest(f"ptks {stream} {status}", limit, page_token)
    seen: list[rows.PtkRow] = []
    after = page.after
    with parts.metadata.read() as tx:
        # PTKs of others are passed over, so that a page is full unless it is the last.
        while len(seen) <= page.size:
            some = tx.ptks.list(
                stream or None, status=status or None, limit=page.size + 1, after=after
            )
            seen += [row for row in some if sees(row.name, row.stream)]
            if len(some) <= page.size:
                break
            after = some[-1].id
        part, token = page.cut(seen[: page.size + 1], lambda row: row.id)
        newest = tx.states.newest([row.id for row in part])
    return PtkRecordPage(tuple(_record(row, newest.get(row.id)) for row in part), token)


def search(
    parts: Parts,
    stream: str | None,
    *,
    status: str | None,
    find: str,
    sort: str,
    page: int,
    size: int,
    sees: Sees = everything,
) -> PtkSearch:
    """PTKs whose name, kind or stream has every word of ``find``, sorted."""
    with parts.metadata.read() as tx:
        part, newest, matching, total, number = find_ptks(
            tx,
            stream=stream,
            status=status,
            find=find,
            sort=sort,
            page=page,
            size=size,
            sees=sees,
        )
    return PtkSearch(
        tuple(_record(row, newest.get(row.id)) for row in part), matching, total, number
    )


def count(parts: Parts, stream: str | None, *, sees: Sees | None = None) -> dict[str, int]:
    """How many PTKs there are with each status; those that there are none of are left out."""
    with parts.metadata.read() as tx:
        if sees is None:
            return tx.ptks.count_by_status(stream)
        statuses = [row.status for row in tx.ptks.list(stream) if sees(row.name, row.stream)]
    return dict(sorted(Counter(statuses).items()))


def configs(parts: Parts, name: str, *, limit: int) -> list[PtkConfig]:
    """The configurations that a PTK has and had, newest first."""
    if not 1 <= limit <= MAX_CONFIGS:
        raise InvalidInput("PAGE_INVALID", f"limit must be from 1 to {MAX_CONFIGS}, got {limit}")
    with parts.metadata.read() as tx:
        return [PtkConfig(*config) for config in tx.ptks.configs(tx.ptks.named(name).id, limit)]


def _record(row: rows.PtkRow, latest: rows.StateRow | None) -> PtkRecord:
    return PtkRecord(ptk_view(row, latest), row.etag)
