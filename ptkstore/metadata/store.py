"""`Metadata`: the tables of a store, opened, migrated and used in transactions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ptkstore.metadata.audit import Audit
from ptkstore.metadata.blocks import Blocks
from ptkstore.metadata.charges import Charges
from ptkstore.metadata.cycles import Cycles
from ptkstore.metadata.database import Database
from ptkstore.metadata.errors import MetadataConflict
from ptkstore.metadata.events import Events
from ptkstore.metadata.leases import Leases
from ptkstore.metadata.newest import Newest
from ptkstore.metadata.notifications import Notifications
from ptkstore.metadata.operations import Operations
from ptkstore.metadata.plans import Plans
from ptkstore.metadata.postgresql import ATTEMPTS
from ptkstore.metadata.profiles import Profiles
from ptkstore.metadata.ptks import Ptks
from ptkstore.metadata.requests import Requests
from ptkstore.metadata.schema import migrate
from ptkstore.metadata.session import Session
from ptkstore.metadata.states import States
from ptkstore.metadata.streams import Streams
from ptkstore.metadata.subscriptions import Subscriptions
from ptkstore.metadata.tokens import Tokens
from ptkstore.metadata.witness import WitnessRow

__all__ = ["Metadata", "Transaction"]

Result = TypeVar("Result")


class Transaction:
    """One open transaction: a repository for every noun. Of no use once its ``with`` block has ended."""

    def __init__(self, session: Session) -> None:
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
        self._session = session

    def clock_ms(self) -> int | None:
        """The time by the database's own clock; None for SQLite, which has none."""
        return self._session.clock_ms()


class Metadata:
    """The metadata store. Thread-safe; several processes may open one store."""

    def __init__(self, database: Database) -> None:
        """Use `open`."""
        self._database = database

    @classmethod
    def open(cls, url_or_path: str | Path) -> Metadata:
        """Open a SQLite file (made if missing; its directory is not) or a database URL, and bring its schema up to date.

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
        """The only writer of the store until the block ends. Left normally: durable as a whole. Left by an exception: nothing
        happened. Keep it short, and nest none (TRANSACTION_NESTED)."""
        with self._database.write() as connection:
            yield Transaction(Session(connection, writable=True))

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """One moment of the store, however long the block takes. Waits for nobody; writing is TRANSACTION_READ_ONLY."""
        with self._database.read() as connection:
            yield Transaction(Session(connection, writable=False))

    def transact(self, work: Callable[[Transaction], Result]) -> Result:
        """``work`` in a `write` transaction, done again a few times when the database takes it back (METADATA_CONFLICT), which
        needs a writer that is not ours. ``work`` must do nothing but read and write the transaction."""
        delay = 0.01
        for _ in range(ATTEMPTS - 1):
            try:
                with self.write() as tx:
                    return work(tx)
            except MetadataConflict:
                time.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311
                delay *= 2
        with self.write() as tx:
            return work(tx)

    def check(self) -> str:
        """What the database itself finds wrong with its file; empty where nothing is, or where it looks after that itself."""
        return self._database.check()

    def close(self) -> None:
        """Let the connections go; further use is METADATA_CLOSED. Safe to call twice."""
        self._database.close()

    def __enter__(self) -> Metadata:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
