"""The health service: what a server says of itself to whoever asks, without credentials.

Nothing here waits for a peer while others wait for it: those who watch are told by threads of their
own, so that one that does not read holds up itself alone. Reason: TOO_MANY_WATCHERS.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ptkstore.wire.faults import LimitExceeded, status_of

__all__ = ["MOST_WATCHERS", "Health"]

MOST_WATCHERS = 64
_Response = health_pb2.HealthCheckResponse


class _Watcher:
    """One who watches a service. Guarded by the lock of `Health`."""

    def __init__(self, service: str, send: Callable[[Any], None]) -> None:
        self.service = service
        self.send = send
        self.told: int | None = None
        self.busy = False


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc, unused-ignore]
    """Statuses by the name of a service; "" is the server. Thread-safe."""

    def __init__(self, names: Iterable[str]) -> None:
        """All of them serve, and so does the server."""
        self._lock = threading.Lock()
        self._statuses: dict[str, int] = dict.fromkeys(("", *names), _Response.SERVING)
        self._ending = False
        self._watchers: set[_Watcher] = set()
        self._threads = ThreadPoolExecutor(MOST_WATCHERS, thread_name_prefix="sage-health-watch")

    def set(self, service: str, status: int) -> None:
        """What is said from now on; nothing, once we are ending."""
        with self._lock:
            if not self._ending:
                self._statuses[service] = status
                self._tell_all()

    def enter_graceful_shutdown(self) -> None:
        """Say NOT_SERVING for good."""
        with self._lock:
            self._ending = True
            self._statuses = dict.fromkeys(self._statuses, _Response.NOT_SERVING)
            self._tell_all()

    def close(self) -> None:
        """End the threads; there must be no calls any more."""
        self._threads.shutdown()

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        """See the contract of gRPC."""
        with self._lock:
            status = self._statuses.get(request.service)
        if status is None:
            context.set_code(grpc.StatusCode.NOT_FOUND)
            return _Response()
        return _Response(status=status)

    def Watch(self, request: Any, context: Any, send: Callable[[Any], None]) -> None:  # noqa: N802
        """See the contract of gRPC."""
        watcher = _Watcher(request.service, send)
        with self._lock:
            full = len(self._watchers) >= MOST_WATCHERS
            if not full:
                self._watchers.add(watcher)
        if full:
            error = LimitExceeded(
                "TOO_MANY_WATCHERS", f"{MOST_WATCHERS} calls are watching already: ask with Check"
            )
            context.abort_with_status(status_of(error))

        def left() -> None:
            with self._lock:
                self._watchers.discard(watcher)

        if not context.add_callback(left):
            return left()
        with self._lock:
            return self._tell(watcher)

    Watch.experimental_non_blocking = True  # type: ignore[attr-defined]

    def _tell_all(self) -> None:
        for watcher in self._watchers:
            self._tell(watcher)

    def _tell(self, watcher: _Watcher) -> None:
        if not watcher.busy and watcher.told != self._status(watcher):
            watcher.busy = True
            self._threads.submit(self._send, watcher)

    def _status(self, watcher: _Watcher) -> int:
        return self._statuses.get(watcher.service, int(_Response.SERVICE_UNKNOWN))

    def _send(self, watcher: _Watcher) -> None:
        """Tell one until it knows what there is to know."""
        while True:
            with self._lock:
                status = self._status(watcher)
                if watcher.told == status or watcher not in self._watchers:
                    watcher.busy = False
                    return
                watcher.told = status
            watcher.send(_Response(status=status))
