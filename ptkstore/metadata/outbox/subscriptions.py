"""Who wants to hear of which PTK. Reason: SUBSCRIPTION_UNKNOWN."""

from __future__ import annotations

import sqlalchemy as sa

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata.catalogue.ptks import Ptks
from ptkstore.metadata.checks import check_endpoint
from ptkstore.metadata.rows import Subscription
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import subscriptions

__all__ = ["Subscriptions"]


class Subscriptions:
    """The endpoints subscribed to PTKs."""

    def __init__(self, session: MetadataSession, ptks: Ptks) -> None:
        """Work inside one transaction."""
        self._session = session
        self._ptks = ptks

    def add(self, ptk: int, endpoint: str) -> Subscription:
        """Subscribe an endpoint to a PTK; the same again is the same subscription."""
        if not check_endpoint(endpoint, "an endpoint"):
            raise InvalidInput("VALUE_INVALID", "an endpoint must not be empty")
        self._ptks.get(ptk)
        here = sa.and_(subscriptions.c.ptk == ptk, subscriptions.c.endpoint == endpoint)
        row = self._session.one(sa.select(subscriptions).where(here))
        if row is not None:
            return Subscription(**row)
        return Subscription(
            self._session.insert(subscriptions, ptk=ptk, endpoint=endpoint), ptk, endpoint
        )

    def remove(self, subscription: int) -> None:
        """End a subscription, or SUBSCRIPTION_UNKNOWN."""
        here = subscriptions.c.id == subscription
        if self._session.one(sa.select(subscriptions.c.id).where(here)) is None:
            raise Refused(
                "SUBSCRIPTION_UNKNOWN",
                f"there is no subscription {subscription}",
                subscription=subscription,
            )
        self._session.execute(subscriptions.delete().where(here))

    def list(
        self, ptk: int | None = None, *, limit: int | None = None, after: int | None = None
    ) -> tuple[Subscription, ...]:
        """Subscriptions by id, of one PTK if given; ``after`` is the last id of the page before."""
        query = sa.select(subscriptions)
        if ptk is not None:
            query = query.where(subscriptions.c.ptk == ptk)
        page = self._session.page(query, subscriptions.c.id, after, limit)
        return tuple(Subscription(**row) for row in page)
