"""The plans that were made: the newest of a stream, of a window, a page of them, and how the newest
looks. Reasons: STREAM_UNKNOWN, PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptkstore.api.paging import PageRequest
from ptkstore.api.views import PlanView
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import draw_plan
from ptkstore.metadata import rows

__all__ = ["PlanPage", "StoredPlan", "page_of", "picture", "stored_plan"]


@dataclass(frozen=True)
class StoredPlan:
    """A plan as it was made, when, and the row that it can be drawn from."""

    view: PlanView
    created_ms: int | None
    row: rows.PlanRow


@dataclass(frozen=True)
class PlanPage:
    """A page of plans, oldest first, and the token of the next."""

    plans: tuple[StoredPlan, ...]
    next_page_token: str


def stored_plan(parts: Parts, stream: str, window: int | None = None) -> StoredPlan | None:
    """The newest plan of a stream, or of one of its windows; None where there is none (yet)."""
    parts.specs.named(stream)
    with parts.metadata.read() as tx:
        row = tx.plans.latest(stream, window=window)
    return None if row is None else _stored(row)


def picture(parts: Parts, plan: StoredPlan) -> str:
    """A plan as an SVG document."""
    return draw_plan(parts.specs.named(plan.view.stream), plan.row.body)


def page_of(parts: Parts, stream: str, *, limit: int, page_token: str) -> PlanPage:
    """The plans of a stream, oldest first."""
    parts.specs.named(stream)
    page = PageRequest(f"plans {stream}", limit, page_token)
    with parts.metadata.read() as tx:
        plans = tx.plans.list(stream, limit=page.size + 1, after=page.after)
    part, token = page.cut(plans, lambda row: row.id)
    return PlanPage(tuple(_stored(row) for row in part), token)


def _stored(row: rows.PlanRow) -> StoredPlan:
    return StoredPlan(PlanView.from_json(row.body["view"]), row.created_ms, row)
