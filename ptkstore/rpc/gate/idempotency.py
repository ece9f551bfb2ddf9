"""Mutations happen once: the same request_id and request again gives the first answer. See
`ptkstore.engine.access.requests`.

A service gets a `Once` with its call. It writes its answer in the transaction that makes the change
(`Once.keep`), so a crash leaves both or neither, and two servers that were asked the same at the
same time make one change. A service whose change lies outside the metadata writes down first what
it sets out to do (`Once.note`); after a crash the note is given back, and doing it again from the
note leads to the same end and the same answer.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from google.protobuf.message import Message

from ptklib.errors import InvalidInput, Refused
from ptkstore.engine.access import requests
from ptkstore.engine.access.requests import Request
from ptkstore.metadata import Metadata, Transaction

__all__ = ["KEPT_MS", "UNKEPT", "Once", "Repeats"]

# How long answers are kept.
KEPT_MS = 7 * 24 * 3600 * 1000
# How often older ones are forgotten.
_SWEEP_MS = 3600 * 1000

Answer = TypeVar("Answer", bound=Message)


class _AnsweredBefore(Exception):
    """Another server was faster with the same request: this change is taken back, and the first
    answer given.
    """


class Once:
    """One request under its id; one without an id keeps nothing."""

    def __init__(
        self,
        metadata: Metadata | None = None,
        request: Request | None = None,
        at_ms: int = 0,
        note: Any = None,
    ) -> None:
        """``request`` is None for one without an id."""
        self._metadata = metadata
        self._request = request
        self._at_ms = at_ms
        self._note = note
        self.kept: bytes | None = None

    @property
    def noted(self) -> bool:
        """True when something was written down before the work was begun."""
        return self._note is not None

    def keep(self, tx: Transaction, answer: Answer) -> Answer:
        """Write the answer in the transaction of the change; give back the answer."""
        if self._request is not None:
            data = answer.SerializeToString()
            if not requests.keep(tx, self._request, data, now_ms=self._at_ms):
                raise _AnsweredBefore
            self.kept = data
        return answer

    def note(self, body: dict[str, Any]) -> dict[str, Any]:
        """Write down what is to be done, durably, before it is begun; what was written down the
        first time is given back.
        """
        if self._request is None:
            return body
        if self._note is None:
            assert self._metadata is not None
            self._note = requests.note(self._metadata, self._request, body, now_ms=self._at_ms)
        noted: dict[str, Any] = self._note
        return noted


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

    def once(self, who: str, method: str, message: Any, work: Callable[[Once], bytes]) -> bytes:
        """The first answer to a request. ``work`` does it and returns the answer."""
        if not message.request_id:
            return work(UNKEPT)
        digest = hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
        request, at_ms = Request(who, message.request_id, method, digest), self._now_ms()
        self._sweep(at_ms)
        with self._alone(who, request.id):
            begun = requests.known(self._metadata, request)
            if begun.answer is not None:
                return begun.answer
            once = Once(self._metadata, request, at_ms, begun.note)
            try:
                answer = work(once)
                if once.kept is not None:
                    return once.kept
                if requests.keep_alone(self._metadata, request, answer, now_ms=at_ms):
                    return answer
            except (InvalidInput, Refused):
                # Nothing happened, and the next request may use the id; unless another server did
                # it meanwhile.
                others = self._given_up(request, once)
                if others is None:
                    raise
                return others
            except _AnsweredBefore:
                pass
            others = requests.known(self._metadata, request).answer
            assert others is not None
            return others

    def _given_up(self, request: Request, once: Once) -> bytes | None:
        """After a refusal: the answer that another server gave meanwhile, if one did."""
        if once.noted:
            return requests.forget(self._metadata, request)
        return requests.known(self._metadata, request).answer

    def _sweep(self, now_ms: int) -> None:
        """Forget old answers, once in a while."""
        with self._guard:
            if now_ms < self._sweep_ms:
                return
            self._sweep_ms = now_ms + _SWEEP_MS
        requests.sweep(self._metadata, before_ms=now_ms - KEPT_MS)

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
