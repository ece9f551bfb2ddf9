"""Where the ledger's entries about a stream lie, so that a page of them is read without reading the
rest.

The journal of the ledger is the truth and holds the entries; here is only which entry of which
commit concerns which stream. `head` says up to which commit that is known, and carries its mac: an
index of another journal is noticed and made anew. Beside it the charges that stand are added up by
who made them, in the same transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace

import sqlalchemy as sa

from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import charges, charges_head, spent

__all__ = ["ChargeRow", "Charges", "IndexHead", "SpentRow", "SpentSum"]

_ONLY = 1
_ASKED = 900


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """One entry: the ``number`` it has among all entries of the journal, and its ``place`` in
    commit ``seq``.
    """

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


@dataclass(frozen=True, slots=True)
class SpentRow:
    """So many charges of one holder that each took ``took_nano`` billionths of the stream's
    epsilon, over so much ``area`` (in 2^-20 of a block) together; or what to add to that.
    """

    stream: str
    who: str
    purpose: str
    took_nano: int
    charges: int
    area: int


@dataclass(frozen=True, slots=True)
class SpentSum:
    """All charges of one holder for one purpose, or of one purpose: ``most_nano`` is what the
    largest took, ``spent`` is what they took times where.
    """

    who: str
    purpose: str
    charges: int
    most_nano: int
    spent: float


_COLUMNS = tuple(field.name for field in fields(ChargeRow))
_SPENT_COLUMNS = tuple(field.name for field in fields(SpentRow))
_SUMS = (
    sa.func.sum(spent.c.charges).label("charges"),
    sa.func.max(spent.c.took_nano).label("most_nano"),
    sa.func.sum(sa.cast(spent.c.took_nano, sa.Double) * spent.c.area).label("spent"),
)


class Charges:
    """The index."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def head(self) -> IndexHead:
        """How far the index goes; commit 0 before the first."""
        row = self._session.one(sa.select(charges_head))
        return (
            IndexHead(0, "", 0)
            if row is None
            else IndexHead(row["seq"], row["mac"], row["entries"])
        )

    def add(
        self, rows: Sequence[ChargeRow], head: IndexHead, sums: Sequence[SpentRow] = ()
    ) -> None:
        """Add the entries of the commits up to ``head``, and what they add to the sums."""
        self._add_sums(sums)
        self._session.insert_plain(charges, _COLUMNS, [astuple(row) for row in rows])
        self._session.execute(charges_head.delete())
        self._session.insert(
            charges_head, id=_ONLY, seq=head.seq, mac=head.mac, entries=head.entries
        )

    def clear(self) -> None:
        """Forget everything: it is made anew from the journal."""
        self._session.execute(charges.delete())
        self._session.execute(spent.delete())
        self._session.execute(charges_head.delete())

    def spent(self, stream: str, *, limit: int) -> tuple[SpentSum, ...]:
        """Who spent most of a stream, first."""
        query = (
            sa.select(spent.c.who, spent.c.purpose, *_SUMS)
            .where(spent.c.stream == stream)
            .group_by(spent.c.who, spent.c.purpose)
            .order_by(sa.desc("spent"), spent.c.who, spent.c.purpose)
        )
        return tuple(_sum(row["who"], row) for row in self._session.all(query, limit))

    def spent_by_purpose(self, stream: str) -> tuple[tuple[SpentSum, ...], int]:
        """What was spent for each purpose, the most first; and how many holders there are."""
        query = (
            sa.select(spent.c.purpose, *_SUMS)
            .where(spent.c.stream == stream)
            .group_by(spent.c.purpose)
            .order_by(sa.desc("spent"), spent.c.purpose)
        )
        holders = (
            sa.select(spent.c.who, spent.c.purpose)
            .where(spent.c.stream == stream)
            .distinct()
            .subquery()
        )
        number = self._session.number(sa.select(sa.func.count()).select_from(holders))
        return tuple(_sum("", row) for row in self._session.all(query)), number

    def _add_sums(self, sums: Sequence[SpentRow]) -> None:
        merged = {_key(row): row for row in sums}
        holders = sorted({(row.stream, row.who) for row in sums})
        for begin in range(0, len(holders), _ASKED // 2):
            here = sa.tuple_(spent.c.stream, spent.c.who).in_(holders[begin : begin + _ASKED // 2])
            for spent_row in self._session.all(sa.select(spent).where(here)):
                old = SpentRow(**spent_row)
                more = merged.get(_key(old))
                charged, area = (more.charges, more.area) if more is not None else (0, 0)
                merged[_key(old)] = replace(
                    old, charges=old.charges + charged, area=old.area + area
                )
            self._session.execute(spent.delete().where(here))
        # What was given back altogether is not there any more.
        standing = [astuple(row) for row in merged.values() if row.charges]
        self._session.insert_plain(spent, _SPENT_COLUMNS, standing)

    def reserved(self, numbers: Iterable[int]) -> dict[int, ChargeRow]:
        """Charges that were reserved, by their number; those that are not known are left out."""
        wanted = sorted(set(numbers))
        charge_rows: dict[int, ChargeRow] = {}
        for begin in range(0, len(wanted), _ASKED):
            here = sa.and_(
                charges.c.charge.in_(wanted[begin : begin + _ASKED]), charges.c.kind == "reserve"
            )
            for row in self._session.all(sa.select(charges).where(here)):
                charge_rows[row["charge"]] = ChargeRow(**row)
        return charge_rows

    def newest(
        self,
        stream: str,
        *,
        limit: int,
        before: int | None = None,
        find: str = "",
        down_to: int = 0,
    ) -> tuple[ChargeRow, ...]:
        """The entries of a stream, newest first, with a number from ``down_to`` to below
        ``before``; those whose key has ``find``.
        """
        query = sa.select(charges).where(charges.c.stream == stream, charges.c.number >= down_to)
        if before is not None:
            query = query.where(charges.c.number < before)
        if find:
            query = query.where(charges.c.key.contains(find, autoescape=True))
        return tuple(
            ChargeRow(**row)
            for row in self._session.all(query.order_by(charges.c.number.desc()), limit)
        )

    def list(
        self, stream: str, *, limit: int | None = None, after: int | None = None
    ) -> tuple[ChargeRow, ...]:
        """The entries of a stream, oldest first; ``after`` is the last number of the page
        before.
        """
        page = self._session.page(
            sa.select(charges).where(charges.c.stream == stream), charges.c.number, after, limit
        )
        return tuple(ChargeRow(**row) for row in page)


def _key(row: SpentRow) -> tuple[str, str, str, int]:
    return row.stream, row.who, row.purpose, row.took_nano


def _sum(who: str, row: sa.RowMapping) -> SpentSum:
    return SpentSum(
        who, row["purpose"], int(row["charges"]), int(row["most_nano"]), float(row["spent"])
    )
