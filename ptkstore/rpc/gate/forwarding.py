"""Calls that only the leader can answer, on their way to it.

Every server of a store takes every call. Those that write a stream or run a window are handed on,
byte for byte, to the server that leads, with the caller's own credentials: the leader decides who
may do what and writes it down, as if it had been asked itself. A caller that showed a certificate
is vouched for: the header names it, with a time and a MAC under a key that only servers with the
ledger's key can make. A call is handed on once. Where nobody leads for the moment, the call waits
for a while. Reasons: LEADER_UNAVAILABLE, SERVER_STOPPING.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from grpc_status import rpc_status

from ptklib.encoding.mac import mac_of
from ptklib.errors import SageError
from ptkstore.engine.leadership.election import Election
from ptkstore.rpc.gate.identity import HANDED_ON
from ptkstore.wire.faults import ServerUnavailable, status_of

__all__ = ["FORWARDED", "Forwarder", "Vouching"]

_STREAM = "/ptkstore.v1.StreamService/"
# What needs the writers of streams, or whoever runs the windows.
FORWARDED = frozenset({_STREAM + "Append", _STREAM + "SealStream", _STREAM + "CloseWindow"})

_CALLER = "sage-caller"
_LOOK_SECONDS = 0.1
_IDLE_SECONDS = 0.5
_VOUCHED_SECONDS = 300
_FOR_EVER_SECONDS = 1e7


class Vouching:
    """Names a caller to another server of the store.

    ``key`` is one that only these servers have.
    """

    def __init__(self, key: bytes, clock: Callable[[], float]) -> None:
        """Servers need clocks that agree within minutes."""
        self._key = key
        self._clock = clock

    def header(self, name: str) -> str:
        """What goes into the header."""
        at = str(int(self._clock()))
        return f"{at}.{self._mac(at, name)}.{name.encode().hex()}"

    def caller(self, context: Any) -> str | None:
        """The name in a call's header, if a server of ours has written it lately."""
        text = next(
            (value for name, value in context.invocation_metadata() if name == _CALLER), None
        )
        if not isinstance(text, str) or text.count(".") != 2 or not text.isascii():
            return None
        at, mac, spelled = text.split(".")
        try:
            name = bytes.fromhex(spelled).decode()
            fresh = abs(self._clock() - int(at)) <= _VOUCHED_SECONDS
        except ValueError:
            return None
        return name if hmac.compare_digest(mac, self._mac(at, name)) and fresh else None

    def _mac(self, at: str, name: str) -> str:
        return mac_of(self._key, b"sage caller v1", at.encode(), name.encode()).hex()


