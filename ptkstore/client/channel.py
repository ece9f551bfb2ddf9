"""A connection to a server: credentials, deadlines, and another try while it is unavailable.

Only UNAVAILABLE is tried again, for a few seconds: the server did not do it, or did it under a
request_id that makes it safe to ask again. A token is never sent in plain text beyond this machine.
Reasons: ADDRESS_INVALID, TOKEN_UNPROTECTED, STORE_CLOSED, and those of `ptkstore.wire.faults`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import grpc

from ptklib.errors import InvalidInput
from ptkstore.api.references import is_address, is_loopback
from ptkstore.backoff import SERVER_AWAY
from ptkstore.client.requests import PAGE
from ptkstore.client.timeouts import TIMEOUT_SECONDS
from ptkstore.wire.faults import ServerUnavailable, error_of

__all__ = ["ATTEMPTS", "Connection"]

ATTEMPTS = 6
_MAX_MESSAGE_BYTES = 64 << 20

Stub = TypeVar("Stub")


class Connection:
    """A channel to one server. Thread-safe."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca_file: str | Path | None = None,
        cert_file: str | Path | None = None,
        key_file: str | Path | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """TLS with ``ca_file``; ``cert_file`` and ``key_file`` are the caller's own.

        Plain text without.
        """
        if not is_address(address):
            raise InvalidInput(
                "ADDRESS_INVALID", f"an address must be host:port, got {address!r:.80}"
            )
        if (cert_file is None) != (key_file is None) or (cert_file is not None and ca_file is None):
            raise InvalidInput(
                "ADDRESS_INVALID", "cert_file and key_file go together, and with ca_file"
            )
        if token is not None and ca_file is None and not is_loopback(address.rpartition(":")[0]):
            raise InvalidInput(
                "TOKEN_UNPROTECTED",
                "a token must not leave this machine in plain text: give ca_file",
            )
        self._lock = threading.Lock()
        self._closed = False
        self.timeout_seconds = timeout_seconds
        self.metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        options = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            # We try again ourselves.
            ("grpc.enable_retries", 0),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2_000),
        ]
        if ca_file is None:
            self.channel = grpc.insecure_channel(address, options=options)
        else:
            files = [
                None if file is None else _read(file) for file in (ca_file, key_file, cert_file)
            ]
            self.channel = grpc.secure_channel(
                address, grpc.ssl_channel_credentials(*files), options=options
            )

    def stub(self, kind: Callable[[grpc.Channel], Stub]) -> Stub:
        """The calls of one service. Reason: STORE_CLOSED."""
        # gRPC ends the process where a call is made known to a channel that is closed.
        with self._lock:
            if self._closed:
                raise _closed()
            return kind(self.channel)

    def call(self, method: Any, request: Any, *, timeout_seconds: float | None = None) -> Any:
        """One unary call, tried again while the server is unavailable.

        All tries share the deadline.
        """
        deadline = time.monotonic() + (
            self.timeout_seconds if timeout_seconds is None else timeout_seconds
        )

        def once() -> Any:
            return method(
                request, timeout=max(0.001, deadline - time.monotonic()), metadata=self.metadata
            )

        return self.patiently(once, deadline=deadline)

    def pages(self, method: Any, request: Any, *, page_size: int = PAGE) -> Iterator[Any]:
        """All pages of a list, one call each."""
        request.page_size = page_size
        while True:
            page = self.call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def streaming(self, method: Any, request: Any) -> Any:
        """A call that streams, without a deadline: the server is asked from time to time whether it
        lives.
        """
        try:
            return method(request, metadata=self.metadata)
        except ValueError:
            raise _closed() from None

    def patiently(self, once: Callable[[], Any], *, deadline: float | None = None) -> Any:
        """``once()``, again after a while where it was UNAVAILABLE; the errors of the server as
        errors of ours.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return once()
            except grpc.RpcError as failure:
                if failure.code() != grpc.StatusCode.UNAVAILABLE or attempt == ATTEMPTS:
                    raise error_of(failure) from None
                delay = SERVER_AWAY.seconds(attempt)
                if deadline is not None and time.monotonic() + delay >= deadline:
                    raise error_of(failure) from None
                time.sleep(delay)
            except ValueError:
                raise _closed() from None
        raise AssertionError

    def wait(self, attempt: int) -> None:
        """Before another try."""
        time.sleep(SERVER_AWAY.seconds(attempt))

    def close(self) -> None:
        """Close the channel."""
        with self._lock:
            self._closed = True
            self.channel.close()


def _closed() -> ServerUnavailable:
    """What grpc's ValueError means: the channel was closed."""
    return ServerUnavailable("STORE_CLOSED", "the store was closed: open it again")


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput("FILE_UNREADABLE", f"{path}: {error.strerror}", file=str(path)) from None
