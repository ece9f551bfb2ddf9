"""Metrics for Prometheus: calls by RPC and outcome, and how long they took. Nothing that depends on
records.

Numbers of calls, batches or bytes would tell how many records a stream gets: calls that carry
records, or that announce them, are in no series and no span. Calls whose time grows with the
records that are held are not timed.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from ptkstore.api.permissions import is_counted
from ptkstore.tracing import call_ended

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        """All at zero."""
        # Series that say to the millisecond when something was first counted.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "sage_calls",
            "RPCs by method and gRPC code.",
            ["method", "code"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "sage_call_seconds",
            "Time of unary RPCs.",
            ["method"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.deliveries = Counter(
            "sage_deliveries",
            "Calls to subscribers by outcome.",
            ["outcome"],
            registry=self.registry,
        )

    def called(self, method: str, code: str, seconds: float | None) -> None:
        """Count a call, and tell of it where calls are traced, unless it is not counted;
        ``seconds`` for unary ones.
        """
        if not is_counted(method):
            return
        self.calls.labels(method, code).inc()
        call_ended(method, code, seconds)
        if seconds is not None:
            self.seconds.labels(method).observe(seconds)