class Forwarder:
    """Hands calls on. Thread-safe."""

    def __init__(
        self,
        election: Election,
        connect: Callable[[str], grpc.Channel],
        *,
        certificate: Callable[[Any], str | None],
        vouching: Vouching,
        patience_seconds: float,
    ) -> None:
        """``certificate`` is the name of a caller that showed one which we know."""
        self._election = election
        self._connect = connect
        self._certificate = certificate
        self._vouching = vouching
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._channel: tuple[str, grpc.Channel] | None = None
        self._relays: dict[Any, float] = {}
        self._stopping = False

    def wrapped(self, inner: Any) -> Any:
        """The handlers of a service, with those that only the leader can answer handed on."""
        return _Handlers(self, inner)

    def unary(self, method: str, inner: Any, data: bytes, context: Any) -> Any:
        """Answer a call here, or hand it on."""
        address = self._target(context)
        if address is None:
            return inner(data, context)
        limits = {"timeout": _remaining(context), "metadata": self._metadata(context)}
        call = self._begun(
            address, lambda leader: leader.unary_unary(method).future(data, **limits)
        )
        context.add_callback(call.cancel)
        try:
            return call.result()
        except (grpc.RpcError, grpc.FutureCancelledError) as failure:
            self._fail(context, failure)

    def stream(self, method: str, inner: Any, incoming: Iterator[bytes], context: Any) -> Any:
        """Answer a stream of requests here, or hand it on."""
        address = self._target(context)
        return (
            inner(incoming, context)
            if address is None
            else self._relay(address, method, incoming, context)
        )

    def end_idle(self) -> None:
        """We stop: end streams on which nothing moves. Their callers connect elsewhere."""
        with self._lock:
            self._stopping = True
            idle = [
                call
                for call, moved in self._relays.items()
                if time.monotonic() > moved + _IDLE_SECONDS
            ]
        for call in idle:
            call.cancel()

    def close(self) -> None:
        """Close the channel."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel[1].close()

    def _relay(
        self, address: str, method: str, incoming: Iterator[bytes], context: Any
    ) -> Iterator[bytes]:
        limits = {"timeout": _remaining(context), "metadata": self._metadata(context)}
        call = self._begun(address, lambda leader: leader.stream_stream(method)(incoming, **limits))
        with self._tracked(call) as moved:
            context.add_callback(call.cancel)
            try:
                for message in call:
                    # Every batch is answered, so answers alone tell whether anything moves.
                    moved()
                    yield message
            except grpc.RpcError as failure:
                self._fail(context, failure)
            finally:
                call.cancel()

    @contextmanager
    def _tracked(self, call: Any) -> Iterator[Callable[[], None]]:
        def moved() -> None:
            with self._lock:
                self._relays[call] = time.monotonic()

        moved()
        try:
            yield moved
        finally:
            with self._lock:
                del self._relays[call]

    def _target(self, context: Any) -> str | None:
        """The leader's address; None when that is this server."""
        try:
            return self._found(context)
        except SageError as error:
            context.abort_with_status(status_of(error))
            raise

    def _found(self, context: Any) -> str | None:
        handed_on = any(name == HANDED_ON for name, _ in context.invocation_metadata())
        remaining = _remaining(context)
        deadline = time.monotonic() + (
            self._patience if remaining is None else min(self._patience, remaining)
        )
        while not self._election.ready:
            address = None if handed_on else self._election.leader()
            if address is not None:
                return address
            if time.monotonic() >= deadline or not context.is_active():
                raise ServerUnavailable(
                    "LEADER_UNAVAILABLE", "no server leads at the moment: ask again"
                )
            self._election.wait(_LOOK_SECONDS)
        return None

    def _begun(self, address: str, begin: Callable[[grpc.Channel], Any]) -> Any:
        """Begin a call to the leader.

        Under the lock: a channel that is closed takes no call, and ends those under way.
        """
        with self._lock:
            if self._channel is None or self._channel[0] != address:
                if self._channel is not None:
                    self._channel[1].close()
                self._channel = (address, self._connect(address))
            return begin(self._channel[1])

    def _metadata(self, context: Any) -> tuple[tuple[str, str], ...]:
        own = tuple(
            (name, value)
            for name, value in context.invocation_metadata()
            if name == "authorization"
        )
        certified = None if own else self._certificate(context)
        vouched = () if certified is None else ((_CALLER, self._vouching.header(certified)),)
        return (*own, *vouched, (HANDED_ON, "1"))

    def _fail(self, context: Any, failure: Any) -> None:
        """Tell the caller what the leader said, or that it said nothing. Never returns."""
        status = rpc_status.from_call(failure) if isinstance(failure, grpc.Call) else None
        if status is not None:
            context.abort_with_status(rpc_status.to_status(status))
        code = failure.code() if isinstance(failure, grpc.Call) else grpc.StatusCode.CANCELLED
        if self._stopping and code == grpc.StatusCode.CANCELLED:
            context.abort_with_status(
                status_of(
                    ServerUnavailable("SERVER_STOPPING", "the server is stopping: connect again")
                )
            )
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            context.abort_with_status(
                status_of(
                    ServerUnavailable(
                        "LEADER_UNAVAILABLE", "the server that leads cannot be reached: ask again"
                    )
                )
            )
        context.abort(code, failure.details())


def _remaining(context: Any) -> float | None:
    """The seconds that the caller has left; None for a caller that waits for ever, which gRPC tells
    in various ways.
    """
    seconds = context.time_remaining()
    return seconds if seconds is not None and seconds < _FOR_EVER_SECONDS else None


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc, unused-ignore]
    """The handlers of one service."""

    def __init__(self, forwarder: Forwarder, inner: Any) -> None:
        self._forwarder = forwarder
        self._inner = inner

    def service(self, details: Any) -> Any:
        """The handler of one call."""
        handler, method = self._inner.service(details), details.method
        if handler is None or method not in FORWARDED:
            return handler
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                lambda incoming, context: self._forwarder.stream(
                    method, handler.stream_stream, incoming, context
                )
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda data, context: self._forwarder.unary(method, handler.unary_unary, data, context)
        )
