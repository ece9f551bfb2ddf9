"""Long lists: a page of rows at a time, searched and sorted by the query of the URL (``find``,
``sort``, ``page``).

Works without any script, and every view of a list has an address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ptkstore.console.page.page import Visit

__all__ = ["Listing", "every", "listed", "page_number", "sort_of"]

Row = TypeVar("Row")


@dataclass(frozen=True)
class Listing(Generic[Row]):
    """One page of a list.

    ``query`` is what links to its other pages keep; ``sort`` begins with "-" for downwards.
    """

    path: str
    anchor: str
    rows: tuple[Row, ...]
    total: int
    found: int
    page: int
    pages: int
    find: str
    sort: str
    query: Mapping[str, str]
    first: int

    def sorting(self, name: str) -> str:
        """How the list is sorted by a column, as aria-sort says it."""
        return {name: "ascending", f"-{name}": "descending"}.get(self.sort, "none")

    def toggled(self, name: str) -> str:
        """What a click on the heading of a column sorts by."""
        return f"-{name}" if self.sort == name else name


def listed(
    visit: Visit,
    rows: Sequence[Row],
    *,
    anchor: str,
    text: Callable[[Row], str],
    orders: Mapping[str, Callable[[Row], Any]],
    size: int = 25,
    keep: Sequence[str] = ("stream",),
) -> Listing[Row]:
    """The part of some rows that the URL asks for.

    ``text`` is what is searched; the first of ``orders`` is the usual one.
    """
    find = visit.searched()
    words = find.lower().split()
    matches = (
        [row for row in rows if all(word in text(row).lower() for word in words)]
        if words
        else list(rows)
    )
    sort = sort_of(visit, tuple(orders))
    matches.sort(key=orders[sort.removeprefix("-")], reverse=sort.startswith("-"))
    pages = max(1, -(-len(matches) // size))
    page = min(pages, page_number(visit))
    begin = (page - 1) * size
    query = {name: visit.asked(name) for name in keep if visit.asked(name)}
    part = tuple(matches[begin : begin + size])
    return Listing(
        visit.page.path,
        anchor,
        part,
        len(rows),
        len(matches),
        page,
        pages,
        find,
        sort,
        query,
        begin + 1 if part else 0,
    )


def sort_of(visit: Visit, orders: Sequence[str]) -> str:
    """What the URL asks to sort by, or the first of ``orders``; "-" in front for downwards."""
    sort = visit.asked("sort")
    return sort if sort.removeprefix("-") in orders else orders[0]


def page_number(visit: Visit) -> int:
    """The page that the URL asks for, from 1 on."""
    asked = visit.asked("page", "1")
    return max(1, int(asked)) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 1


def every(page_of: Callable[[str], tuple[Sequence[Row], str]]) -> Iterator[Row]:
    """The rows of all pages, each read when it is its turn. ``page_of`` gives the page of a token,
    empty for the first, and the next token.
    """
    token = ""
    while True:
        rows, token = page_of(token)
        yield from rows
        if not token:
            return
