"""Spans for OpenTelemetry, where it is installed (``pip install 'ptkstore[otel]'``): one per call
and one per step of a window.

Whoever runs the process chooses where spans go, with OpenTelemetry's own variables and SDK; without
one they go nowhere. A span says what was done, to which stream, in which window, and how it ended.
It never carries a size, a number of records, a message or anything that was read. How long
something takes that opens records depends on how many there are: such spans have no length, and no
span of a window says to the second when it ended, for what lies between two of them is a length as
well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ptkstore.api.times import public_ms

__all__ = ["QUIET_STEPS", "call_ended", "window"]

# The steps of a cycle that open records, or whose work grows with them.
QUIET_STEPS = frozenset(("sealed", "profiled", "trained", "validated", "expired"))
_NANO = 1_000_000_000
_NANO_OF_MS = 1_000_000


def call_ended(method: str, code: str, seconds: float | None) -> None:
    """A call to ``/service/Method`` has ended.

    ``seconds`` None: how long it took is nobody's business.
    """
    tracer = _tracer()
    if tracer is None:
        return
    service, _, name = method.removeprefix("/").rpartition("/")
    attributes = {
        "rpc.system": "grpc",
        "rpc.service": service,
        "rpc.method": name,
        "sage.code": code,
    }
    _span(tracer, f"{service}/{name}", attributes, seconds or 0.0, coarse=seconds is None)


@contextmanager
def window(observers: Any, stream: str, number: int) -> Iterator[None]:
    """Tell of every step of a window that is written in this block, as one of the ``observers`` of
    the store's windows.
    """
    tracer = _tracer()
    if tracer is None:
        yield
        return
    begun: dict[str, float] = {}

    def heard(step: str, moment: str) -> None:
        if moment == "begins":
            begun[step] = time.monotonic()
        elif moment == "written" and step in begun:
            seconds = 0.0 if step in QUIET_STEPS else time.monotonic() - begun[step]
            attributes = {"sage.stream": stream, "sage.window": number, "sage.step": step}
            _span(tracer, f"cycle/{step}", attributes, seconds, coarse=True)

    with observers.watching(heard):
        yield


def _span(
    tracer: Any, name: str, attributes: Mapping[str, object], seconds: float, *, coarse: bool
) -> None:
    """A span that ends now, or ``coarse``: at the time of now that is public."""
    end = time.time_ns()
    if coarse:
        end = public_ms(end // _NANO_OF_MS) * _NANO_OF_MS
    span = tracer.start_span(name, attributes=attributes, start_time=end - int(seconds * _NANO))
    span.end(end)


@lru_cache(maxsize=1)
def _tracer() -> Any:
    """OpenTelemetry's tracer for us, or None where it is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("sage")
