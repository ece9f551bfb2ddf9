"""Deliveries: notifications that are late or given up, and trying one again. Reason: ID_INVALID."""

from __future__ import annotations

from starlette.responses import Response

from ptkstore.console.page.page import Page, Visit

__all__ = ["PAGES"]

_ROWS = 25


def deliveries(visit: Visit) -> Response:
    """The page."""
    dead, token, tried = visit.asked("dead") == "1", visit.asked("from"), visit.asked("tried")
    page = visit.store.deliveries(dead_only=dead, limit=_ROWS, page_token=token)
    return visit.render(
        "deliveries.html",
        deliveries=page.deliveries,
        token=page.next_page_token,
        first=not token,
        dead=dead,
        tried=tried if tried.isascii() and tried.isdigit() and len(tried) < 19 else "",
        query={"dead": "1"} if dead else {},
    )


def retry(visit: Visit) -> Response:
    """Make one due now."""
    again = visit.store.retry_delivery(visit.form.get("delivery", ""))
    return visit.go("deliveries", tried=again.id)


PAGES = (
    Page(path="deliveries", view=deliveries, role="operator", under="operations"),
    Page(path="retry-delivery", view=retry, role="operator", method="POST", under="operations"),
)
