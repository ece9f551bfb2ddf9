"""Every call goes through here: who is it, may they, write it down, do it once, and tell errors as
statuses.

A service is an object with one method per RPC, in snake case: ``register_ptk(request, call) ->
response``, an iterator of responses where the RPC streams them, and an iterator of requests in
place of the request where the caller streams. Requests are parsed here, so that bytes which are no
message are the caller's mistake and not a failure of the server.

Reasons: REQUEST_UNREADABLE, DEADLINE_PASSED, RPC_UNKNOWN.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import grpc
import structlog
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ptklib.encoding.error_place import place_of
from ptklib.errors import InvalidInput, SageError
from ptkstore.api.permissions import PERMISSIONS, Permission, is_counted
from ptkstore.api.telling import told
from ptkstore.metadata.access.audit import Decision
from ptkstore.rpc.gate.auditing import Auditor
from ptkstore.rpc.gate.idempotency import UNKEPT, Once, Repeats
from ptkstore.rpc.gate.identity import ANONYMOUS, Caller, Callers, denied, told_apart
from ptkstore.rpc.gate.metrics import Metrics
from ptkstore.wire.faults import AccessDenied, ServerUnavailable, code_of, status_of

__all__ = ["Call", "Dispatcher", "calls_back", "parse"]

Work = TypeVar("Work", bound=Callable[..., Any])

_MAX_SUBJECT = 100
_LOG = structlog.get_logger("sage.rpc")
# Who called, where that is not known.
_STRANGER = replace(ANONYMOUS, name="unknown", roles=frozenset())


@dataclass(frozen=True)
class Call:
    """One call as a service sees it.

    A mutation keeps its answer with its change, through ``once``.
    """

    method: str
    caller: Caller
    context: Any
    permission: Permission
    once: Once = UNKEPT

    @property
    def who(self) -> str:
        """Whose places it takes."""
        return told_apart(self.caller, self.context)


@dataclass(frozen=True)
class Dispatcher:
    """Wraps the services.

    ``stream_of`` gives the stream of a PTK, or None for one that there is not.
    """

    callers: Callers
    auditor: Auditor
    repeats: Repeats
    metrics: Metrics
    stream_of: Callable[[str], str | None]
    now_ms: Callable[[], int]
    # Called after every mutation.
    changed: Callable[[], None]

    def handler(self, descriptor: ServiceDescriptor, service: object) -> Any:
        """What a gRPC server takes: every RPC of the contract, wrapped."""
        handlers = {method.name: self._handler(method, service) for method in descriptor.methods}
        return grpc.method_handlers_generic_handler(descriptor.full_name, handlers)

    def _handler(self, rpc: MethodDescriptor, service: object) -> Any:
        name = f"/{rpc.containing_service.full_name}/{rpc.name}"
        work = getattr(service, _snake(rpc.name))
        request = GetMessageClass(rpc.input_type)
        if rpc.client_streaming:
            return grpc.stream_stream_rpc_method_handler(
                lambda incoming, context: self._stream(
                    name, context, lambda call: work(incoming, call)
                )
            )
        if rpc.server_streaming and getattr(work, "calls_back", False):
            return grpc.unary_stream_rpc_method_handler(self._calling_back(name, request, work))
        if rpc.server_streaming:
            return grpc.unary_stream_rpc_method_handler(
                lambda data, context: self._stream(
                    name, context, lambda call: work(self._asked(request, data, call), call)
                )
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda data, context: self._unary(name, context, request, data, work)
        )

    def _unary(
        self, method: str, context: Any, kind: type[Message], data: bytes, work: Any
    ) -> bytes:
        begin = time.perf_counter()
        call, subject = None, ""
        try:
            call = self._enter(method, context)
            request = parse(kind, data)
            subject = _subject(request, call.permission)
            self._check_subject(request, call)
            if call.permission.mutates:
                answer = self._mutate(request, call, subject, work)
            else:
                self._written(self._decision(call.caller, method, subject, "ALLOWED"))
                answer = work(request, call).SerializeToString()
        except Exception as error:
            self._fail(method, context, call, subject, error, time.perf_counter() - begin)
        self._count(method, "OK", time.perf_counter() - begin)
        return answer

    def _mutate(self, request: Any, call: Call, subject: str, work: Any) -> bytes:
        remaining = call.context.time_remaining()
        if remaining is not None and remaining <= 0:
            raise ServerUnavailable(
                "DEADLINE_PASSED", "the caller's time was over before the work began"
            )
        self.auditor.now(self._decision(call.caller, call.method, subject, "ALLOWED"))

        def do(once: Once) -> bytes:
            done: bytes = work(request, replace(call, once=once)).SerializeToString()
            return done

        answer = self.repeats.once(call.caller.name, call.method, request, do)
        self.changed()
        _LOG.info("changed", method=call.method, who=call.caller.name, subject=subject)
        return answer

    def _stream(
        self, method: str, context: Any, work: Callable[[Call], Iterator[Message]]
    ) -> Iterator[bytes]:
        call = None
        try:
            call = self._enter(method, context)
            for message in work(call):
                yield message.SerializeToString()
        except GeneratorExit:
            self._count_stream(method, gone=True)
            raise
        except Exception as error:
            self._fail(method, context, call, "", error, None)
        self._count_stream(method, gone=not context.is_active())

    def _calling_back(self, method: str, kind: type[Message], work: Any) -> Any:
        """A handler that returns at once; what it sends comes from other threads."""

        def handle(data: bytes, context: Any, send: Any) -> None:
            call = None
            try:
                call = self._enter(method, context)
                work(self._asked(kind, data, call), call, send)
            except Exception as error:
                self._fail(method, context, call, "", error, None)
            # Either the caller has gone, or we ended the call with a status.
            ended = context.code
            context.add_callback(
                lambda: self.metrics.called(method, getattr(ended(), "name", "CANCELLED"), None)
            )

        handle.experimental_non_blocking = True  # type: ignore[attr-defined]
        return handle

    def _asked(self, kind: type[Message], data: bytes, call: Call) -> Any:
        """The request of an RPC that streams its answers."""
        request = parse(kind, data)
        subject = _subject(request, call.permission)
        self._check_subject(request, call)
        self._written(self._decision(call.caller, call.method, subject, "ALLOWED"))
        return request

    def admit(self, call: Call, subject: str) -> None:
        """Write down that a stream of requests was let in; for services that learn the subject from
        the first of them. Once a day: how often a stream is fed is between the producer and us.
        """
        self.auditor.daily(self._decision(call.caller, call.method, subject, "ALLOWED"))

    def _enter(self, method: str, context: Any) -> Call:
        caller = self.callers.identify(context)
        permission = PERMISSIONS.get(method)
        if permission is None:
            raise denied("this RPC is in nobody's reach")
        caller.require_role(permission)
        return Call(method, caller, context, permission)

    def refuse(self, method: str, context: Any, caller: Caller | None, error: Exception) -> None:
        """Abort a call on its way in, and write it down. Never returns."""
        self._end(method, context, caller or _STRANGER, "", error, None)

    def cancelled(self, method: str, caller: Caller, error: SageError) -> None:
        """Write down that a call was cancelled on its way in."""
        self._write_down(method, caller, "", error, None)

    def _check_subject(self, request: Any, call: Call) -> None:
        if not call.caller.limited or call.permission.scope != "named":
            return
        stream = getattr(request, call.permission.stream) if call.permission.stream else None
        if call.permission.ptk:
            ptk = getattr(request, call.permission.ptk)
            call.caller.require_ptk(ptk, stream if stream is not None else self.stream_of(ptk))
        elif stream is not None:
            call.caller.require_stream(stream)

    def _count_stream(self, method: str, *, gone: bool) -> None:
        """Count a call that streamed; ``gone`` when the caller left before the end."""
        self.metrics.called(method, "CANCELLED" if gone else "OK", None)

    def _count(self, method: str, code: str, seconds: float | None) -> None:
        permission = PERMISSIONS.get(method)
        timed = permission is not None and not permission.records
        self.metrics.called(method, code, seconds if timed else None)

    def _written(self, decision: Decision) -> bool:
        """Write down a reading or a refusal; True when it is there by itself, and not counted with
        others.
        """
        write = self.auditor.tally if is_counted(decision.what) else self.auditor.daily
        return write(decision)

    def _decision(self, caller: Caller, method: str, subject: str, outcome: str) -> Decision:
        return Decision(self.now_ms(), caller.name, method, subject, outcome)

    def _fail(
        self,
        method: str,
        context: Any,
        call: Call | None,
        subject: str,
        error: Exception,
        seconds: float | None,
    ) -> None:
        """Abort the call. Never returns."""
        fault = told(error)
        if call is not None and call.permission.records == "carries" and not _blameless(fault):
            # What was wrong with its records is between the producer and us: nobody else is told
            # that anything was.
            context.abort_with_status(status_of(fault))
        caller = call.caller if call is not None else _unknown(self.callers, context)
        self._end(method, context, caller, subject, error, seconds)

    def _end(
        self,
        method: str,
        context: Any,
        caller: Caller,
        subject: str,
        error: Exception,
        seconds: float | None,
    ) -> None:
        context.abort_with_status(
            status_of(self._write_down(method, caller, subject, error, seconds))
        )

    def _write_down(
        self, method: str, caller: Caller, subject: str, error: Exception, seconds: float | None
    ) -> SageError:
        """Count, log and audit a call that failed; what its caller is told."""
        fault = told(error)
        ours = fault is error
        outcome = "DENIED" if isinstance(fault, AccessDenied) else fault.reason
        fresh = True
        try:
            fresh = self._written(self._decision(caller, method, subject, outcome))
        except SageError as unwritable:
            fault = unwritable
        code = code_of(fault)
        self._count(method, code.name, seconds)
        note = {"method": method, "who": caller.name, "code": code.name, "reason": fault.reason}
        if ours and fresh:
            _LOG.info("refused", **note)
        elif not ours and (fresh or is_counted(method)):
            _LOG.error("failed", **note, error=type(error).__name__, where=place_of(error))
        return fault


def calls_back(work: Work) -> Work:
    """Mark an RPC that takes ``send`` and returns at once: ``send(bytes)`` sends a message from any
    thread, ``send(None)`` ends the call.
    """
    work.calls_back = True  # type: ignore[attr-defined]
    return work


def parse(kind: type[Message], data: bytes) -> Any:
    """A message from its bytes. Reason: REQUEST_UNREADABLE."""
    try:
        return kind.FromString(data)
    except (DecodeError, ValueError, RecursionError):
        raise InvalidInput(
            "REQUEST_UNREADABLE", f"these bytes are no {kind.DESCRIPTOR.name}"
        ) from None


def _blameless(fault: SageError) -> bool:
    """True when a call failed for reasons that no record can have: access, or trouble of ours."""
    ours = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL)
    return isinstance(fault, AccessDenied) or code_of(fault) in ours


def _subject(request: Any, permission: Permission) -> str:
    """What a request is about, for the log: a name of ours, or nothing that could be mistaken for
    one.
    """
    field = permission.ptk or permission.stream
    subject = str(getattr(request, field)) if field else _name_in(getattr(request, "spec_json", ""))
    return subject if len(subject) <= _MAX_SUBJECT and subject.isprintable() else "(no name)"


def _name_in(spec_json: str) -> str:
    """The name in what describes a new stream, as far as it can be read."""
    try:
        described = json.loads(spec_json) if spec_json else None
    except (ValueError, RecursionError):
        return ""
    return str(described.get("name", "")) if isinstance(described, dict) else ""


def _unknown(callers: Callers, context: Any) -> Caller:
    """The caller of a call that was not let in, as far as it is known."""
    try:
        return callers.identify(context)
    except Exception:
        return _STRANGER


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
