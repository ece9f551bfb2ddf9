"""PTKs that are searched for: by words, stream and status, sorted, a page at a time. Reasons:
VALUE_INVALID, PAGE_INVALID.

Only what is searched and sorted by is read of all PTKs; the configurations and states are read of
one page.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from ptklib.errors import InvalidInput
from ptkstore.metadata import rows
from ptkstore.metadata.catalogue.ptks import STATUSES
from ptkstore.metadata.checks import check_choice
from ptkstore.metadata.database.store import Transaction

__all__ = ["MAX_SIZE", "ORDERS", "Found", "find_ptks"]

ORDERS = ("name", "stream", "kind", "status", "target")
MAX_SIZE = 1000
Found = tuple[tuple[rows.PtkRow, ...], dict[int, rows.StateRow], int, int, int]


def find_ptks(
    tx: Transaction,
    *,
    stream: str | None = None,
    status: str | None = None,
    find: str = "",
    sort: str = "name",
    page: int = 1,
    size: int = 25,
    sees: Callable[[str, str], bool] = lambda _ptk, _stream: True,
) -> Found:
    """A page of PTKs with their newest states; how many were found, how many there are, and the
    number of the page.
    """
    by = check_choice(sort.removeprefix("-"), "sort", ORDERS)
    if status is not None:
        check_choice(status, "status", STATUSES)
    if not 1 <= size <= MAX_SIZE or page < 1:
        raise InvalidInput(
            "PAGE_INVALID",
            f"size must be from 1 to {MAX_SIZE} and page from 1, got {size} and {page}",
        )
    every = [outline for outline in tx.ptks.outlines(stream) if sees(outline.name, outline.stream)]
    words = find.lower().split()
    outlines = [
        outline
        for outline in every
        if (status is None or outline.status == status) and (not words or _has(outline, words))
    ]
    outlines.sort(key=attrgetter(by, "name"), reverse=sort.startswith("-"))
    page = min(page, max(1, -(-len(outlines) // size)))
    part = tx.ptks.some([outline.id for outline in outlines[(page - 1) * size : page * size]])
    return part, tx.states.newest([ptk.id for ptk in part]), len(outlines), len(every), page


def _has(outline: rows.Outline, words: list[str]) -> bool:
    text = f"{outline.name} {outline.kind} {outline.stream}".lower()
    return all(word in text for word in words)
