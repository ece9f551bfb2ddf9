"""`Metadata`: the tables of a store, opened, migrated and used in transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ptkstore.backoff import Backoff
from ptkstore.closing import Closing
from ptkstore.metadata.access.audit import Audit
from ptkstore.metadata.access.requests import Requests
from ptkstore.metadata.access.tokens import Tokens
from ptkstore.metadata.catalogue.blocks import BlockResults, Blocks
from ptkstore.metadata.catalogue.cycles import CycleResults, Cycles
from ptkstore.metadata.catalogue.newest import Newest
from ptkstore.metadata.catalogue.plans import PlanResults, Plans
from ptkstore.metadata.catalogue.profiles import ProfileResults, Profiles
from ptkstore.metadata.catalogue.ptks import Ptks
from ptkstore.metadata.catalogue.states import StateResults, States
from ptkstore.metadata.catalogue.streams import Streams
from ptkstore.metadata.database.database import Database
from ptkstore.metadata.database.postgresql import ATTEMPTS
from ptkstore.metadata.database.schema import migrate
from ptkstore.metadata.errors import MetadataConflict
from ptkstore.metadata.outbox.events import Events, ResultEvents
from ptkstore.metadata.outbox.notifications import Notifications
from ptkstore.metadata.outbox.subscriptions import Subscriptions
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.work.charges import Charges
from ptkstore.metadata.work.leases import Leases
from ptkstore.metadata.work.operations import Operations
from ptkstore.metadata.work.witness import WitnessRow

__all__ = ["Metadata", "ResultsTransaction", "Transaction"]

Result = TypeVar("Result")
# Two writers that met are out of each other's way within milliseconds.
_BACKOFF = Backoff(first_seconds=0.015, longest_seconds=0.5)


class Transaction:
    """One open transaction: a repository for every noun.

    Of no use once its ``with`` block has ended.
    """

    def __init__(self, session: MetadataSession) -> None:
        """Give every repository the same session."""
        self.streams = Streams(session)
        self.blocks = Blocks(session, self.streams)
        self.charges = Charges(session)
        self.ptks = Ptks(session, self.streams)
        self.profiles = Profiles(session, self.ptks)
        self.plans = Plans(session, self.streams)
        self.cycles = Cycles(session, self.streams)
        self.states = States(session, self.ptks, self.cycles)
        self.events = Events(session)
        self.subscriptions = Subscriptions(session, self.ptks)
        self.leases = Leases(session)
        self.newest = Newest(session)
        self.notifications = Notifications(session)
        self.operations = Operations(session, self.streams)
        self.requests = Requests(session)
        self.tokens = Tokens(session)
        self.audit = Audit(session)
        self.witness = WitnessRow(session)
        self.session = session

    def clock_ms(self) -> int | None:
        """The time by the database's own clock; None for SQLite, which has none."""
        return self.session.clock_ms()


class ResultsTransaction(Transaction):
    """A transaction in which results of windows can be written: counts of blocks, cycles and their
    steps, plans, profiles, states and the events that tell of them. No other transaction can.
    """

    def __init__(self, session: MetadataSession) -> None:
        """The same repositories, those of results with their writing methods."""
        super().__init__(session)
        self.blocks: BlockResults = BlockResults(session, self.streams)
        self.profiles: ProfileResults = ProfileResults(session, self.ptks)
        self.plans: PlanResults = PlanResults(session, self.streams)
        self.cycles: CycleResults = CycleResults(session, self.streams)
        self.states: StateResults = StateResults(session, self.ptks, self.cycles)
        self.events: ResultEvents = ResultEvents(session)


class Metadata(Closing):
    """The metadata store. Thread-safe; several processes may open one store."""

    def __init__(self, database: Database) -> None:
        """Use `open`."""
        self._database = database

    @classmethod
    def open(cls, url_or_path: str | Path) -> Metadata:
        """Open a SQLite file (made if missing; its directory is not) or a database URL, and bring
        its schema up to date.

        SCHEMA_TOO_NEW or NOT_METADATA, with nothing changed, when it is not ours to touch.
        """
        database = Database(url_or_path)
        try:
            migrate(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """The only writer of the store until the block ends. Left normally: durable as a whole.
        Left by an exception: nothing happened. Keep it short, and nest none (TRANSACTION_NESTED).
        """
        with self._database.write() as connection:
            yield Transaction(MetadataSession(connection, writable=True))

    @contextmanager
    def write_results(self, witness: str) -> Iterator[ResultsTransaction]:
        """`write` for results of windows, the only way to them. ``witness`` is what is known of the
        ledger by now; it is put in the same transaction, so no result is there without it.
        """
        with self.write() as plain:
            tx = ResultsTransaction(plain.session)
            tx.witness.put(witness)
            yield tx

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """One moment of the store, however long the block takes.

        Waits for nobody; writing is TRANSACTION_READ_ONLY.
        """
        with self._database.read() as connection:
            yield Transaction(MetadataSession(connection, writable=False))

    def transact(self, work: Callable[[Transaction], Result]) -> Result:
        """``work`` in a `write` transaction, done again a few times when the database takes it back
        (METADATA_CONFLICT), which needs a writer that is not ours. ``work`` must do nothing but
        read and write the transaction.
        """
        for attempt in range(1, ATTEMPTS):
            try:
                with self.write() as tx:
                    return work(tx)
            except MetadataConflict:
                time.sleep(_BACKOFF.seconds(attempt))
        with self.write() as tx:
            return work(tx)

    def check(self) -> str:
        """What the database itself finds wrong with its file; empty where nothing is, or where it
        looks after that itself.
        """
        return self._database.check()

    def close(self) -> None:
        """Let the connections go; further use is METADATA_CLOSED. Safe to call twice."""
        self._database.close()
