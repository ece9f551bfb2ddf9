"""Follow a PTK over the wire: every new state, in order, through lost connections and restarts of
the server.

What was seen last is remembered, and asked for again after every connection, so nothing is missed.
The callback runs in one thread of its own; one that raises is told of the next state all the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import grpc

from ptkstore.api.views import StateView
from ptkstore.backoff import SERVER_AWAY
from ptkstore.client.channel import Connection
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc
from ptkstore.wire.faults import ServerUnavailable, error_of
from ptkstore.wire.messages import state_view

__all__ = ["Watch"]

_LOG = logging.getLogger(__name__)
# Asking again would not help.
_FINAL = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNIMPLEMENTED,
)


class Watch:
    """One subscription."""

    def __init__(
        self, connection: Connection, name: str, after: int, callback: Callable[[StateView], None]
    ) -> None:
        """Follow from the version after ``after``."""
        self._connection = connection
        self._name = name
        self._after = after
        self._callback = callback
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._call: grpc.Call | None = None
        threading.Thread(target=self._follow, name=f"sage-watch {name:.40}", daemon=True).start()

    def close(self) -> None:
        """Hear no more.

        A callback under way may still be running. Safe to call twice, and from the callback.
        """
        with self._lock:
            self._closed.set()
            if self._call is not None:
                self._call.cancel()

    def _follow(self) -> None:
        attempt = 0
        while not self._closed.is_set():
            seen = self._after
            try:
                self._listen()
            except grpc.RpcError as failure:
                if self._closed.is_set():
                    return
                error = error_of(failure)
                if failure.code() in _FINAL:
                    _LOG.warning("%s is not followed any more: %s", self._name, error.reason)
                    return
                # Without room at the server nothing is heard until somebody leaves.
                refused = failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and not attempt
                tell = _LOG.warning if refused else _LOG.info
                tell("%s is followed again after %s", self._name, error.reason)
            except (ServerUnavailable, ValueError):
                return  # the store was closed
            attempt = 1 if self._after != seen else attempt + 1
            self._closed.wait(SERVER_AWAY.seconds(attempt))

    def _listen(self) -> None:
        stub = self._connection.stub(ptk_pb2_grpc.PtkServiceStub)
        request = ptk_pb2.WatchPtkRequest(name=self._name, after_version=self._after)
        with self._lock:
            if self._closed.is_set():
                return
            call = self._call = stub.WatchPtk(request, metadata=self._connection.metadata)
        for message in call:
            if self._closed.is_set():
                return
            view = state_view(message.state)
            if view.version <= self._after:
                continue
            self._after = view.version
            try:
                self._callback(view)
            except Exception as error:
                _LOG.warning("a follower of %s failed with %s", self._name, type(error).__name__)
