"""PTKs: all of them, searched, sorted, by stream and status."""

from __future__ import annotations

from starlette.responses import Response

from ptkstore.api.views import PtkView
from ptkstore.console.page.listing import Listing, page_number, sort_of
from ptkstore.console.page.page import Page, Visit

__all__ = ["PAGES"]

_FRESH_SECONDS = 3.0
_ROWS = 25
_STATUSES = ("ACTIVE", "WAITING", "REJECTED", "FAILED", "RETIRED")
_ORDERS = ("name", "stream", "kind", "status", "target")


def ptks(visit: Visit) -> Response:
    """The page. The store searches and sorts: it may have thousands."""
    streams = visit.session.remember("streams", _FRESH_SECONDS, visit.store.streams)
    stream = visit.asked("stream")
    status = visit.asked("status") if visit.asked("status") in _STATUSES else ""
    counts = visit.session.remember(
        ("ptk counts", stream), _FRESH_SECONDS, lambda: visit.store.count_ptks(stream or None)
    )
    listing = _listing(visit, stream, status)
    return visit.render(
        "ptks.html",
        streams=streams,
        stream=stream,
        chosen=status,
        statuses=_STATUSES,
        counts=counts,
        listing=listing,
    )


def _listing(visit: Visit, stream: str, status: str) -> Listing[PtkView]:
    find, sort = visit.searched(), sort_of(visit, _ORDERS)
    ptk_page = visit.store.search_ptks(
        stream or None,
        status=status or None,
        find=find,
        sort=sort,
        page=page_number(visit),
        size=_ROWS,
    )
    return Listing(
        path=visit.page.path,
        anchor="ptks",
        rows=ptk_page.ptks,
        total=ptk_page.total,
        found=ptk_page.found,
        page=ptk_page.page,
        pages=max(1, -(-ptk_page.found // _ROWS)),
        find=find,
        sort=sort,
        query={name: value for name, value in (("stream", stream), ("status", status)) if value},
        first=(ptk_page.page - 1) * _ROWS + 1 if ptk_page.ptks else 0,
    )


PAGES = (Page(path="ptks", view=ptks, label="PTKs"),)
