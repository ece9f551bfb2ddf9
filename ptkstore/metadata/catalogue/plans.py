"""Plans, one row for each that was made. Reason: PLAN_UNKNOWN."""

from __future__ import annotations

import sqlalchemy as sa

from ptklib.errors import Refused
from ptkstore.metadata.catalogue.streams import Streams
from ptkstore.metadata.checks import check_json, check_name, check_whole, check_whole_or_none
from ptkstore.metadata.rows import PlanRow
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import plans

__all__ = ["PlanResults", "Plans"]


class Plans:
    """The plans of the streams."""

    def __init__(self, session: MetadataSession, streams: Streams) -> None:
        """Work inside one transaction."""
        self._session = session
        self._streams = streams

    def get(self, plan: int) -> PlanRow:
        """The plan of that id, or PLAN_UNKNOWN."""
        row = self._session.one(sa.select(plans).where(plans.c.id == plan))
        if row is None:
            raise Refused("PLAN_UNKNOWN", f"there is no plan {plan!r}", plan=plan)
        return PlanRow(**row)

    def latest(
        self, stream: str, *, status: str | None = None, window: int | None = None
    ) -> PlanRow | None:
        """The newest plan of a stream, with that status and of that window if given; or None."""
        query = sa.select(plans).where(plans.c.stream == stream).order_by(plans.c.id.desc())
        if status is not None:
            query = query.where(plans.c.status == status)
        if window is not None:
            query = query.where(plans.c.window == check_whole(window, "window"))
        row = self._session.one(query)
        return None if row is None else PlanRow(**row)

    def list(
        self, stream: str, *, limit: int | None = None, after: int | None = None
    ) -> tuple[PlanRow, ...]:
        """The plans of a stream, oldest first; ``after`` is the last id of the page before."""
        page = self._session.page(
            sa.select(plans).where(plans.c.stream == stream), plans.c.id, after, limit
        )
        return tuple(PlanRow(**row) for row in page)


class PlanResults(Plans):
    """The same, and what windows write: only in a transaction for results."""

    def put(
        self, stream: str, window: int, body: object, status: str, *, at_ms: int | None = None
    ) -> int:
        """Add a plan and return its id. ``body`` is any JSON value, ``status`` the engine's word
        for it. Not idempotent: write it in the same transaction as the step that says it was
        planned.
        """
        values = {
            "window": check_whole(window, "window"),
            "body": check_json(body, "a plan"),
            "status": check_name(status, "status"),
            "created_ms": check_whole_or_none(at_ms, "at_ms"),
        }
        self._streams.get(stream)
        return self._session.insert(plans, stream=stream, **values)
