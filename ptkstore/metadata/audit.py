"""The audit log: who asked for what, when, and what was decided. It only grows: triggers of the database refuse the rest.

Every entry carries the SHA-256 of itself and of the entry before, so whoever kept a digest elsewhere notices a log that was
rewritten. Reason: AUDIT_DAMAGED.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from ptklib.ledger.canonical import canonical
from ptkstore.metadata.errors import MetadataDamaged
from ptkstore.metadata.searching import containing, first_looked_at
from ptkstore.metadata.session import Session
from ptkstore.metadata.tables import audit

__all__ = ["Audit", "AuditRow", "Decision", "Link", "chained"]

# The columns of an entry: those of a decision, and the digest.
Link = tuple[int, str, str, str, str, str]
_COLUMNS = ("at_ms", "who", "what", "subject", "outcome", "digest")


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. ``subject`` is a stream or PTK, or empty; ``outcome`` is ALLOWED, DENIED or the reason of an error."""

    at_ms: int
    who: str
    what: str
    subject: str
    outcome: str


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A decision in the log."""

    id: int
    at_ms: int
    who: str
    what: str
    subject: str
    outcome: str
    digest: str


class Audit:
    """The log."""

    def __init__(self, session: Session) -> None:
        """Work inside one transaction."""
        self._session = session

    def add_all(self, decisions: Iterable[Decision]) -> str:
        """Add decisions in their order; the digest of the last."""
        return self.add_links(chained(self.digest(), decisions))

    def add_links(self, links: Sequence[Link]) -> str:
        """Add entries that were `chained` to the newest one, which the caller has checked; the digest of the last."""
        self._session.insert_plain(audit, _COLUMNS, links)
        return links[-1][-1] if links else self.digest()

    def digest(self) -> str:
        """The digest of the newest entry; empty where there is none."""
        last = self._session.one(sa.select(audit.c.digest).order_by(audit.c.id.desc()))
        return "" if last is None else str(last["digest"])

    def list(self, *, limit: int | None = None, before: int | None = None) -> tuple[AuditRow, ...]:
        """Entries, newest first; ``before`` is the last id of the page before."""
        query = sa.select(audit).order_by(audit.c.id.desc())
        if before is not None:
            query = query.where(audit.c.id < before)
        return tuple(AuditRow(**row) for row in self._session.all(query, limit))

    def search(
        self, *, find: str = "", what: Sequence[str] = (), limit: int | None = None, before: int | None = None
    ) -> tuple[tuple[AuditRow, ...], int]:
        """Entries with all words of ``find`` that are about one of ``what`` (all if empty), newest first; and the id that
        the search went back to, 1 or less at the end of the log."""
        newest = self._session.number(sa.select(sa.func.max(audit.c.id)))
        first = first_looked_at(before, newest)
        query = sa.select(audit).where(audit.c.id >= first).order_by(audit.c.id.desc())
        if before is not None:
            query = query.where(audit.c.id < before)
        if what:
            query = query.where(audit.c.what.in_(what))
        columns = (audit.c.who, audit.c.what, audit.c.subject, audit.c.outcome)
        query = query.where(*containing(find, columns))
        return tuple(AuditRow(**row) for row in self._session.all(query, limit)), first

    def verify(self) -> int:
        """Check every digest; the number of entries, or AUDIT_DAMAGED."""
        digest, count = "", 0
        for row in self._session.all(sa.select(audit).order_by(audit.c.id)):
            digest = _digest(digest, Decision(row["at_ms"], row["who"], row["what"], row["subject"], row["outcome"]))
            if digest != row["digest"]:
                raise MetadataDamaged("AUDIT_DAMAGED", f"entry {row['id']} of the audit log is not what was written")
            count += 1
        return count


def chained(before: str, decisions: Iterable[Decision]) -> list[Link]:
    """The entries of decisions that follow the entry with the digest ``before``."""
    links: list[Link] = []
    for one in decisions:
        before = _digest(before, one)
        links.append((one.at_ms, one.who, one.what, one.subject, one.outcome, before))
    return links


def _digest(before: str, one: Decision) -> str:
    return hashlib.sha256(canonical([before, one.at_ms, one.who, one.what, one.subject, one.outcome])).hexdigest()
