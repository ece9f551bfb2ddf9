"""The metadata of a store: streams, blocks, PTKs, profiles, plans, cycles, states, events and subscriptions; for the service
also operations, requests, notifications, tokens and the audit log.

``Metadata.open(url_or_path)``, then ``with metadata.write() as tx:`` or ``with metadata.read() as tx:`` and one repository for
every noun: ``tx.streams``, ``tx.blocks``, ``tx.ptks``, ``tx.profiles``, ``tx.plans``, ``tx.cycles``, ``tx.states``,
``tx.events``, ``tx.subscriptions``, ``tx.operations``, ``tx.requests``, ``tx.notifications``, ``tx.tokens`` and ``tx.audit``.
Everything in it is public or differentially private; times come in as arguments, never from a clock.
"""

from ptkstore.metadata.errors import MetadataConflict, MetadataDamaged, MetadataUnavailable
from ptkstore.metadata.rows import (
    Block,
    Cycle,
    Delivery,
    Event,
    Plan,
    Profile,
    Ptk,
    StateRow,
    Step,
    Stream,
    Subscription,
)
from ptkstore.metadata.store import Metadata, Transaction

__all__ = [
    "Block",
    "Cycle",
    "Delivery",
    "Event",
    "Metadata",
    "MetadataConflict",
    "MetadataDamaged",
    "MetadataUnavailable",
    "Plan",
    "Profile",
    "Ptk",
    "StateRow",
    "Step",
    "Stream",
    "Subscription",
    "Transaction",
]
