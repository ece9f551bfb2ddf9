"""Work that takes long: a visitor waits for it a while, and finds it where it was when they look
again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["BackgroundWork"]

Value = TypeVar("Value")
# All visitors together; the others queue.
_POOL = ThreadPoolExecutor(4, thread_name_prefix="console-work")


class BackgroundWork(Generic[Value]):
    """Begun when it is made, and begun again when it is asked for long after it was done.

    Thread-safe.
    """

    def __init__(self, do: Callable[[], Value], fresh_seconds: float) -> None:
        """Begin."""
        self._do = do
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._done = float("inf")
        self._future = self._begin()

    def answer(self, patience_seconds: float) -> Value:
        """What came out, or TimeoutError where it still works."""
        with self._lock:
            if time.monotonic() - self._done > self._fresh_seconds:
                self._future = self._begin()
            future = self._future
        return future.result(patience_seconds)

    def _begin(self) -> Future[Value]:
        self._done = float("inf")
        future = _POOL.submit(self._do)
        future.add_done_callback(lambda _one: setattr(self, "_done", time.monotonic()))
        return future
