"""A server process on a real PostgreSQL that may die before or after any statement: the disk of the crash simulation.

In place of `ptklib.testing.simulated_disk.SimulatedDisk`: ``crash_after(n)`` lets the process die within the next statements
that write or lock. A coin says whether the statement still reached the database. What the dead one does later reaches nobody.
"""

from __future__ import annotations

import random
from typing import Any

import psycopg

from ptklib.testing.simulated_disk import PowerCut
from ptkstore.ledger.postgres_journal import connector


class PostgresDisk:
    def __init__(self, url: str, rng: random.Random, opened: list[psycopg.Connection[Any]] | None = None) -> None:
        self._url = url
        self._rng = rng
        self._left: int | None = None
        self.crashed = False
        self._open: list[psycopg.Connection[Any]] = [] if opened is None else opened

    def connect(self, _name: str) -> PostgresDisk:
        return self

    def connection(self) -> Any:
        """What `PostgresJournal` calls to connect."""
        found = connector(self._url)()
        self._open.append(found)
        return _Connection(self, found)

    def crash_after(self, operations: int) -> None:
        # A commit is one statement here, and several operations of a disk.
        self._left = 1 + operations // 4

    def calm(self) -> None:
        self._left = None

    def close(self) -> None:
        for connection in self._open:
            connection.close()

    def after_crash(self, rng: random.Random) -> PostgresDisk:
        self.crashed = True
        self.close()
        return PostgresDisk(self._url, rng, self._open)

    def execute(self, connection: psycopg.Connection[Any], statement: str, values: Any) -> Any:
        if self.crashed:
            raise psycopg.OperationalError("this process is dead")
        if self._left is not None and not statement.startswith(
            ("SELECT seq", "SELECT s.seq", "SELECT 1 FROM sage_ledger.c")
        ):
            self._left -= 1
            if self._left <= 0:
                self.crashed = True
                if self._rng.random() < 0.5:
                    connection.execute(statement, values)
                raise PowerCut
        return connection.execute(statement, values)


class _Connection:
    """A connection whose statements pass by the disk."""

    def __init__(self, disk: PostgresDisk, connection: psycopg.Connection[Any]) -> None:
        self._disk = disk
        self._connection = connection

    def execute(self, statement: str, values: Any = ()) -> Any:
        return self._disk.execute(self._connection, statement, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
