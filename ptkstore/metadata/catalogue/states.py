"""States: the versions of each PTK. A version *stands* unless it was tested and not shown to keep its
target; the newest one that stands is what is given to those who name no version.

Reasons: STATE_UNKNOWN, STATE_EXISTS, VERSION_STALE.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata.catalogue.cycles import Cycles
from ptkstore.metadata.catalogue.ptks import Ptks
from ptkstore.metadata.checks import check_json, check_whole
from ptkstore.metadata.rows import StateRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import ptks, states

__all__ = ["NOT_SHOWN", "VALIDATED", "StateResults", "States"]

# Verdicts that decide something here: who is given without being asked for by its number, and since
# when attempts are counted.
VALIDATED, NOT_SHOWN = "VALIDATED", "NOT_SHOWN"

_DIGEST = re.compile(r"[0-9a-f]{64}")


class States:
    """The versions of the PTKs: 1, 2, 3 and so on for each, immutable, one for each cycle at
    most.
    """

    def __init__(self, session: MetadataSession, ptks: Ptks, cycles: Cycles) -> None:
        """Work inside one transaction."""
        self._session = session
        self._ptks = ptks
        self._cycles = cycles

    def next_version(self, ptk: int) -> int:
        """The version the next new state of a PTK gets, if it is added in this transaction."""
        return (
            self._session.number(
                sa.select(sa.func.max(states.c.version)).where(states.c.ptk == ptk)
            )
            + 1
        )

    def get(self, ptk: int, version: int) -> StateRow:
        """That version, or STATE_UNKNOWN."""
        row = self._session.one(_of(ptk).where(states.c.version == version))
        if row is None:
            raise Refused(
                "STATE_UNKNOWN", f"PTK {ptk} has no version {version}", ptk=ptk, version=version
            )
        return StateRow(**row)

    def has_digest(self, ptk: int, digest: str) -> bool:
        """True when a version of the PTK has that digest; whatever the text is."""
        known = _DIGEST.fullmatch(digest) and self._session.one(
            _of(ptk).where(states.c.digest == digest)
        )
        return bool(known)

    def latest(self, ptk: int) -> StateRow | None:
        """The newest version that stands, or None when there is none yet."""
        row = self._session.one(_standing(ptk).order_by(states.c.version.desc()))
        return None if row is None else StateRow(**row)

    def newest(self, ptks: Iterable[int]) -> dict[int, StateRow]:
        """`latest` of several PTKs at once, by PTK; those that have no version yet are left out."""
        return self._highest(ptks, states.c.verdict != NOT_SHOWN)

    def last(self, ptks: Iterable[int]) -> dict[int, StateRow]:
        """The version with the highest number of each PTK, whether it stands or not: what the next
        one comes after.
        """
        return self._highest(ptks, sa.true())

    def attempt(self, ptk: int) -> int:
        """The number of the test of the next version: 1 and those that failed since one passed."""
        passed = (
            sa.select(sa.func.coalesce(sa.func.max(states.c.version), 0))
            .where(states.c.ptk == ptk, states.c.verdict == VALIDATED)
            .scalar_subquery()
        )
        failed = sa.select(sa.func.count()).where(
            states.c.ptk == ptk, states.c.verdict == NOT_SHOWN, states.c.version > passed
        )
        return self._session.number(failed) + 1

    def _highest(self, ptks: Iterable[int], which: sa.ColumnElement[bool]) -> dict[int, StateRow]:
        highest = (
            sa.select(states.c.ptk, sa.func.max(states.c.version).label("version"))
            .where(states.c.ptk.in_(list(ptks)), which)
            .group_by(states.c.ptk)
            .subquery()
        )
        here = sa.and_(states.c.ptk == highest.c.ptk, states.c.version == highest.c.version)
        return self._first_by_ptk(sa.select(states).join(highest, here))

    def as_of(self, ptk: int, time_ms: int) -> StateRow | None:
        """The newest version that stands, created at or before that time, or None."""
        query = _standing(ptk).where(states.c.created_ms <= check_whole(time_ms, "time_ms"))
        row = self._session.one(query.order_by(states.c.version.desc()))
        return None if row is None else StateRow(**row)

    def list(
        self, ptk: int, *, limit: int | None = None, after: int | None = None
    ) -> tuple[StateRow, ...]:
        """The versions of a PTK, oldest first; ``after`` is the last version of the page before."""
        page = self._session.page(_of(ptk), states.c.version, after, limit)
        return tuple(StateRow(**row) for row in page)

    def standing(
        self, ptk: int, *, limit: int | None = None, after: int | None = None
    ) -> tuple[StateRow, ...]:
        """The versions of a PTK that stand, oldest first: what followers are handed."""
        page = self._session.page(_standing(ptk), states.c.version, after, limit)
        return tuple(StateRow(**row) for row in page)

    def not_shown(self, stream: str) -> int:
        """The versions of all PTKs of a stream that do not stand."""
        query = sa.select(sa.func.count()).select_from(states.join(ptks, states.c.ptk == ptks.c.id))
        return self._session.number(
            query.where(ptks.c.stream == stream, states.c.verdict == NOT_SHOWN)
        )

    def count(self, stream: str) -> int:
        """The versions of all PTKs of a stream."""
        query = sa.select(sa.func.count()).select_from(states.join(ptks, states.c.ptk == ptks.c.id))
        return self._session.number(query.where(ptks.c.stream == stream))

    def newest_times(self, stream: str) -> dict[int, int]:
        """When the newest version of each PTK of a stream was made, by PTK; without its manifest,
        which may be long.
        """
        query = sa.select(states.c.ptk, sa.func.max(states.c.created_ms)).join(
            ptks, states.c.ptk == ptks.c.id
        )
        query = query.where(ptks.c.stream == stream, states.c.verdict != NOT_SHOWN)
        return dict(self._session.tuples(query.group_by(states.c.ptk)))

    def digests(self) -> frozenset[str]:
        """The digests of all versions of all PTKs, and of the parts that the newest are made of:
        what the lake must keep, with those of running cycles.
        """
        known = {row["digest"] for row in self._session.all(sa.select(states.c.digest).distinct())}
        every = [row["ptk"] for row in self._session.all(sa.select(states.c.ptk).distinct())]
        for row in self.last(every).values():
            parts = row.manifest.get("parts") if isinstance(row.manifest, dict) else None
            known |= {digest for _, digest in parts or ()}
        return frozenset(known)

    def _first_by_ptk(self, query: sa.Select[tuple[object, ...]]) -> dict[int, StateRow]:
        return {row["ptk"]: StateRow(**row) for row in self._session.all(query)}


class StateResults(States):
    """The same, and what windows publish: only in a transaction for results."""

    def add(
        self,
        ptk: int,
        version: int | None,
        digest: str,
        manifest: object,
        window: int,
        created_ms: int,
        *,
        cycle: int,
    ) -> StateRow:
        """Commit the state a cycle trained, as the next version.

        ``version`` is what the manifest says, and VERSION_STALE when that is not the next one; None
        takes the next one. The same digest for the same PTK and cycle again returns the first row;
        another digest is STATE_EXISTS. Put the bytes into the lake first: a version must never be
        visible before its bytes.
        """
        return self.add_all({ptk: (version, digest, manifest)}, window, created_ms, cycle=cycle)[0]

    def add_all(
        self,
        trained: Mapping[int, tuple[int | None, str, object]],
        window: int,
        created_ms: int,
        *,
        cycle: int,
        verdicts: Mapping[int, str] | None = None,
    ) -> tuple[StateRow, ...]:
        """`add` for several PTKs of a cycle at once: version, digest and manifest by PTK, in their
        order; with what validators said of them.
        """
        told = verdicts or {}
        times = {
            "window": check_whole(window, "window"),
            "created_ms": check_whole(created_ms, "created_ms"),
        }
        texts = {
            ptk: _checked(version, digest, manifest)
            for ptk, (version, digest, manifest) in trained.items()
        }
        self._ptks.require(trained)
        self._cycles.get(cycle)
        given = self._first_by_ptk(
            sa.select(states).where(states.c.cycle == cycle, states.c.ptk.in_(list(trained)))
        )
        newest = self.last(trained)
        rows = {}
        for ptk, (version, digest, _) in trained.items():
            state, due = given.get(ptk), newest[ptk].version + 1 if ptk in newest else 1
            if state is None and version not in (None, due):
                raise Refused(
                    "VERSION_STALE",
                    f"the next version of PTK {ptk} is {due}, not {version}",
                    ptk=ptk,
                    version=due,
                )
            if state is not None and (
                state.digest != digest or version not in (None, state.version)
            ):
                raise Refused(
                    "STATE_EXISTS",
                    f"cycle {cycle} gave PTK {ptk} another state already",
                    ptk=ptk,
                    version=state.version,
                )
            rows[ptk] = state or StateRow(
                ptk,
                due,
                cycle,
                digest,
                json.loads(texts[ptk]),
                **times,
                verdict=told.get(ptk, ""),
            )
        fresh = [
            {
                "ptk": ptk,
                "version": row.version,
                "cycle": cycle,
                "digest": row.digest,
                "manifest": texts[ptk],
                "verdict": row.verdict,
                **times,
            }
            for ptk, row in rows.items()
            if ptk not in given
        ]
        self._session.insert_all(states, fresh)
        return tuple(rows.values())


def _checked(version: int | None, digest: str, manifest: object) -> str:
    """The manifest as it is stored."""
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InvalidInput("VALUE_INVALID", f"a digest must be 64 hex digits, got {digest!r:.80}")
    if version is not None:
        check_whole(version, "version", at_least=1)
    return check_json(manifest, "a manifest")


def _standing(ptk: int) -> sa.Select[tuple[object, ...]]:
    return _of(ptk).where(states.c.verdict != NOT_SHOWN)


def _of(ptk: int) -> sa.Select[tuple[object, ...]]:
    return sa.select(states).where(states.c.ptk == ptk)
