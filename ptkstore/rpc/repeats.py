"""Mutations happen once: the same request_id and request again gives the first answer. See `ptkstore.metadata.requests`.

The request is written down before its work and its answer after it. Where a crash came between, the work is done again by
whoever asks again, and is told so: what it did the first time is then no mistake of the caller.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata import Metadata

__all__ = ["KEPT_MS", "Repeats"]

# How long answers are kept.
KEPT_MS = 7 * 24 * 3600 * 1000


class Repeats:
    """The answered requests of a store. Thread-safe."""

    def __init__(self, metadata: Metadata, now_ms: Callable[[], int]) -> None:
        """Forget what is too old to be repeated."""
        self._metadata = metadata
        self._now_ms = now_ms
        self._guard = threading.Lock()
        self._busy: dict[tuple[str, str], tuple[threading.Lock, int]] = {}
        with metadata.write() as tx:
            tx.requests.sweep(now_ms() - KEPT_MS)

    def once(self, who: str, method: str, request: Any, work: Callable[[bool], bytes]) -> bytes:
        """The first answer to a request. ``work(again)`` does it and returns the answer; ``again`` after a crash."""
        number = request.request_id
        if not number:
            return work(False)
        digest = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
        with self._alone(who, number):
            with self._metadata.write() as tx:
                begun = tx.requests.begin(who, number, method, digest, at_ms=self._now_ms())
            if begun.answer is not None:
                return begun.answer
            try:
                answer = work(begun.before)
            except (InvalidInput, Refused):
                # Nothing happened: the next request may use the id.
                with self._metadata.write() as tx:
                    tx.requests.forget(who, number)
                raise
            with self._metadata.write() as tx:
                tx.requests.answer(who, number, answer)
            return answer

    @contextmanager
    def _alone(self, who: str, number: str) -> Iterator[None]:
        """Two calls with one id take turns; the second finds the answer of the first."""
        key = (who, number)
        with self._guard:
            lock, users = self._busy.get(key, (threading.Lock(), 0))
            self._busy[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                users = self._busy[key][1] - 1
                if users:
                    self._busy[key] = (lock, users)
                else:
                    del self._busy[key]
