"""Who asked a server for what, newest first. Reasons: PAGE_INVALID, PAGE_TOKEN_INVALID."""

from __future__ import annotations

from ptkstore.api.paging import PageRequest
from ptkstore.api.permissions import CHANGING
from ptkstore.api.views import AuditPage, AuditView
from ptkstore.engine.history.searching import further
from ptkstore.engine.parts import Parts

__all__ = ["audit_entries"]


def audit_entries(
    parts: Parts, *, find: str, changes_only: bool, limit: int, page_token: str
) -> AuditPage:
    """Entries with all words of ``find``; with ``changes_only`` without what was only read."""
    page = PageRequest(f"audit {changes_only} {find}", limit, page_token)
    with parts.metadata.read() as tx:
        audits, first = tx.audit.search(
            find=find,
            what=CHANGING if changes_only else (),
            limit=page.size + 1,
            before=page.after,
        )
    part, token = page.cut(audits, lambda row: row.id)
    entries = (
        AuditView(row.id, row.at_ms, row.who, row.what, row.subject, row.outcome, row.times)
        for row in part
    )
    return AuditPage(tuple(entries), further(page, token, first))
