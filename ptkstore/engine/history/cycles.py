"""The windows that were run, as people see them. Reasons: STREAM_UNKNOWN, PAGE_INVALID,
PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptkstore.api.paging import MAX_SIZE, PageRequest
from ptkstore.api.views import CycleView
from ptkstore.engine.parts import Parts
from ptkstore.engine.window.views import KnownCycles, cycle_views, shortened

__all__ = ["CyclePage", "CycleViews"]


@dataclass(frozen=True)
class CyclePage:
    """A page of cycles, oldest first, and the token of the next."""

    cycles: tuple[CycleView, ...]
    next_page_token: str


class CycleViews:
    """The cycles of a store. Remembers the newest that are finished, which are looked at again and
    again.
    """

    def __init__(self, parts: Parts) -> None:
        """Nothing is read yet."""
        self._parts = parts
        self._known = KnownCycles()

    def listed(
        self, stream: str, *, newest: int | None, most_trained: int | None
    ) -> list[CycleView]:
        """All cycles of a stream, or so many of the newest (up to 1,000); oldest first.

        With ``newest`` they can tell of ``most_trained`` PTKs each, the lost ones first, and count
        the others.
        """
        self._parts.specs.named(stream)
        with self._parts.metadata.read() as tx:
            if newest is None:
                return cycle_views(tx, tx.cycles.list(stream))
            views = [
                self._known.view(tx, row) for row in tx.cycles.newest(stream, min(newest, MAX_SIZE))
            ]
        if most_trained is None:
            return views
        return [shortened(view, max(0, most_trained)) for view in views]

    def page(self, stream: str, *, limit: int, page_token: str) -> CyclePage:
        """The cycles of a stream, oldest first."""
        self._parts.specs.named(stream)
        page = PageRequest(f"cycles {stream}", limit, page_token)
        with self._parts.metadata.read() as tx:
            rows = tx.cycles.list(stream, limit=page.size + 1, after=page.after)
            part, token = page.cut(rows, lambda row: row.id)
            return CyclePage(tuple(cycle_views(tx, part)), token)
