"""The audit log: who asked for what, when, and what was decided. It only grows: triggers of the
database refuse the rest.

Every entry carries the SHA-256 of itself and of the entry before, so whoever kept a digest
elsewhere notices a log that was rewritten. The oldest entries may be moved to a file, a *segment*
(see `audit_segments`): what is left goes on from the digest of the last one that was moved, and
triggers let go of nothing but what a segment holds. Reason: AUDIT_DAMAGED.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile

import sqlalchemy as sa

from ptklib.encoding.canonical import canonical
from ptkstore.metadata.errors import MetadataDamaged
from ptkstore.metadata.searching import containing, first_looked_at
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import audit, audit_segments

__all__ = ["Audit", "AuditRow", "Decision", "Link", "Segment", "chained", "digest_of"]

# The columns of an entry: those of a decision, and the digest.
Link = tuple[int, str, str, str, str, int, str]
_COLUMNS = ("at_ms", "who", "what", "subject", "outcome", "times", "digest")


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. ``subject`` is a stream or PTK, or empty; ``outcome`` is ALLOWED, DENIED or the
    reason of an error; ``times`` is how often it was made, up to ``at_ms``, since the entry before
    that says the same.
    """

    at_ms: int
    who: str
    what: str
    subject: str
    outcome: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A decision in the log."""

    id: int
    at_ms: int
    who: str
    what: str
    subject: str
    outcome: str
    times: int
    digest: str

    @property
    def decision(self) -> Decision:
        """What was decided."""
        return Decision(self.at_ms, self.who, self.what, self.subject, self.outcome, self.times)


@dataclass(frozen=True, slots=True)
class Segment:
    """Entries that were moved to a file: up to the one numbered ``id``, with its digest, and the
    SHA-256 of the file.
    """

    id: int
    entries: int
    digest: str
    file: str
    file_sha256: str
    at_ms: int


class Audit:
    """The log."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def add_all(self, decisions: Iterable[Decision]) -> str:
        """Add decisions in their order; the digest of the last."""
        return self.add_links(chained(self.digest(), decisions))

    def add_links(self, links: Sequence[Link]) -> str:
        """Add entries that were `chained` to the newest one, which the caller has checked; the
        digest of the last.
        """
        self._session.insert_plain(audit, _COLUMNS, links)
        return links[-1][-1] if links else self.digest()

    def digest(self) -> str:
        """The digest of the newest entry; empty where there never was one."""
        last = self._session.one(sa.select(audit.c.digest).order_by(audit.c.id.desc()))
        return self._head() if last is None else str(last["digest"])

    def list(self, *, limit: int | None = None, before: int | None = None) -> tuple[AuditRow, ...]:
        """Entries, newest first; ``before`` is the last id of the page before."""
        query = sa.select(audit).order_by(audit.c.id.desc())
        if before is not None:
            query = query.where(audit.c.id < before)
        return tuple(AuditRow(**row) for row in self._session.all(query, limit))

    def search(
        self,
        *,
        find: str = "",
        what: Sequence[str] = (),
        limit: int | None = None,
        before: int | None = None,
    ) -> tuple[tuple[AuditRow, ...], int]:
        """Entries with all words of ``find`` that are about one of ``what`` (all if empty), newest
        first; and the id that the search went back to, 1 or less at the end of the log.
        """
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
        """Check every digest from the head of the newest segment on; the number of entries, or
        AUDIT_DAMAGED.
        """
        digest, count = self._head(), 0
        for row in self._session.all(sa.select(audit).order_by(audit.c.id)):
            entry = AuditRow(**row)
            digest = digest_of(digest, entry.decision)
            if digest != entry.digest:
                raise MetadataDamaged(
                    "AUDIT_DAMAGED", f"entry {entry.id} of the audit log is not what was written"
                )
            count += 1
        return count

    def oldest(self, before_ms: int, limit: int) -> tuple[AuditRow, ...]:
        """The first entries, oldest first, up to the first one that is not older than that."""
        rows = self._session.all(sa.select(audit).order_by(audit.c.id), limit)
        return tuple(
            takewhile(lambda entry: entry.at_ms < before_ms, (AuditRow(**row) for row in rows))
        )

    def segments(self) -> tuple[Segment, ...]:
        """What was moved to files, oldest first."""
        return tuple(
            Segment(**row)
            for row in self._session.all(sa.select(audit_segments).order_by(audit_segments.c.id))
        )

    def release(self, segment: Segment) -> None:
        """Let go of the entries of a segment, which is durable elsewhere and follows the newest
        one.
        """
        values = {field.name: getattr(segment, field.name) for field in fields(segment)}
        self._session.insert(audit_segments, **values)
        self._session.execute(audit.delete().where(audit.c.id <= segment.id))

    def _head(self) -> str:
        """The digest that the first entry follows: that of the last one in the newest segment."""
        last = self._session.one(
            sa.select(audit_segments.c.digest).order_by(audit_segments.c.id.desc())
        )
        return "" if last is None else str(last["digest"])


def chained(before: str, decisions: Iterable[Decision]) -> list[Link]:
    """The entries of decisions that follow the entry with the digest ``before``."""
    links: list[Link] = []
    for decision in decisions:
        before = digest_of(before, decision)
        links.append(
            (
                decision.at_ms,
                decision.who,
                decision.what,
                decision.subject,
                decision.outcome,
                decision.times,
                before,
            )
        )
    return links


def digest_of(before: str, decision: Decision) -> str:
    """The digest of a decision that follows the entry with the digest ``before``."""
    # Entries of before there was a number of times have none, and say the same as entries with 1.
    times = [] if decision.times == 1 else [decision.times]
    return hashlib.sha256(
        canonical(
            [
                before,
                decision.at_ms,
                decision.who,
                decision.what,
                decision.subject,
                decision.outcome,
                *times,
            ]
        )
    ).hexdigest()
