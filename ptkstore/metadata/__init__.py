"""The metadata of a store: streams, blocks, PTKs, profiles, plans, cycles, states, events and
subscriptions; for the service also operations, requests, notifications, tokens and the audit log.

``Metadata.open(url_or_path)``, then ``with metadata.write() as tx:`` or ``with metadata.read() as
tx:`` and one repository for every noun: ``tx.streams``, ``tx.blocks``, ``tx.ptks``,
``tx.profiles``, ``tx.plans``, ``tx.cycles``, ``tx.states``, ``tx.events``, ``tx.subscriptions``,
``tx.operations``, ``tx.requests``, ``tx.notifications``, ``tx.tokens`` and ``tx.audit``. What windows
come to is written in a transaction of its own kind, ``write_results``, and in no other. Everything
in it is public or differentially private; times come in as arguments, never from a clock.
"""

from ptkstore.metadata.database.store import Metadata, ResultsTransaction, Transaction
from ptkstore.metadata.errors import MetadataConflict, MetadataDamaged, MetadataUnavailable
from ptkstore.metadata.rows import (
    BlockRow,
    CycleRow,
    Delivery,
    Event,
    PlanRow,
    ProfileRow,
    PtkRow,
    StateRow,
    StepRow,
    StreamRow,
    Subscription,
)

__all__ = [
    "BlockRow",
    "CycleRow",
    "Delivery",
    "Event",
    "Metadata",
    "MetadataConflict",
    "MetadataDamaged",
    "MetadataUnavailable",
    "PlanRow",
    "ProfileRow",
    "PtkRow",
    "ResultsTransaction",
    "StateRow",
    "StepRow",
    "StreamRow",
    "Subscription",
    "Transaction",
]
