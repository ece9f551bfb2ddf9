"""Profiles of PTKs: levels and samples, public metadata only."""

from __future__ import annotations

import json

import sqlalchemy as sa

from ptkstore.metadata.catalogue.ptks import Ptks
from ptkstore.metadata.checks import (
    check_json,
    check_name,
    check_real,
    check_whole,
    check_whole_or_none,
)
from ptkstore.metadata.rows import ProfileRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import profiles, ptks

__all__ = ["ProfileResults", "Profiles"]


class Profiles:
    """The profile cache.

    The key is (ptk, config_version, target); the newest of a key counts, older ones are history.
    """

    def __init__(self, session: MetadataSession, ptks: Ptks) -> None:
        """Work inside one transaction."""
        self._session = session
        self._ptks = ptks

    def latest(self, ptk: int, config_version: int, target: float) -> ProfileRow | None:
        """The newest profile of that key, or None."""
        query = _of(ptk).where(
            profiles.c.config_version == config_version, profiles.c.target == float(target)
        )
        row = self._session.one(query.order_by(profiles.c.id.desc()))
        return None if row is None else ProfileRow(**row)

    def newest_of_stream(self, stream: str) -> dict[tuple[int, int, float], int]:
        """The id of the newest profile of every key of a stream's PTKs."""
        key = (profiles.c.ptk, profiles.c.config_version, profiles.c.target)
        query = (
            sa.select(*key, sa.func.max(profiles.c.id).label("newest"))
            .join(ptks, ptks.c.id == profiles.c.ptk)
            .where(ptks.c.stream == stream)
            .group_by(*key)
        )
        return {
            (row["ptk"], row["config_version"], row["target"]): row["newest"]
            for row in self._session.all(query)
        }

    def list(
        self, ptk: int, *, limit: int | None = None, after: int | None = None
    ) -> tuple[ProfileRow, ...]:
        """Every profile of a PTK, oldest first; ``after`` is the last id of the page before."""
        page = self._session.page(_of(ptk), profiles.c.id, after, limit)
        return tuple(ProfileRow(**row) for row in page)

    def ask_again(self, ptk: int, config_version: int, target: float, *, at_ms: int) -> None:
        """Mark the newest profile of that key, if there is one, as one to be measured again: what
        it says stays, and ``renew_ms`` is added. No result.
        """
        last = self.latest(ptk, config_version, target)
        if last is None:
            return
        made_ms = last.samples.get("made_ms", last.created_ms)
        body = last.samples | {"renew_ms": at_ms, "made_ms": made_ms}
        self._put(ptk, config_version, target, last.levels, body, last.source, at_ms=at_ms)

    def _put(
        self,
        ptk: int,
        config_version: int,
        target: float,
        levels: object,
        samples: object,
        source: str,
        *,
        at_ms: int | None = None,
    ) -> ProfileRow:
        """Add a profile; what the newest of its key says already is not added again. ``levels`` and
        ``samples`` are JSON values, ``source`` a word for where they come from.
        """
        check_whole(config_version, "config_version")
        check_real(target, "target")
        values = {
            "levels": check_json(levels, "levels"),
            "samples": check_json(samples, "samples"),
            "source": check_name(source, "source"),
        }
        self._ptks.config(ptk, config_version)
        profile = self.latest(ptk, config_version, target)
        if profile is not None:
            same = (profile.levels, profile.samples) == (
                json.loads(values["levels"]),
                json.loads(values["samples"]),
            )
            if same and profile.source == source:
                return profile
        key = {"ptk": ptk, "config_version": config_version, "target": float(target)}
        at = check_whole_or_none(at_ms, "at_ms")
        row = self._session.one(
            sa.select(profiles).where(
                profiles.c.id == self._session.insert(profiles, created_ms=at, **key, **values)
            )
        )
        assert row is not None
        return ProfileRow(**row)


class ProfileResults(Profiles):
    """The same, and what windows measure: only in a transaction for results."""

    put = Profiles._put


def _of(ptk: int) -> sa.Select[tuple[object, ...]]:
    return sa.select(profiles).where(profiles.c.ptk == ptk)
