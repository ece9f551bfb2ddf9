"""What a stream promises and what is left of it: blocks, entries of the ledger, and the ledger as a
map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptkstore.api.views.view import View

__all__ = [
    "BlockLine",
    "BlockPage",
    "BudgetSummary",
    "BudgetView",
    "ChargeLine",
    "ChargePage",
    "ExposureView",
    "LedgerColumn",
    "LedgerMap",
    "Spender",
]


@dataclass(frozen=True)
class BlockLine(View):
    """A block as the ledger and the vault have it.

    ``dp_records`` is its one DP count; ``left`` for one more pure charge.
    """

    name: str
    window: int
    status: str
    dp_records: int | None
    left: float
    retired: str | None


@dataclass(frozen=True)
class ExposureView(View):
    """Raw data held now: span of event time, blocks, DP number of records.

    Nothing else in the store is raw.
    """

    oldest_ms: int | None
    newest_ms: int | None
    blocks: int
    dp_records: int


@dataclass(frozen=True)
class BudgetView(View):
    """What a stream promises and what is left of it."""

    stream: str
    unit: str
    epsilon: str
    delta: str
    composition: str
    exposure: ExposureView
    blocks: tuple[BlockLine, ...]


@dataclass(frozen=True)
class BudgetSummary(View):
    """What a stream promises, what raw data it holds now, and how many blocks it has; without the
    blocks.

    ``least_left`` and ``most_left`` are what one more pure charge could have on the blocks whose
    records are still held; None where there is none.
    """

    stream: str
    unit: str
    epsilon: str
    delta: str
    composition: str
    exposure: ExposureView
    blocks_alive: int
    blocks_retired: int
    least_left: float | None = None
    most_left: float | None = None


@dataclass(frozen=True)
class BlockPage(View):
    """Some blocks of a stream, oldest first; ``next_page_token`` is empty after the last page."""

    blocks: tuple[BlockLine, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class ChargeLine(View):
    """One entry of the ledger about a stream: reserve, spend, release or retire. ``key`` says who
    asked, such as ``cycle-3/hour-speed``; ``number`` counts all entries of the book.
    """

    number: int
    kind: str
    key: str
    entry: dict[str, Any]


@dataclass(frozen=True)
class ChargePage(View):
    """Some entries of the ledger about a stream, oldest first; ``next_page_token`` is empty after
    the last page.
    """

    charges: tuple[ChargeLine, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class LedgerColumn(View):
    """One block, or several side by side told by the largest loss of them.

    ``shares`` are of the stream's epsilon, at each of equally long ranges of tags; ``mean`` is over
    all tags and blocks; ``flat`` says that a closed block in it is told by its highest loss alone,
    for that is all the book keeps of it.
    """

    first: str
    last: str
    window: int
    blocks: int
    retired: int
    shares: tuple[float, ...]
    mean: float
    flat: bool


@dataclass(frozen=True)
class Spender(View):
    """Who was charged, for what, how often. ``most`` is the largest share of the stream's epsilon
    that one charge took at a point, ``part`` is of all that was spent over blocks and tags.
    """

    who: str
    purpose: str
    charges: int
    most: float
    part: float


@dataclass(frozen=True)
class LedgerMap(View):
    """The ledger at ``count`` of the stream's ``blocks`` from place ``begin`` on. Closed blocks are
    put together from the newest ``entries`` of the book, back to number ``oldest_entry``.

    ``spenders`` are those of the ``holders`` who spent most over all time, ``purposes`` what all of
    them spent it for.
    """

    stream: str
    begin: int
    count: int
    blocks: int
    columns: tuple[LedgerColumn, ...]
    spenders: tuple[Spender, ...]
    entries: int
    oldest_entry: int
    purposes: tuple[Spender, ...] = ()
    holders: int = 0
