"""Mutations happen once: the same request_id and request again gives the first answer. See `ptkstore.metadata.requests`.

A service gets a `Once` with its call. It writes its answer in the transaction that makes the change (`Once.keep`), so a crash
leaves both or neither, and two servers that were asked the same at the same time make one change. A service whose change lies
outside the metadata writes down first what it sets out to do (`Once.note`); after a crash the note is given back, and
doing it again from the note leads to the same end and the same answer.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from google.protobuf.message import Message

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata import Metadata, Transaction

__all__ = ["KEPT_MS", "UNKEPT", "Once", "Repeats"]

# How long answers are kept.
KEPT_MS = 7 * 24 * 3600 * 1000
# How often older ones are forgotten.
_SWEEP_MS = 3600 * 1000

Answer = TypeVar("Answer", bound=Message)


class _AnsweredBefore(Exception):
    """Another server was faster with the same request: this change is taken back, and the first answer given."""


class Once:
    """One request under its id; one without an id keeps nothing."""

    def __init__(
        self,
        metadata: Metadata | None = None,
        key: tuple[str, str, str, str] | None = None,
        at_ms: int = 0,
        note: Any = None,
    ) -> None:
        """``key`` is caller, id, method and digest; None for a request without an id."""
        self._metadata = metadata
        self._key = key
        self._at_ms = at_ms
        self._note = note
        self.kept: bytes | None = None

    def keep(self, tx: Transaction, answer: Answer) -> Answer:
        """Write the answer in the transaction of the change; give back the answer."""
        if self._key is not None:
            data = answer.SerializeToString()
            if not tx.requests.keep(*self._key, data, at_ms=self._at_ms):
                raise _AnsweredBefore
            self.kept = data
        return answer

    def note(self, body: dict[str, Any]) -> dict[str, Any]:
        """Write down what is to be done, durably, before it is begun; what was written down the first time is given back."""
        if self._key is None:
            return body
        if self._note is None:
            assert self._metadata is not None
            with self._metadata.write() as tx:
                self._note = tx.requests.note(*self._key[:2], body)
        found: dict[str, Any] = self._note
        return found


UNKEPT = Once()


class Repeats:
    """The answered requests of a store. Thread-safe."""

    def __init__(self, metadata: Metadata, now_ms: Callable[[], int]) -> None:
        """Forget what is too old to be repeated."""
        self._metadata = metadata
        self._now_ms = now_ms
        self._guard = threading.Lock()
        self._busy: dict[tuple[str, str], tuple[threading.Lock, int]] = {}
        self._sweep_ms = now_ms()
        self._sweep(self._sweep_ms)

    def once(self, who: str, method: str, request: Any, work: Callable[[Once], bytes]) -> bytes:
        """The first answer to a request. ``work`` does it and returns the answer."""
        number = request.request_id
        if not number:
            return work(UNKEPT)
        digest = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
        key, at_ms = (who, number, method, digest), self._now_ms()
        self._sweep(at_ms)
        with self._alone(who, number):
            with self._metadata.write() as tx:
                begun = tx.requests.begin(*key, at_ms=at_ms)
            if begun.answer is not None:
                return begun.answer
            once = Once(self._metadata, key, at_ms, begun.note)
            try:
                answer = work(once)
                if once.kept is not None:
                    return once.kept
                with self._metadata.write() as tx:
                    if tx.requests.keep(*key, answer, at_ms=at_ms):
                        return answer
            except (InvalidInput, Refused):
                # Nothing happened, and the next request may use the id; unless another server did it meanwhile.
                with self._metadata.write() as tx:
                    found = tx.requests.answer(who, number)
                    tx.requests.forget(who, number)
                if found is None:
                    raise
                return found
            except _AnsweredBefore:
                pass
            with self._metadata.read() as tx:
                found = tx.requests.answer(who, number)
            assert found is not None
            return found

    def _sweep(self, now_ms: int) -> None:
        """Forget old answers, once in a while."""
        with self._guard:
            if now_ms < self._sweep_ms:
                return
            self._sweep_ms = now_ms + _SWEEP_MS
        with self._metadata.write() as tx:
            tx.requests.sweep(now_ms - KEPT_MS)

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
