"""Who is told of a PTK's states by a call of the server, and how far. Reasons: PTK_UNKNOWN,
ID_INVALID, PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptkstore.api.paging import PageRequest
from ptkstore.api.references import number_of
from ptkstore.api.views import SubscriptionView
from ptkstore.engine.catalogue.ptks import Sees
from ptkstore.engine.parts import Parts
from ptkstore.engine.within import Within
from ptkstore.metadata import Transaction, rows

__all__ = ["SubscriptionPage", "page_of", "subscribe", "subscriptions", "unsubscribe"]


@dataclass(frozen=True)
class SubscriptionPage:
    """A page of subscriptions, oldest first, and the token of the next."""

    subscriptions: tuple[SubscriptionView, ...]
    next_page_token: str


def subscriptions(parts: Parts, ptk: str) -> list[SubscriptionView]:
    """All subscriptions to a PTK, oldest first."""
    with parts.metadata.read() as tx:
        return [_view(tx, row, ptk) for row in tx.subscriptions.list(tx.ptks.named(ptk).id)]


def page_of(parts: Parts, ptk: str, *, limit: int, page_token: str, sees: Sees) -> SubscriptionPage:
    """Subscriptions to a PTK (to all that ``sees`` allows if empty), oldest first."""
    page = PageRequest(f"subscriptions {ptk}", limit, page_token)
    views: list[SubscriptionView] = []
    ptks: dict[int, rows.PtkRow] = {}
    after = page.after
    with parts.metadata.read() as tx:
        wanted = tx.ptks.named(ptk).id if ptk else None
        while len(views) <= page.size:
            some = tx.subscriptions.list(wanted, limit=page.size + 1, after=after)
            for row in some:
                to = ptks[row.ptk] = ptks.get(row.ptk) or tx.ptks.get(row.ptk)
                if sees(to.name, to.stream):
                    views.append(_view(tx, row, to.name))
            if len(some) <= page.size:
                break
            after = some[-1].id
    part, token = page.cut(views[: page.size + 1], lambda view: int(view.id))
    return SubscriptionPage(tuple(part), token)


def subscribe(
    parts: Parts, ptk: str, endpoint: str, within: Within[SubscriptionView]
) -> SubscriptionView:
    """Tell an endpoint of every state from now on; the same again changes nothing."""
    with parts.metadata.write() as tx:
        to = tx.ptks.named(ptk)
        row = tx.subscriptions.add(to.id, endpoint)
        if tx.notifications.mark(row.id) is None:
            latest = tx.states.latest(to.id)
            tx.notifications.set_mark(row.id, latest.version if latest is not None else 0)
        view = _view(tx, row, to.name)
        within(tx, view)
        return view


def unsubscribe(
    parts: Parts, text: str, within: Within[None], *, require: Callable[[str, str], None]
) -> None:
    """End a subscription, with what waits for it; one that is not there is ended already.

    ``require`` refuses to end one to that PTK, on that stream.
    """
    number = number_of(text, "a subscription")
    with parts.metadata.write() as tx:
        for row in tx.subscriptions.list(limit=1, after=number - 1):
            if row.id == number:
                to = tx.ptks.get(row.ptk)
                require(to.name, to.stream)
                tx.notifications.forget(number)
                tx.subscriptions.remove(number)
        within(tx, None)


def _view(tx: Transaction, row: rows.Subscription, ptk: str) -> SubscriptionView:
    told = tx.notifications.mark(row.id) or 0
    return SubscriptionView(str(row.id), ptk, row.endpoint, told)
