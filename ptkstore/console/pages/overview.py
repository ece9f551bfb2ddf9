"""Overview: every stream with its exposure, the budget that is left, its PTKs and its last cycle;
and what needs somebody.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import BudgetSummary, CycleView
from ptkstore.console.page.listing import listed
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.wording import duration, window_begins

__all__ = ["PAGES", "StreamCard"]

_FRESH_SECONDS = 3.0
_HEALTHY = "ACTIVE"
# Of the epsilon; below that a stream soon takes no more charges on what it holds.
_LITTLE = 0.1


@dataclass(frozen=True)
class StreamCard:
    """One stream as the overview shows it."""

    spec: StreamSpec
    budget: BudgetSummary
    ptks: Counter[str]
    cycle: CycleView | None

    @property
    def name(self) -> str:
        """Of the stream."""
        return self.spec.name

    @property
    def healthy(self) -> int:
        """PTKs that train."""
        return self.ptks[_HEALTHY]

    @property
    def span_seconds(self) -> float:
        """The event time that raw data is held of."""
        held = self.budget.exposure
        if held.oldest_ms is None or held.newest_ms is None:
            return 0.0
        return max(0, held.newest_ms - held.oldest_ms) / 1000

    @property
    def left_share(self) -> float | None:
        """The least that is left of the promise where records are held, as a share."""
        if self.budget.least_left is None:
            return None
        return min(1.0, self.budget.least_left / float(self.budget.epsilon))

    @property
    def cycle_begins(self) -> str:
        """The window of the last cycle."""
        return (
            window_begins(self.cycle.window, self.spec.window_seconds)
            if self.cycle is not None
            else ""
        )

    @property
    def published(self) -> int:
        """States of the last cycle."""
        return self.cycle.outcomes.get("PUBLISHED", 0) if self.cycle is not None else 0

    @property
    def lost(self) -> int:
        """Trainings of the last cycle that gave no state."""
        outcomes = self.cycle.outcomes if self.cycle is not None else {}
        return outcomes.get("TRAIN_LOST", 0) + outcomes.get("TRAIN_FAILED", 0)


@dataclass(frozen=True)
class Concern:
    """Something that needs somebody: what, why it matters, where to look."""

    level: str
    stream: str
    text: str
    why: str
    # Of the PTKs that it is about.
    status: str = ""


def overview(visit: Visit) -> Response:
    """The page."""
    cards = [
        _card(visit, spec)
        for spec in visit.session.remember("streams", _FRESH_SECONDS, visit.store.streams)
    ]
    concerns = [concern for card in cards for concern in _concerns(card)]
    orders: dict[str, Any] = {
        "name": lambda card: card.name,
        "held": lambda card: card.budget.exposure.dp_records,
        "left": lambda card: card.left_share if card.left_share is not None else 1.0,
    }
    listing = listed(
        visit, cards, anchor="streams", text=lambda card: card.name, orders=orders, size=12, keep=()
    )
    totals = {
        "records": sum(card.budget.exposure.dp_records for card in cards),
        "span": max((card.span_seconds for card in cards), default=0.0),
        "alive": sum(card.budget.blocks_alive for card in cards),
        "retired": sum(card.budget.blocks_retired for card in cards),
        "ptks": sum((card.ptks for card in cards), Counter[str]()),
    }
    return visit.render("overview.html", listing=listing, concerns=concerns, totals=totals)


def _card(visit: Visit, spec: StreamSpec) -> StreamCard:
    remember, store, name = visit.session.remember, visit.store, spec.name
    newest = remember(
        ("cycle", name), _FRESH_SECONDS, lambda: store.cycles(name, newest=1, most_trained=0)
    )
    return StreamCard(
        spec,
        remember(("budget", name), _FRESH_SECONDS, lambda: store.budget_summary(name)),
        remember(("ptks", name), _FRESH_SECONDS, lambda: Counter(store.count_ptks(name))),
        newest[-1] if newest else None,
    )


def _concerns(card: StreamCard) -> list[Concern]:
    concerns = []
    cycle = card.cycle
    if cycle is not None and cycle.shortfall:
        why = " ".join((cycle.shortfall, *cycle.changes))
        concerns.append(
            Concern("bad", card.name, "the last window published less than it should", why)
        )
    elif card.lost:
        why = "The budget they took stays spent; they are tried again in the next window."
        concerns.append(
            Concern("bad", card.name, f"{card.lost} trainings of the last cycle gave no state", why)
        )
    if card.ptks["REJECTED"]:
        why = "A rejected PTK never trains. The plan says why each was, and what would admit it."
        count = card.ptks["REJECTED"]
        concerns.append(
            Concern(
                "fair",
                card.name,
                f"{count} PTK{'s' if count > 1 else ''} rejected",
                why,
                status="REJECTED",
            )
        )
    if card.ptks["WAITING"]:
        count = card.ptks["WAITING"]
        why = (
            "It trains once its profile is known or its turn comes: its page says what it waits for. "
            "Windows must be complete and large enough."
        )
        concerns.append(
            Concern(
                "fair",
                card.name,
                f"{count} PTK{'s wait' if count > 1 else ' waits'}",
                why,
                status="WAITING",
            )
        )
    spans = card.spec.window_seconds + card.spec.lateness_seconds + 2 * card.spec.block_seconds
    if card.span_seconds > spans:
        text = f"holds raw data of {duration(card.span_seconds)}, more than its window of {duration(card.spec.window_seconds)}"
        why = "Windows that are complete have not run. Raw data is held until they do: run them, or see why they cannot."
        concerns.append(Concern("fair", card.name, text, why))
    if card.left_share is not None and card.left_share < _LITTLE:
        why = "Blocks without budget are retired and their data is not used any more. New data brings new budget."
        concerns.append(Concern("fair", card.name, "little budget is left on what is held", why))
    return concerns


PAGES = (Page(path="overview", view=overview, label="Overview"),)
