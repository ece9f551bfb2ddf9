"""Leases: which of several servers does what only one may do.

A lease counts its holders (``term``) and how often the present one renewed it (``beat``). It holds
no times: whoever wants it watches whether it still beats, by a clock of its own. `take` and `renew`
change exactly what was seen, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from ptkstore.metadata.checks import check_name, check_text, check_whole
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import leases

__all__ = ["LeaseRow", "Leases"]


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease.

    ``holder`` is empty where it was given back; ``place`` says where the holder keeps its lock.
    """

    name: str
    holder: str
    address: str
    place: str
    term: int
    beat: int
    lease_ms: int


class Leases:
    """The leases of the store."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def get(self, name: str) -> LeaseRow | None:
        """The lease of that name, or None before anybody has held it."""
        row = self._session.one(sa.select(leases).where(leases.c.name == name))
        return None if row is None else LeaseRow(**row)

    def take(
        self,
        name: str,
        seen: LeaseRow | None,
        *,
        holder: str,
        address: str,
        place: str,
        lease_ms: int,
    ) -> LeaseRow | None:
        """Begin the next term, if the lease still is what was ``seen``; None if it is not."""
        if self.get(name) != seen:
            return None
        values = {
            "holder": check_name(holder, "holder"),
            "address": check_text(address, "address", 2000),
            "place": check_text(place, "place", 200),
            "term": 1 if seen is None else seen.term + 1,
            "beat": 0,
            "lease_ms": check_whole(lease_ms, "lease_ms", 1),
        }
        if seen is None:
            self._session.insert_all(
                leases, [{"name": check_name(name, "a lease's name"), **values}]
            )
        else:
            self._session.execute(leases.update().where(leases.c.name == name).values(**values))
        return self.get(name)

    def renew(self, name: str, holder: str, term: int) -> bool:
        """One more beat; False if somebody else holds the lease by now."""
        lease = self.get(name)
        if lease is None or (lease.holder, lease.term) != (holder, term):
            return False
        self._session.execute(
            leases.update().where(leases.c.name == name).values(beat=lease.beat + 1)
        )
        return True

    def release(self, name: str, holder: str, term: int) -> None:
        """Give the lease back, if it is still held."""
        here = sa.and_(leases.c.name == name, leases.c.holder == holder, leases.c.term == term)
        self._session.execute(leases.update().where(here).values(holder="", address=""))
