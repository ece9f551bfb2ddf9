"""Searches that look at so many rows and no more: where the next page goes on."""

from __future__ import annotations

from ptkstore.api.paging import PageRequest

__all__ = ["further"]


def further(page: PageRequest, token: str, first: int) -> str:
    """The token of the next page: after the rows of this one, else further back than the search
    went.
    """
    return token or (page.token(first) if first > 1 else "")
