"""Tells subscribers of new states: at least once, in the order of the versions, for each PTK and
endpoint by itself.

A subscription has a mark, the version up to which it was told. Whatever is beyond it is sent, one
version after the other. What does not arrive is tried again after a while that doubles, with
jitter, and holds up only its own subscription; after `MAX_ATTEMPTS` it is given up as a dead letter
and the next version has its turn. `RetryDelivery` brings a dead letter back. A crash between the
call and the mark sends a version twice, never none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
import structlog

from ptklib.errors import Refused, SageError
from ptkstore.api.views import StateView
from ptkstore.backoff import Backoff
from ptkstore.engine.notices import deliveries
from ptkstore.metadata import Metadata, rows
from ptkstore.rpc.feeds.endpoints import Target, resolved
from ptkstore.rpc.gate.metrics import Metrics
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc
from ptkstore.wire.messages import state_message

__all__ = ["MAX_ATTEMPTS", "Deliverer", "Pace"]

MAX_ATTEMPTS = 12
_BACKOFF = Backoff(first_seconds=0.5, longest_seconds=300.0)
_LOG = structlog.get_logger("sage.deliveries")


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast deliveries are tried."""

    backoff: Backoff = _BACKOFF
    deadline_seconds: float = 10.0
    poll_seconds: float = 2.0
    attempts: int = MAX_ATTEMPTS

    def delay_ms(self, attempts: int) -> int:
        """How long to wait after so many failures."""
        return int(1000 * self.backoff.seconds(attempts))


class Deliverer:
    """A thread that finds out what is due, and a few that call."""

    def __init__(
        self,
        metadata: Metadata,
        now_ms: Callable[[], int],
        metrics: Metrics,
        *,
        allowed: Sequence[str],
        credentials: object = None,
        pace: Pace | None = None,
        threads: int = 8,
    ) -> None:
        """``credentials`` are those of gRPC channels; without them subscribers are called in plain
        text.
        """
        self._metadata = metadata
        self._now_ms = now_ms
        self._metrics = metrics
        self._allowed = tuple(allowed)
        self._credentials = credentials
        self._pace = pace or Pace()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sage-deliver")
        self._channels: dict[Target, grpc.Channel] = {}
        self._busy: set[int] = set()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sage-deliveries", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look for what is due."""
        self._woken.set()

    def close(self) -> None:
        """Stop after the calls that are under way."""
        self._stopping.set()
        self._woken.set()
        self._thread.join()
        self._pool.shutdown()
        for channel in self._channels.values():
            channel.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            wait = self._pace.poll_seconds
            try:
                wait = min(wait, self._hand_out())
            except SageError as error:
                _LOG.warning("stuck", reason=error.reason)
            except (
                Exception
            ) as error:  # a defect; without this thread nobody would be told of anything any more
                _LOG.error("failed", error=type(error).__name__)
            self._woken.wait(max(0.01, wait))

    def _hand_out(self) -> float:
        """Give every subscription that has something due to a thread; seconds until the next one is
        due.
        """
        now_ms, next_ms = self._now_ms(), None
        due_times = deliveries.due_times(self._metadata, now_ms)
        self._close_unused({subscription.endpoint for subscription, _ in due_times})
        for subscription, due_ms in due_times:
            if due_ms is None:
                continue
            if due_ms > now_ms:
                next_ms = due_ms if next_ms is None else min(next_ms, due_ms)
                continue
            with self._lock:
                if subscription.id in self._busy:
                    continue
                self._busy.add(subscription.id)
            self._pool.submit(self._deliver, subscription)
        return self._pace.poll_seconds if next_ms is None else (next_ms - now_ms) / 1000

    def _deliver(self, subscription: rows.Subscription) -> None:
        """Send what is due to one subscription, until nothing is or something does not arrive."""
        arrived = stuck = True
        try:
            while arrived and not self._stopping.is_set():
                due = deliveries.next_due(self._metadata, subscription, self._now_ms())
                if due is None:
                    break
                arrived = self._send(subscription, *due)
            stuck = False
        except SageError as error:
            _LOG.warning("stuck", subscription=subscription.id, reason=error.reason)
        except Exception as error:
            _LOG.error("failed", subscription=subscription.id, error=type(error).__name__)
        finally:
            with self._lock:
                self._busy.discard(subscription.id)
                last = not self._busy
            # Something may have come up after the last look. Not after each of a thousand: every
            # look is at all of them. And one that could not be marked is told again, but not at
            # once: while the metadata cannot be written that would go on and on.
            if (last or not arrived) and not stuck:
                self._woken.set()

    def _send(self, subscription: rows.Subscription, state: StateView, attempts: int) -> bool:
        """True when it arrived."""
        reason = self._called(subscription.endpoint, state)
        attempts += 1
        dead = reason is not None and attempts >= self._pace.attempts
        self._metrics.deliveries.labels(
            "arrived" if reason is None else "given_up" if dead else "late"
        ).inc()
        if reason is None:
            return deliveries.mark_told(self._metadata, subscription.id, state.version)
        failure = deliveries.Failure(
            attempts=attempts,
            reason=reason,
            due_ms=self._now_ms() + self._pace.delay_ms(attempts),
            dead=dead,
        )
        if not deliveries.mark_failed(self._metadata, subscription.id, state.version, failure):
            return False
        _LOG.warning(
            "late",
            subscription=subscription.id,
            version=state.version,
            attempts=attempts,
            reason=reason,
        )
        return dead

    def _called(self, endpoint: str, state: StateView) -> str | None:
        """None when the subscriber took it, else why not: the name of a gRPC code, never a text of
        theirs.
        """
        try:
            target = resolved(endpoint, self._allowed)
        except Refused as refusal:
            return refusal.reason
        except (OSError, UnicodeError):
            return "UNAVAILABLE"  # the name stands for nothing at the moment
        stub = ptk_pb2_grpc.SubscriberServiceStub(self._channel(target))
        request = ptk_pb2.NotifyNewPtkStateRequest(state=state_message(state))
        try:
            stub.NotifyNewPtkState(request, timeout=self._pace.deadline_seconds)
        except grpc.RpcError as failure:
            return str(failure.code().name)
        return None

    def _close_unused(self, endpoints: set[str]) -> None:
        """Close the channels to endpoints that nobody subscribes any more, at a moment when no
        channel is used.
        """
        with self._lock:
            over = (
                []
                if self._busy
                else [channel for channel in self._channels if channel.endpoint not in endpoints]
            )
            channels = [self._channels.pop(target) for target in over]
        for channel in channels:
            channel.close()

    def _channel(self, target: Target) -> grpc.Channel:
        """A channel to the address that was judged; a name would be looked up again."""
        with self._lock:
            if target not in self._channels:
                options = [
                    ("grpc.default_authority", target.endpoint),
                    ("grpc.ssl_target_name_override", target.host),
                    ("grpc.enable_http_proxy", 0),
                    ("grpc.max_receive_message_length", 1 << 16),
                    # When to try again is decided here.
                    ("grpc.initial_reconnect_backoff_ms", 100),
                    ("grpc.max_reconnect_backoff_ms", 2_000),
                ]
                self._channels[target] = (
                    grpc.insecure_channel(target.address, options=options)
                    if self._credentials is None
                    else grpc.secure_channel(target.address, self._credentials, options=options)
                )
            return self._channels[target]
