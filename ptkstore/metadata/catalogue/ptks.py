"""Registered PTKs: configuration with history, target, status.

Reasons: PTK_EXISTS, PTK_UNKNOWN, ETAG_STALE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from ptklib.errors import Refused
from ptkstore.metadata.catalogue.streams import Streams
from ptkstore.metadata.checks import (
    check_choice,
    check_json,
    check_name,
    check_real,
    check_text,
    check_whole,
    check_whole_or_none,
)
from ptkstore.metadata.rows import Outline, PtkRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import ptk_configs, ptks

__all__ = ["STATUSES", "Ptks"]

STATUSES = ("WAITING", "ACTIVE", "REJECTED", "RETIRED", "FAILED")

_SELECT = sa.select(ptks, ptk_configs.c.config).join(
    ptk_configs,
    sa.and_(ptk_configs.c.ptk == ptks.c.id, ptk_configs.c.config_version == ptks.c.config_version),
)


class Ptks:
    """The PTKs of the store. Every change adds one to ``etag``; a caller that gives the etag it saw
    is told ETAG_STALE, and nothing changes, when somebody was faster.
    """

    def __init__(self, session: MetadataSession, streams: Streams) -> None:
        """Work inside one transaction."""
        self._session = session
        self._streams = streams

    def create(
        self,
        name: str,
        stream: str,
        kind: str,
        config: object,
        target: float,
        train_every: int,
        *,
        at_ms: int | None = None,
        over: str = "all",
    ) -> PtkRow:
        """Add a PTK, WAITING, with config version 1 and etag 1. ``train_every`` counts windows, and
        ``over`` says of which its states are, for good. PTK_EXISTS when the name is taken in any stream.
        """
        check_name(name, "a PTK's name")
        check_name(kind, "a PTK's kind")
        text = check_json(config, "a PTK's config")
        values = {
            "target": check_real(target, "target"),
            "train_every": check_whole(train_every, "train_every", at_least=1),
            "over": check_text(over, "over"),
            "created_ms": check_whole_or_none(at_ms, "at_ms"),
        }
        self._streams.get(stream)
        if self._find(ptks.c.name == name) is not None:
            raise Refused("PTK_EXISTS", f"PTK {name!r} exists already", ptk=name)
        start = {
            "config_version": 1,
            "etag": 1,
            "status": "WAITING",
            "reason": "",
            "updated_ms": at_ms,
        }
        ptk = self._session.insert(ptks, name=name, stream=stream, kind=kind, **start, **values)
        self._session.insert(ptk_configs, ptk=ptk, config_version=1, config=text)
        return self.get(ptk)

    def get(self, ptk: int) -> PtkRow:
        """The PTK of that id, or PTK_UNKNOWN."""
        return self._known(self._find(ptks.c.id == ptk), ptk)

    def named(self, name: str) -> PtkRow:
        """The PTK of that name, or PTK_UNKNOWN."""
        return self._known(self._find(ptks.c.name == name), name)

    def etag_of(self, name: str) -> tuple[int, int] | None:
        """Id and etag of the PTK of that name, if there is one."""
        rows = self._session.tuples(sa.select(ptks.c.id, ptks.c.etag).where(ptks.c.name == name))
        return next(((row[0], row[1]) for row in rows), None)

    def require(self, ptks_wanted: Iterable[int]) -> None:
        """PTK_UNKNOWN unless there is a PTK of each of these ids."""
        wanted = list(ptks_wanted)
        rows = self._session.all(sa.select(ptks.c.id).where(ptks.c.id.in_(wanted)))
        for missing in set(wanted) - {row["id"] for row in rows}:
            self._known(None, missing)

    def list(
        self,
        stream: str | None = None,
        *,
        status: str | None = None,
        statuses: Sequence[str] = (),
        limit: int | None = None,
        after: int | None = None,
    ) -> tuple[PtkRow, ...]:
        """PTKs by id, of one stream and status, or some statuses, if given; ``after`` is the last
        id of the page before.
        """
        query = _SELECT
        if stream is not None:
            query = query.where(ptks.c.stream == stream)
        if status is not None:
            query = query.where(ptks.c.status == check_choice(status, "status", STATUSES))
        if statuses:
            query = query.where(ptks.c.status.in_(statuses))
        page = self._session.page(query, ptks.c.id, after, limit)
        return tuple(PtkRow(**row) for row in page)

    def outlines(self, stream: str | None = None) -> Sequence[Outline]:
        """What PTKs are searched and sorted by, without their configurations: a hundredth of the
        work of `list`.
        """
        query = sa.select(*(ptks.c[name] for name in Outline._fields))
        rows = self._session.tuples(
            query.where(ptks.c.stream == stream) if stream is not None else query
        )
        return [Outline(*row) for row in rows]

    def standing(self, stream: str, statuses: Sequence[str]) -> tuple[tuple[int, int, float], ...]:
        """Id, configuration's version and target of the PTKs of a stream with these statuses, by
        id: what plans depend on.
        """
        query = (
            sa.select(ptks.c.id, ptks.c.config_version, ptks.c.target)
            .where(ptks.c.stream == stream, ptks.c.status.in_(statuses))
            .order_by(ptks.c.id)
        )
        return tuple((row[0], row[1], row[2]) for row in self._session.tuples(query))

    def suggesting(self, key: str) -> tuple[PtkRow, ...]:
        """The REJECTED PTKs whose suggestion may have this key, by id."""
        text = sa.type_coerce(ptks.c.suggestion, sa.Text)
        query = _SELECT.where(
            ptks.c.status == "REJECTED", text.contains(f'"{key}"', autoescape=True)
        )
        return tuple(PtkRow(**row) for row in self._session.all(query.order_by(ptks.c.id)))

    def some(self, wanted: Sequence[int]) -> tuple[PtkRow, ...]:
        """The PTKs of these ids, in their order; those that there are not are left out."""
        ptk_rows = {
            row["id"]: PtkRow(**row)
            for row in self._session.all(_SELECT.where(ptks.c.id.in_(wanted)))
        }
        return tuple(ptk_rows[ptk_id] for ptk_id in wanted if ptk_id in ptk_rows)

    def configs(self, ptk: int, limit: int) -> tuple[tuple[int, Any], ...]:
        """The newest configurations with their versions, newest first."""
        query = (
            sa.select(ptk_configs)
            .where(ptk_configs.c.ptk == ptk)
            .order_by(ptk_configs.c.config_version.desc())
        )
        return tuple(
            (row["config_version"], row["config"]) for row in self._session.all(query, limit)
        )

    def count_by_status(self, stream: str | None = None) -> dict[str, int]:
        """How many PTKs have each status; those that there are none of are left out."""
        query = (
            sa.select(ptks.c.status, sa.func.count().label("count"))
            .group_by(ptks.c.status)
            .order_by(ptks.c.status)
        )
        if stream is not None:
            query = query.where(ptks.c.stream == stream)
        return {row["status"]: row["count"] for row in self._session.all(query)}

    def config(self, ptk: int, config_version: int) -> Any:
        """The configuration as it was in that version, or PTK_UNKNOWN."""
        here = sa.and_(ptk_configs.c.ptk == ptk, ptk_configs.c.config_version == config_version)
        row = self._session.one(sa.select(ptk_configs.c.config).where(here))
        if row is None:
            raise Refused(
                "PTK_UNKNOWN", f"PTK {ptk} has no config version {config_version}", ptk=ptk
            )
        return row["config"]

    def update_config(
        self, ptk: int, config: object, *, etag: int, at_ms: int | None = None
    ) -> PtkRow:
        """Give the PTK a new configuration, one version up.

        The old ones stay. The status is the caller's business.
        """
        text = check_json(config, "a PTK's config")
        version = self._seen(ptk, etag).config_version + 1
        self._session.insert(ptk_configs, ptk=ptk, config_version=version, config=text)
        return self._change(ptk, at_ms, config_version=version)

    def update_target(
        self, ptk: int, target: float, *, etag: int, at_ms: int | None = None
    ) -> PtkRow:
        """Give the PTK a new target."""
        value = check_real(target, "target")
        self._seen(ptk, etag)
        return self._change(ptk, at_ms, target=value)

    def set_status(
        self,
        ptk: int,
        status: str,
        *,
        reason: str = "",
        suggestion: object = None,
        etag: int | None = None,
        at_ms: int | None = None,
    ) -> PtkRow:
        """Set status, the reason for people and a suggestion (any JSON value, None for none).
        Without ``etag``: whatever the row is by now, for the engine's own decisions.
        """
        check_choice(status, "status", STATUSES)
        check_text(reason, "reason")
        text = None if suggestion is None else check_json(suggestion, "suggestion")
        self._seen(ptk, etag)
        return self._change(ptk, at_ms, status=status, reason=reason, suggestion=text)

    def _seen(self, ptk: int, etag: int | None) -> PtkRow:
        ptk_row = self.get(ptk)
        if etag is not None and ptk_row.etag != etag:
            raise Refused(
                "ETAG_STALE",
                f"PTK {ptk_row.name!r} was changed by somebody else: read it again",
                ptk=ptk_row.name,
                asked=etag,
                found=ptk_row.etag,
            )
        return ptk_row

    def _change(self, ptk: int, at_ms: int | None, **values: object) -> PtkRow:
        check_whole_or_none(at_ms, "at_ms")
        update = (
            ptks.update()
            .where(ptks.c.id == ptk)
            .values(etag=ptks.c.etag + 1, updated_ms=at_ms, **values)
        )
        self._session.execute(update)
        return self.get(ptk)

    def _find(self, where: sa.ColumnElement[bool]) -> PtkRow | None:
        row = self._session.one(_SELECT.where(where))
        return None if row is None else PtkRow(**row)

    def _known(self, row: PtkRow | None, asked: int | str) -> PtkRow:
        if row is None:
            raise Refused("PTK_UNKNOWN", f"there is no PTK {asked!r}: register it first", ptk=asked)
        return row
