"""What the writer needs of a journal.

`Journal` keeps it in a SQLite file, `PostgresJournal` in a PostgreSQL database.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from ptklib.ledger.state import Entry
from ptkstore.ledger.journals.chain import Commit, Head

__all__ = ["DurableJournal"]


class DurableJournal(Protocol):
    """Commits of entries, appended for ever and chained. Not thread-safe: its owner holds a lock.
    Several processes may have one journal open; everything may raise JOURNAL_UNAVAILABLE, and then
    nothing that was not committed has happened.
    """

    genesis: Head
    head: Head

    def begin(self) -> None:
        """Take the write lock: nobody else appends until `commit` or `rollback`."""

    def commit(self) -> None:
        """Make everything since `begin` durable and let the lock go."""

    def rollback(self) -> None:
        """Forget everything since `begin`. Safe to call when nothing is open; never raises."""

    def read(self) -> Iterator[list[Entry]]:
        """The commits after `head`, oldest first, each checked against the chain; `head` moves
        along.
        """

    def replay(self) -> Generator[list[Entry], None, None]:
        """Every commit from the first, checked; `head` moves along and is where it was
        afterwards.
        """

    def pick(self, numbers: Sequence[int]) -> list[Commit]:
        """Some commits by number, in order, each checked against the one before it; `head` stays
        where it is.
        """

    def is_current(self) -> bool:
        """True when `head` is the newest commit."""

    def append(self, entries: list[Entry]) -> None:
        """Add one commit after `head`, inside `begin` and `commit`."""

    def append_last(self, body: bytes) -> None:
        """Add one commit after `head`, inside `begin`, and then what `commit` does."""

    def append_next(self, body: bytes) -> bool:
        """Add one commit right after `head`, durable at once outside `begin` and `commit`; False,
        and nothing added, if `head` is not the newest commit.
        """

    def save_snapshot(self, body: bytes) -> None:
        """Keep the state at `head`, inside `begin` and `commit`."""

    def newest_snapshot(self) -> bytes | None:
        """The newest snapshot, checked; `head` moves to its commit. None when there is none."""

    def snapshots(self) -> dict[int, bytes]:
        """All snapshots by commit number, unchecked."""

    def rewind(self) -> None:
        """Start reading from the first commit again."""

    def close(self) -> None:
        """Let the database go."""
