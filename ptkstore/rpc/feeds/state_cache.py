"""States that were read lately, so that a PTK that everybody asks for is read and checked once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["CACHED_BYTES", "StateCache"]

CACHED_BYTES = 64 << 20


class StateCache:
    """The bytes of states that were read lately, by digest: they never change. Thread-safe."""

    def __init__(
        self, read: Callable[[str], tuple[bytes, bytes]], most_bytes: int = CACHED_BYTES
    ) -> None:
        """``read`` gives arrays and manifest, checked against the digest."""
        self._read = read
        self._most = most_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[str, tuple[bytes, bytes]] = OrderedDict()
        self._bytes = 0

    def get(self, digest: str) -> tuple[bytes, bytes]:
        """The arrays and the manifest."""
        with self._lock:
            if digest in self._held:
                self._held.move_to_end(digest)
                return self._held[digest]
        state = self._read(digest)
        with self._lock:
            if digest not in self._held and _size(state) <= self._most:
                self._held[digest] = state
                self._bytes += _size(state)
                while self._bytes > self._most:
                    self._bytes -= _size(self._held.popitem(last=False)[1])
        return state


def _size(state: tuple[bytes, bytes]) -> int:
    return len(state[0]) + len(state[1])
