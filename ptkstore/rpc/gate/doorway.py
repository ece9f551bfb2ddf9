"""The way in: a call is known, counted and given a place before any thread waits for what it has to
say.

gRPC would read the message of a unary call first, in a thread, and then ask who calls: whoever
sends headers alone would hold that thread for ever. So every RPC is served in the form that gives
us the call before its first message. On the way in, in this order: the caller is known (addresses
that fail too often are not looked up, see `strangers`), has calls left for this second, and has a
place (`places`). Then the first message is waited for, for a while. A call whose message does not
come is cancelled. Callers whose token was good lately have threads and places of their own, and are
turned away before they take a thread where they have too many; those who are not known yet stand in
another line.

Health is for anyone, and outside all that: it has threads and places of its own, few for each
connection, so that it answers whatever happens to the rest. Methods that are not in the table of
permissions are nobody's.

Reasons: RPC_UNKNOWN, TOO_MANY_CALLS, RATE_LIMITED, REQUEST_UNREADABLE, FIRST_MESSAGE_LATE, and
those of `callers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, Protocol

import grpc

from ptklib.errors import InvalidInput, SageError
from ptkstore.allowance import Allowance
from ptkstore.api.permissions import ANYONE, PERMISSIONS
from ptkstore.rpc.gate.identity import Caller, Callers, told_apart
from ptkstore.rpc.gate.places import CallPlace, Places
from ptkstore.rpc.gate.strangers import Strangers, address_of
from ptkstore.wire.faults import AccessDenied, LimitExceeded, status_of

__all__ = ["Doorway", "Refuse"]

HEALTH_THREADS = 32
_HEALTH_EACH = 4
_HEALTH_SECONDS = 2.0
_MOST_HANDLERS = 10_000


class Refuse(Protocol):
    """Writes down that a call was refused, and aborts it: never returns.

    ``caller`` is None where it is not known.
    """

    def __call__(self, method: str, context: Any, caller: Caller | None, error: Exception) -> None:
        """Refuse one."""


class Doorway(grpc.ServerInterceptor):  # type: ignore[misc, unused-ignore]
    """Lets calls in. gRPC's own thread asks it for handlers, so nothing here waits outside of
    them.
    """

    def __init__(
        self,
        callers: Callers,
        *,
        strangers: Strangers,
        allowance: Allowance,
        places: Callable[[Places | None], Places],
        threads: int,
        refuse: Refuse,
        late: Callable[[str, Caller, SageError], None],
    ) -> None:
        """``allowance`` is in calls; ``places`` makes those of ``threads``, beside others; ``late``
        is told of calls that were cancelled because their message did not come.
        """
        self._callers = callers
        self._strangers = strangers
        self._allowance = allowance
        self._refuse = refuse
        self._late = late
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="sage-rpc")
        # Who is known by its token need not stand in line behind those who are not.
        self._known_threads = ThreadPoolExecutor(threads, thread_name_prefix="sage-known")
        self._health_threads = ThreadPoolExecutor(HEALTH_THREADS, thread_name_prefix="sage-health")
        self._turning_away = ThreadPoolExecutor(2, thread_name_prefix="sage-refuse")
        self._places = places(None)
        self._known_places = places(self._places)
        self._health_places = Places(
            most=HEALTH_THREADS, most_each=_HEALTH_EACH, first_message_seconds=_HEALTH_SECONDS
        )
        self._handlers: dict[tuple[str, str | None], Any] = {}

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """The handler of one call."""
        method = details.method
        if method in ANYONE:
            who, places = None, self._health_places
        else:
            who = self._callers.remembered(details.invocation_metadata)
            places = self._places if who is None else self._known_places
        handler = self._handlers.get((method, who)) or self._made(
            method, who, continuation, details
        )
        try:
            if handler is None:
                raise SageError("RPC_UNKNOWN", "there is no such RPC")
            places.arrive(who)
        except SageError as error:
            return self._refusing(error)
        return handler

    def close(self) -> None:
        """End the threads; there must be no calls any more."""
        for places in (self._places, self._known_places, self._health_places):
            places.close()
        for threads in (self._known_threads, self._health_threads, self._turning_away):
            threads.shutdown()

    def _made(
        self, method: str, who: str | None, continuation: Callable[[Any], Any], details: Any
    ) -> Any:
        """A handler for the calls of one caller, or of those who are not known yet; None for
        methods that there are not.
        """
        inner = continuation(details) if method in ANYONE or method in PERMISSIONS else None
        if inner is None:
            return None
        if len(self._handlers) >= _MOST_HANDLERS:
            self._handlers.clear()
        handler = self._handlers[method, who] = (
            self._health(inner) if method in ANYONE else self._ours(method, who, inner)
        )
        return handler

    def _ours(self, method: str, who: str | None, inner: Any) -> Any:
        def enter(context: Any) -> tuple[Caller, CallPlace]:
            return self._entered(method, who, context)

        def first(incoming: Iterator[Any], context: Any, caller: Caller, place: CallPlace) -> Any:
            return self._first(method, incoming, context, caller, place)

        return _shaped(inner, enter, first, None if who is None else self._known_threads)

    def _health(self, inner: Any) -> Any:
        def enter(context: Any) -> tuple[None, CallPlace]:
            try:
                return None, self._health_places.enter(context.peer(), context.cancel, arrived=None)
            except SageError as error:
                context.abort_with_status(status_of(error))
                raise

        def first(incoming: Iterator[Any], context: Any, _caller: None, place: CallPlace) -> Any:
            try:
                return place.first(incoming)
            except StopIteration:
                context.abort_with_status(status_of(_nothing_said()))

        return _shaped(inner, enter, first, self._health_threads)

    def _entered(self, method: str, who: str | None, context: Any) -> tuple[Caller, CallPlace]:
        places = self._places if who is None else self._known_places
        caller = None
        try:
            caller = self._identified(context)
            if not method.startswith("/ptkstore.v1."):
                # Services of ours check the role themselves, with what the request names.
                caller.require_role(PERMISSIONS[method])
            self._allowance.take(caller.name)
        except Exception as error:
            places.turn_away(who)
            self._refuse(method, context, caller, error)
            raise
        try:
            return caller, places.enter(told_apart(caller, context), context.cancel, arrived=who)
        except SageError as error:
            self._refuse(method, context, caller, error)
            raise

    def _identified(self, context: Any) -> Caller:
        address = address_of(context.peer())
        limited = self._strangers.limited(address)
        try:
            return self._callers.identify(context, look=not limited)
        except AccessDenied:
            self._strangers.failed(address)
            raise

    def _first(
        self, method: str, incoming: Iterator[Any], context: Any, caller: Caller, place: CallPlace
    ) -> Any:
        try:
            return place.first(incoming)
        except (StopIteration, grpc.RpcError) as error:
            if place.ended:
                late = LimitExceeded(
                    "FIRST_MESSAGE_LATE", "the call's message did not come in time"
                )
                self._late(method, caller, late)
                context.abort_with_status(status_of(late))
            if isinstance(error, StopIteration):
                self._refuse(method, context, caller, _nothing_said())
            raise

    def _refusing(self, error: SageError) -> Any:
        status = status_of(error)

        def refuse(_incoming: Any, context: Any) -> Any:
            context.abort_with_status(status)

        refuse.experimental_thread_pool = self._turning_away  # type: ignore[attr-defined]
        return grpc.stream_unary_rpc_method_handler(refuse)


def _nothing_said() -> InvalidInput:
    return InvalidInput("REQUEST_UNREADABLE", "the call ended without a message")


def _shaped(inner: Any, enter: Any, first: Any, threads: ThreadPoolExecutor | None = None) -> Any:
    """A handler in the form that is given the call before its message, around one of any form; in
    ``threads`` if given.
    """
    serializers = (inner.request_deserializer, inner.response_serializer)
    act = inner.stream_stream or inner.unary_stream or inner.unary_unary

    def unary(incoming: Iterator[Any], context: Any) -> Any:
        caller, place = enter(context)
        try:
            return act(first(incoming, context, caller, place), context)
        finally:
            place.leave()

    def calling_back(incoming: Iterator[Any], context: Any, send: Any) -> None:
        caller, place = enter(context)
        try:
            act(first(incoming, context, caller, place), context, send)
        finally:
            # What is sent later comes from other threads.
            place.leave()

    def streaming(incoming: Iterator[Any], context: Any) -> Iterator[Any]:
        caller, place = enter(context)
        try:
            message = first(incoming, context, caller, place)
            yield from act(
                chain((message,), incoming) if inner.request_streaming else message, context
            )
        finally:
            place.leave()

    chosen: Any = unary if not inner.response_streaming else streaming
    if getattr(act, "experimental_non_blocking", False):
        chosen = calling_back
        chosen.experimental_non_blocking = True
    if threads is not None:
        chosen.experimental_thread_pool = threads
    if inner.response_streaming:
        return grpc.stream_stream_rpc_method_handler(chosen, *serializers)
    return grpc.stream_unary_rpc_method_handler(chosen, *serializers)
