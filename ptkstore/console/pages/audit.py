"""Audit: who asked the server for what and what was decided; searched, turned from the newest on,
and as a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import islice

from starlette.responses import Response

from ptkstore.api.moments import utc_text
from ptkstore.api.views import AuditView
from ptkstore.console.page.listing import every
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.spreadsheet import csv_file

__all__ = ["PAGES", "AuditLine", "entry_line"]

_ROWS = 50
_CSV_ROWS = 10_000
_PAGE = 1000


@dataclass(frozen=True)
class AuditLine:
    """One entry as the page shows it. ``at`` is in UTC, to the second."""

    number: int
    at: str
    who: str
    what: str
    subject: str
    outcome: str
    times: int


def entry_line(audit_view: AuditView) -> AuditLine:
    """An entry for people: the RPC without the name of our package."""
    at = "–" if audit_view.at_ms is None else utc_text(audit_view.at_ms, "second")
    what = audit_view.what.removeprefix("/ptkstore.v1.").replace("/", " ")
    return AuditLine(
        audit_view.number,
        at,
        audit_view.who,
        what,
        audit_view.subject,
        audit_view.outcome,
        audit_view.times,
    )


def audit(visit: Visit) -> Response:
    """The page."""
    find, changes, token = visit.searched(), visit.asked("changes") == "1", visit.asked("from")
    page = visit.store.audit_entries(find=find, changes_only=changes, limit=_ROWS, page_token=token)
    query = {
        name: text for name, text in (("find", find), ("changes", "1" if changes else "")) if text
    }
    return visit.render(
        "audit.html",
        entries=[entry_line(entry) for entry in page.entries],
        token=page.next_page_token,
        first=not token,
        find=find,
        changes=changes,
        query=query,
    )


def audit_csv(visit: Visit) -> Response:
    """The newest entries that match, up to 10,000."""
    columns = ("number", "time_utc", "who", "what", "subject", "outcome", "times")
    find, changes = visit.searched(), visit.asked("changes") == "1"

    def page_of(token: str) -> tuple[Sequence[AuditView], str]:
        page = visit.store.audit_entries(
            find=find, changes_only=changes, limit=_PAGE, page_token=token
        )
        return page.entries, page.next_page_token

    lines = map(entry_line, islice(every(page_of), _CSV_ROWS))
    return csv_file("audit", columns, (astuple(line) for line in lines))


PAGES = (
    Page(path="audit", view=audit, role="operator", under="operations"),
    Page(path="audit.csv", view=audit_csv, role="operator"),
)
