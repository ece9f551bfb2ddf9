"""The chain of MACs that makes a journal of commits, whatever database keeps it.

Every commit carries ``MAC(key, previous mac | seq | body)``, a snapshot the MAC of its commit and its own bytes.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from ptklib.ledger.mac import mac_of

__all__ = ["Head", "commit_mac", "follows", "genesis_of", "is_snapshot_of", "snapshot_mac"]


class Head(NamedTuple):
    """The newest commit: its number (0 for none) and its mac, which stands for everything before it."""

    seq: int
    mac: bytes


def genesis_of(key: bytes) -> Head:
    """What stands before the first commit; other for every key."""
    return Head(0, mac_of(key, b"sage genesis v1"))


def commit_mac(key: bytes, head: Head, body: bytes) -> bytes:
    """The mac of the commit that follows ``head``."""
    return mac_of(key, b"sage journal v1", head.mac, (head.seq + 1).to_bytes(8, "big"), body)


def snapshot_mac(key: bytes, head: Head, body: bytes) -> bytes:
    """The mac of the state at ``head``."""
    return mac_of(key, b"sage snapshot v1", head.mac, head.seq.to_bytes(8, "big"), hashlib.sha256(body).digest())


def follows(key: bytes, head: Head, seq: object, body: object, mac: object) -> bool:
    """True when this is the commit after ``head``."""
    if not isinstance(body, bytes) or not isinstance(mac, bytes) or seq != head.seq + 1:
        return False
    return hmac.compare_digest(mac, commit_mac(key, head, body))


def is_snapshot_of(key: bytes, head: Head, body: object, mac: object) -> bool:
    """True when this is the state at ``head``."""
    if not isinstance(body, bytes) or not isinstance(mac, bytes) or not isinstance(head.mac, bytes):
        return False
    return hmac.compare_digest(mac, snapshot_mac(key, head, body))
