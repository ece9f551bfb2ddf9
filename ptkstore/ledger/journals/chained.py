"""What journals have in common, whatever database keeps them: a head that moves along the chain as
commits are read, and snapshots that are held against the commit they belong to.

Reasons: CHAIN_BROKEN, HISTORY_CUT, SNAPSHOT_INVALID, and those of the database.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from typing import Any, ClassVar

from ptklib.encoding.canonical import canonical_entries
from ptklib.errors import JournalDamaged
from ptklib.ledger.state import Entry
from ptkstore.ledger.journals.chain import (
    Head,
    follows,
    genesis_of,
    head_gone,
    is_snapshot_of,
    not_a_snapshot,
)

__all__ = ["ChainedJournal"]


class ChainedJournal(ABC):
    """A `DurableJournal` but for its database."""

    genesis: Head
    head: Head
    _key: bytes
    # Number and body of every snapshot; and of the newest one number, body, mac and the mac of its
    # commit.
    _SNAPSHOTS: ClassVar[str]
    _NEWEST_SNAPSHOT: ClassVar[str]

    @abstractmethod
    def append_next(self, body: bytes) -> bool:
        """See `DurableJournal.append_next`."""

    @abstractmethod
    def _to(self, last: Head | None) -> Iterator[list[Entry]]:
        """The commits after `head`, checked, as `_followed` does; at least up to ``last``."""

    @abstractmethod
    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query gives."""

    def _start(self) -> None:
        """At commit 0."""
        self.genesis = genesis_of(self._key)
        self.head = self.genesis

    def rewind(self) -> None:
        """Start reading from the first commit again."""
        self.head = self.genesis

    def read(self) -> Iterator[list[Entry]]:
        """The commits after `head`, oldest first, each checked against the chain; `head` moves
        along.
        """
        return self._to(None)

    def replay(self) -> Generator[list[Entry], None, None]:
        """Every commit from the first, checked; `head` moves along and is where it was
        afterwards.
        """
        head, self.head = self.head, self.genesis
        try:
            yield from self._to(head)
        finally:
            self.head = head

    def append(self, entries: list[Entry]) -> None:
        """Add one commit after `head`, inside `begin` and `commit`."""
        if not self.append_next(canonical_entries(entries)):
            raise head_gone(self.head)

    def newest_snapshot(self) -> bytes | None:
        """The newest snapshot, checked; `head` moves to its commit. None when there is none."""
        rows = self._rows(self._NEWEST_SNAPSHOT)
        if not rows:
            return None
        seq, body, mac, commit = rows[0]
        head = Head(seq, commit)
        if not is_snapshot_of(self._key, head, body, mac):
            raise not_a_snapshot(seq)
        self.head = head
        checked: bytes = body
        return checked

    def snapshots(self) -> dict[int, bytes]:
        """All snapshots by commit number, unchecked."""
        return dict(self._rows(self._SNAPSHOTS))

    def _followed(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[list[Entry]]:
        """The entries of rows of (seq, body, mac), each checked to follow `head`, which moves
        along.
        """
        for seq, body, mac in rows:
            if not follows(self._key, self.head, seq, body, mac):
                raise JournalDamaged(
                    "CHAIN_BROKEN", f"commit {seq} does not follow commit {self.head.seq}", seq=seq
                )
            self.head = Head(seq, mac)
            yield json.loads(body)
