"""A server process on a real PostgreSQL that may die before or after any statement: the disk of the
crash simulation.

In place of `ptklib.testing.simulated_disk.SimulatedDisk`: ``crash_after(n)`` lets the process die
within the next statements that write or lock. A coin says whether the statement still reached the
database. What the dead one does later reaches nobody.
"""

from __future__ import annotations

import random
from typing import Any

import psycopg

from ptklib.testing.simulated_disk import PowerCut
from ptkstore.ledger.postgres.journal import connector


class PostgresDisk:
    def __init__(
        self, url: str, rng: random.Random, opened: list[psycopg.Connection[Any]] | None = None
    ) -> None:
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
        reads = statement.startswith(("SELECT seq", "SELECT s.seq", "SELECT 1 FROM sage_ledger.c"))
        dies = self.dies_now(counts=not reads)
        found = connection.execute(statement, values)
        if dies:
            raise PowerCut
        return found

    def dies_now(self, *, counts: bool = True) -> bool:
        """Right before a statement: raise if the process dies before it, return whether it dies
        right after it.
        """
        if self.crashed:
            raise psycopg.OperationalError("this process is dead")
        if self._left is None or not counts:
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self.crashed = True
        if self._rng.random() < 0.5:
            raise PowerCut
        return True


class _Connection:
    """A connection whose statements pass by the disk."""

    def __init__(self, disk: PostgresDisk, connection: psycopg.Connection[Any]) -> None:
        self._disk = disk
        self._connection = connection

    def execute(self, statement: str, values: Any = ()) -> Any:
        return self._disk.execute(self._connection, statement, values)

    @property
    def pgconn(self) -> Any:
        return _Libpq(self._disk, self._connection.pgconn)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class _Libpq:
    """libpq's connection: what is sent in one pipeline counts as one statement."""

    def __init__(self, disk: PostgresDisk, libpq: Any) -> None:
        self._disk = disk
        self._libpq = libpq
        self._dies = False

    def enter_pipeline_mode(self) -> None:
        self._dies = self._disk.dies_now()
        self._libpq.enter_pipeline_mode()

    def exit_pipeline_mode(self) -> None:
        """All of it was answered."""
        self._libpq.exit_pipeline_mode()
        if self._dies:
            raise PowerCut

    def __getattr__(self, name: str) -> Any:
        return getattr(self._libpq, name)
