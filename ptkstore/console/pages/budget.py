"""Budget: the ledger as it is. What is spent at which blocks and tags, what is left and until when,
who spent it, and every entry of the book. All of it public: the book never depends on records.

Reasons: PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import BlockLine, BudgetSummary, ChargeLine, LedgerMap, PlanView
from ptkstore.console.page.listing import every
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.spreadsheet import csv_stream
from ptkstore.console.page.wording import amount, moment, percent, whole
from ptkstore.console.pages.plan import chosen_stream, newest_plan
from ptkstore.drawing.ledger_svg import STEPS, burn_down, heat_map

__all__ = ["PAGES", "Forecast", "forecasts"]

_FRESH_SECONDS = 3.0
_ROWS = 15
_TAGS = 1 << 64
_PAGE = 1000
_SPANS = (96, 480, 960)
_TO_COME = 2
_FEW = 12
_PURPOSES = {
    "count": "counts of blocks",
    "profile": "profiles",
    "training": "training",
    "validation": "validation",
    "other": "other",
}


@dataclass(frozen=True)
class Forecast:
    """A window: what is left of its blocks now, after the plan has run on it, and when they are
    closed.
    """

    begins_ms: int
    blocks: int | None
    left: float
    after: float | None
    closes_ms: int


@dataclass(frozen=True)
class LedgerLine:
    """An entry of the ledger for people."""

    number: int
    kind: str
    who: str
    what: str
    where: str
    at: str


def budget(visit: Visit) -> Response:
    """The page of one stream; without a name, of the first."""
    remember, store = visit.session.remember, visit.store
    streams = remember("streams", _FRESH_SECONDS, store.streams)
    if not streams:
        return visit.render("budget.html", streams=(), spec=None)
    spec = chosen_stream(visit, streams)
    span = int(visit.asked("span")) if visit.asked("span") in map(str, _SPANS) else _SPANS[0]
    begin = _whole(visit.asked("begin"))
    summary = remember(
        ("budget", spec.name), _FRESH_SECONDS, lambda: store.budget_summary(spec.name)
    )
    book = remember(
        ("book", spec.name, begin, span),
        _FRESH_SECONDS,
        lambda: store.ledger_map(spec.name, begin=begin, count=span),
    )
    find, blocks = map(visit.searched, ("find", "blocks"))
    entries = store.charges(
        spec.name,
        limit=_ROWS,
        page_token=visit.asked("after"),
        newest_first=True,
        find=find,
        blocks=blocks,
    )
    return visit.render(
        "budget.html",
        streams=streams,
        spec=spec,
        budget=summary,
        book=book,
        span=span,
        spans=_SPANS,
        older=max(0, book.begin - span) if book.begin > 0 else None,
        newer=book.begin + span if book.begin + book.count < book.blocks else None,
        heat=heat_map(book),
        steps=STEPS,
        wide=max((column.blocks for column in book.columns), default=1),
        flat=any(column.flat for column in book.columns),
        burn=burn_down(book),
        forecasts=forecasts(spec, summary, book, newest_plan(visit, spec.name)),
        spenders=book.spenders[:_FEW],
        purposes=[
            (_PURPOSES.get(purpose.purpose, purpose.purpose), purpose.charges, purpose.part)
            for purpose in book.purposes
        ],
        charges=sum(purpose.charges for purpose in book.purposes),
        find=find,
        blocks=blocks,
        after=visit.asked("after"),
        entries=[entry_line(charge) for charge in entries.charges],
        next=entries.next_page_token,
    )


def ledger_csv(visit: Visit) -> Response:
    """All entries that the search finds, newest first, sent page by page as they are read."""
    stream = visit.store.stream(visit.asked("stream")).name
    find, blocks = map(visit.searched, ("find", "blocks"))

    def page_of(token: str) -> tuple[Sequence[ChargeLine], str]:
        page = visit.store.charges(
            stream, limit=_PAGE, page_token=token, newest_first=True, find=find, blocks=blocks
        )
        return page.charges, page.next_page_token

    def rows() -> Iterator[tuple[object, ...]]:
        for charge in every(page_of):
            line = entry_line(charge)
            yield line.number, line.kind, charge.key, line.what, line.where, line.at

    return csv_stream(f"ledger-{stream}", ("number", "kind", "key", "cost", "slice", "at"), rows())


def blocks_csv(visit: Visit) -> Response:
    """All blocks with what is left of each, oldest first, sent page by page as they are read."""
    stream = visit.store.stream(visit.asked("stream")).name

    def page_of(token: str) -> tuple[Sequence[BlockLine], str]:
        page = visit.store.blocks(stream, limit=_PAGE, page_token=token)
        return page.blocks, page.next_page_token

    rows = (
        (block.name, block.window, block.status, block.dp_records, block.left, block.retired)
        for block in every(page_of)
    )
    return csv_stream(
        f"blocks-{stream}", ("block", "window", "status", "dp_records", "left", "closed"), rows
    )


def forecasts(
    spec: StreamSpec, told: BudgetSummary, book: LedgerMap, plan: PlanView | None
) -> list[Forecast]:
    """The windows that live, and the next ones: their blocks are closed once their window has run,
    which is when it is complete. What the plan takes is its fullest partition.
    """
    takes = (
        max((partition.used for partition in plan.partitions), default=None)
        if plan is not None
        else None
    )
    alive: dict[int, list[Any]] = defaultdict(list)
    for column in book.columns:
        if column.retired < column.blocks:
            alive[column.window].append(column)
    held = told.exposure.oldest_ms
    spans_ms = spec.window_seconds * 1000
    newest = max([*alive, *([held // spans_ms] if held is not None else [])], default=None)
    if newest is None and book.columns:
        newest = max(column.window for column in book.columns)
    windows = (
        sorted(alive) if newest is None else sorted({*alive, *range(newest, newest + 1 + _TO_COME)})
    )
    outlook = []
    for window in windows[:_FEW]:
        left = (
            1 - max((max(alive_column.shares) for alive_column in alive[window]), default=0.0)
            if window in alive
            else 1.0
        )
        outlook.append(
            Forecast(
                begins_ms=window * spans_ms,
                blocks=sum(
                    alive_column.blocks - alive_column.retired for alive_column in alive[window]
                )
                if window in alive
                else None,
                left=left,
                after=max(0.0, left - takes) if takes is not None else None,
                closes_ms=(window + 1) * spans_ms + spec.lateness_seconds * 1000,
            )
        )
    return outlook


def entry_line(charge: ChargeLine) -> LedgerLine:
    """An entry as people read it."""
    entry = charge.entry
    at_ms = entry.get("at_ms", entry.get("spent_at_ms"))
    return LedgerLine(
        number=charge.number,
        kind=charge.kind,
        who=charge.key or "–",
        what=_cost(entry["cost"]) if "cost" in entry else str(entry.get("why", "")),
        where=_where(entry),
        at=moment(at_ms) if at_ms is not None else "",
    )


def _cost(cost: dict[str, Any]) -> str:
    """What was charged: its epsilon where it has one, else its parameters."""
    kind = str(cost.get("kind", "")).replace("_", " ")
    if "epsilon" in cost:
        delta = f", δ = {amount(cost['delta'])}" if cost.get("delta", "0") not in ("0", 0) else ""
        return f"ε = {amount(cost['epsilon'])}{delta} ({kind})"
    if "scale" in cost and "sensitivity" in cost:
        return (
            f"ε = {amount(float(Fraction(cost['sensitivity']) / Fraction(cost['scale'])))} ({kind})"
        )
    rest = ", ".join(
        f"{name} = {value}"
        for name, value in cost.items()
        if name != "kind" and not isinstance(value, (list, dict))
    )
    return f"{kind}: {rest}" if rest else kind


def _where(entry: dict[str, Any]) -> str:
    """How many blocks, and how much of their tags."""
    if "runs" in entry:
        return f"{whole(sum(count for _, count in entry['runs']))} blocks"
    if "slices" not in entry:
        return ""
    count = max((sum(number for _, number in runs) for runs, _, _ in entry["slices"]), default=0)
    share = sum((stop - start) / _TAGS for _, start, stop in entry["slices"])
    tags = "all tags" if share >= 1 else f"{percent(share, 1)} of the tags"
    return f"{whole(count)} block{'' if count == 1 else 's'}, {tags}"


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


PAGES = (
    Page(path="budget", view=budget, label="Budget"),
    Page(path="ledger.csv", view=ledger_csv),
    Page(path="blocks.csv", view=blocks_csv),
)
