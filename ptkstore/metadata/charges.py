"""Where the ledger's entries about a stream lie, so that a page of them is read without reading the rest.

The journal of the ledger is the truth and holds the entries; here is only which entry of which commit concerns which stream.
`head` says up to which commit that is known, and carries its mac: an index of another journal is noticed and made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

import sqlalchemy as sa

from ptkstore.metadata.session import Session
from ptkstore.metadata.tables import charges, charges_head

__all__ = ["ChargeRow", "Charges", "IndexHead"]

_ONLY = 1
_ASKED = 900


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """One entry: the ``number`` it has among all entries of the journal, and its ``place`` in commit ``seq``."""

    stream: str
    number: int
    seq: int
    place: int
    kind: str
    charge: int | None
    key: str


@dataclass(frozen=True, slots=True)
class IndexHead:
    """The newest commit that is in the index, and how many entries there were up to it."""

    seq: int
    mac: str
    entries: int


_COLUMNS = tuple(one.name for one in fields(ChargeRow))


class Charges:
    """The index."""

    def __init__(self, session: Session) -> None:
        """Work inside one transaction."""
        self._session = session

    def head(self) -> IndexHead:
        """How far the index goes; commit 0 before the first."""
        row = self._session.one(sa.select(charges_head))
        return IndexHead(0, "", 0) if row is None else IndexHead(row["seq"], row["mac"], row["entries"])

    def add(self, rows: Sequence[ChargeRow], head: IndexHead) -> None:
        """Add the entries of the commits up to ``head``."""
        self._session.insert_plain(charges, _COLUMNS, [astuple(row) for row in rows])
        self._session.execute(charges_head.delete())
        self._session.insert(charges_head, id=_ONLY, seq=head.seq, mac=head.mac, entries=head.entries)

    def clear(self) -> None:
        """Forget everything: it is made anew from the journal."""
        self._session.execute(charges.delete())
        self._session.execute(charges_head.delete())

    def owners(self, numbers: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Stream and key of charges that were reserved, by their number; those that are not known are left out."""
        wanted = sorted(set(numbers))
        found: dict[int, tuple[str, str]] = {}
        for begin in range(0, len(wanted), _ASKED):
            here = sa.and_(charges.c.charge.in_(wanted[begin : begin + _ASKED]), charges.c.kind == "reserve")
            for row in self._session.all(sa.select(charges).where(here)):
                found[row["charge"]] = (row["stream"], row["key"])
        return found

    def newest(
        self, stream: str, *, limit: int, before: int | None = None, find: str = "", down_to: int = 0
    ) -> tuple[ChargeRow, ...]:
        """The entries of a stream, newest first, with a number from ``down_to`` to below ``before``; those whose key has
        ``find``."""
        query = sa.select(charges).where(charges.c.stream == stream, charges.c.number >= down_to)
        if before is not None:
            query = query.where(charges.c.number < before)
        if find:
            query = query.where(charges.c.key.contains(find, autoescape=True))
        return tuple(ChargeRow(**row) for row in self._session.all(query.order_by(charges.c.number.desc()), limit))

    def list(self, stream: str, *, limit: int | None = None, after: int | None = None) -> tuple[ChargeRow, ...]:
        """The entries of a stream, oldest first; ``after`` is the last number of the page before."""
        query = sa.select(charges).where(charges.c.stream == stream).order_by(charges.c.number)
        if after is not None:
            query = query.where(charges.c.number > after)
        return tuple(ChargeRow(**row) for row in self._session.all(query, limit))
