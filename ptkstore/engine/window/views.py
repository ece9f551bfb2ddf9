"""Cycles of windows as people see them, from their rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from ptkstore.api.views import CycleView
from ptkstore.engine.steps.of_window import Done
from ptkstore.engine.window.shortfall import PUBLISHED, lines_of, shortfall_of
from ptkstore.metadata import Transaction, rows
from ptkstore.metadata.catalogue.cycles import RUNNING

__all__ = ["KnownCycles", "cycle_view", "cycle_views", "shortened"]


class KnownCycles:
    """Remembers the newest cycles that are finished: these never change, and are long with many
    PTKs. Belongs to whoever shows the same ones again and again.
    """

    def __init__(self, most: int = 16) -> None:
        """Empty; at most so many are kept."""
        self._most = most
        self._views: dict[int, CycleView] = {}

    def view(self, tx: Transaction, cycle: rows.CycleRow) -> CycleView:
        """`cycle_view`, looked up where it is known."""
        if cycle.status == RUNNING:
            return cycle_view(tx, cycle.id)
        view = self._views.get(cycle.id)
        if view is None:
            view = self._views[cycle.id] = cycle_view(tx, cycle.id)
            while len(self._views) > self._most:
                self._views.pop(min(self._views, default=0), None)
        return view


def shortened(cycle: CycleView, most: int) -> CycleView:
    """A cycle that tells of so many PTKs, those without a new version first, and counts all."""
    lost = [line for line in cycle.trained if line.outcome != PUBLISHED]
    rest = (line for line in cycle.trained if line.outcome == PUBLISHED)
    told = (*lost[:most], *islice(rest, max(0, most - len(lost))))
    return replace(
        cycle,
        trained=told,
        outcomes=dict(sorted(Counter(line.outcome for line in cycle.trained).items())),
    )


def cycle_view(tx: Transaction, cycle: int) -> CycleView:
    """A cycle for people, from its rows."""
    return cycle_views(tx, [tx.cycles.get(cycle)])[0]


def cycle_views(tx: Transaction, cycles: Sequence[rows.CycleRow]) -> list[CycleView]:
    """Cycles for people, all of them at once: a page may have a thousand."""
    written = tx.cycles.main_steps_of([cycle.id for cycle in cycles])
    return [_view(cycle, Done.of(written.get(cycle.id, ()))) for cycle in cycles]


def _view(row: rows.CycleRow, done: Done) -> CycleView:
    short = shortfall_of(done)
    return CycleView(
        stream=row.stream,
        window=row.window,
        status=row.status,
        steps=done.names,
        plan_status=str(done.view.get("status", "")),
        dp_records=done.sealed.dp_records if done.sealed is not None else 0,
        trained=lines_of(done),
        shortfall=short.text if short is not None else "",
        changes=short.changes if short is not None else (),
    )
