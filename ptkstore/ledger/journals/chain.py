"""The chain of MACs that makes a journal of commits, whatever database keeps it.

Every commit carries ``MAC(key, previous mac | seq | body)``, a snapshot the MAC of its commit and its own bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ptklib.encoding.mac import mac_of
from ptklib.errors import JournalDamaged
from ptklib.ledger.state import Entry

__all__ = [
    "Commit",
    "Head",
    "checked",
    "commit_mac",
    "follows",
    "genesis_of",
    "head_gone",
    "is_snapshot_of",
    "not_a_snapshot",
    "snapshot_mac",
]


class Head(NamedTuple):
    """The newest commit: its number (0 for none) and its mac, which stands for everything before
    it.
    """

    seq: int
    mac: bytes


class Commit(NamedTuple):
    """One commit: its number, its mac, and its entries in order."""

    seq: int
    mac: bytes
    entries: list[Entry]


def genesis_of(key: bytes) -> Head:
    """What stands before the first commit; other for every key."""
    return Head(0, mac_of(key, b"sage genesis v1"))


def commit_mac(key: bytes, head: Head, body: bytes) -> bytes:
    """The mac of the commit that follows ``head``."""
    return mac_of(key, b"sage journal v1", head.mac, (head.seq + 1).to_bytes(8, "big"), body)


def snapshot_mac(key: bytes, head: Head, body: bytes) -> bytes:
    """The mac of the state at ``head``."""
    return mac_of(
        key,
        b"sage snapshot v1",
        head.mac,
        head.seq.to_bytes(8, "big"),
        hashlib.sha256(body).digest(),
    )


def follows(key: bytes, head: Head, seq: object, body: object, mac: object) -> bool:
    """True when this is the commit after ``head``."""
    if not isinstance(body, bytes) or not isinstance(mac, bytes) or seq != head.seq + 1:
        return False
    return hmac.compare_digest(mac, commit_mac(key, head, body))


def checked(key: bytes, rows: Iterable[tuple[Any, ...]]) -> list[Commit]:
    """Commits from rows of (seq, body, mac, mac of the commit before), each held against the one
    before it. CHAIN_BROKEN.
    """
    commits = []
    for seq, body, mac, before in rows:
        head = genesis_of(key) if seq == 1 else Head(seq - 1, before)
        if not isinstance(head.mac, bytes) or not follows(key, head, seq, body, mac):
            raise JournalDamaged(
                "CHAIN_BROKEN", f"commit {seq} does not follow the one before it", seq=seq
            )
        commits.append(Commit(seq, mac, json.loads(body)))
    return commits


def is_snapshot_of(key: bytes, head: Head, body: object, mac: object) -> bool:
    """True when this is the state at ``head``."""
    if not isinstance(body, bytes) or not isinstance(mac, bytes) or not isinstance(head.mac, bytes):
        return False
    return hmac.compare_digest(mac, snapshot_mac(key, head, body))


def head_gone(head: Head) -> JournalDamaged:
    """What an append finds where the journal does not end with ``head``."""
    return JournalDamaged(
        "HISTORY_CUT", f"commit {head.seq} is gone or has a successor: nothing was added"
    )


def not_a_snapshot(seq: int) -> JournalDamaged:
    """What is found at a commit and is no state of this ledger."""
    return JournalDamaged(
        "SNAPSHOT_INVALID", f"the snapshot at commit {seq} is not one of this ledger", seq=seq
    )
