"""Spans tell of calls and steps by name and code, and of nothing that depends on records."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ptklib.errors import SageError
from ptkstore import Store, tracing
from ptkstore.api.permissions import PERMISSIONS, is_counted
from ptkstore.api.times import GRAIN_MS
from ptkstore.engine.window.cycle import STEPS
from ptkstore.v1 import operation_pb2, operation_pb2_grpc
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.small import channel_to, serving
from tests.rpc.test_deliveries import until

CALL = {"rpc.system", "rpc.service", "rpc.method", "sage.code"}
STEP = {"sage.stream", "sage.window", "sage.step"}


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    found = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("sage"))
    yield found
    provider.shutdown()


def told(
    path: Path, table: pa.Table, exporter: InMemorySpanExporter, reason: str = ""
) -> list[ReadableSpan]:
    """The spans of a push, a window and some reads."""
    exporter.clear()
    with serving(path) as (server, store), Store(server.address) as remote:
        store.create_stream(spec(out_of_bounds="refuse"))
        store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.2)
        try:
            remote.push("rides", table, producer="p", seq=0)
        except SageError as refusal:
            if refusal.reason != reason:
                raise
        remote.run("rides", until_ms=FIRST_MS + DAY_MS)
        with pytest.raises(SageError, match="PTK_UNKNOWN"):
            remote.ptk(f"{CANARY}-nobody")
    # Whether a watcher leaves before or after the end is a matter of chance.
    return [one for one in exporter.get_finished_spans() if "/WatchOperation" not in one.name]


def test_a_watcher_that_leaves_is_told_of(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    with serving(tmp_path) as (server, store), channel_to(server) as channel:
        store.create_stream(spec())
        call = operation_pb2_grpc.EventServiceStub(channel).WatchEvents(
            operation_pb2.WatchEventsRequest()
        )
        assert next(call).event.kind == "stream.created"
        call.cancel()
        until(exporter.get_finished_spans)
        (span,) = exporter.get_finished_spans()
    assert span.name == "ptkstore.v1.EventService/WatchEvents"
    assert (span.attributes or {})["sage.code"] == "CANCELLED"


def facts(spans: list[ReadableSpan]) -> list[tuple[str, tuple[tuple[str, Any], ...]]]:
    return sorted((one.name, tuple(sorted((one.attributes or {}).items()))) for one in spans)


def test_every_call_and_every_step_has_a_span(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    spans = told(tmp_path, day(0), exporter)
    steps = [one for one in spans if one.name.startswith("cycle/")]
    assert [(one.attributes or {})["sage.step"] for one in steps] == list(STEPS)
    for one in spans:
        assert set(one.attributes or {}) == (STEP if one in steps else CALL)
        assert one.start_time is not None
        assert one.end_time is not None
        assert not one.events
        assert CANARY not in one.to_json()
    codes = {one.name: (one.attributes or {})["sage.code"] for one in spans if one not in steps}
    assert not [name for name in codes if not is_counted(f"/{name}")], (
        "how often a stream is fed is nobody's business"
    )
    assert codes["ptkstore.v1.StreamService/CloseWindow"] == "OK"
    assert codes["ptkstore.v1.PtkService/GetPtk"] == "NOT_FOUND"


def test_what_opens_records_has_no_length(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    timed = set()
    for one in told(tmp_path, day(0), exporter):
        assert one.start_time is not None
        assert one.end_time is not None
        if one.end_time > one.start_time:
            timed.add(one.name)
    quiet = {f"cycle/{step}" for step in tracing.QUIET_STEPS}
    quiet |= {name.removeprefix("/") for name, one in PERMISSIONS.items() if one.records}
    assert not timed & quiet
    assert {"cycle/planned", "ptkstore.v1.PtkService/GetPtk"} <= timed


def test_no_two_spans_of_a_window_tell_what_lies_between_them(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    grain = GRAIN_MS * 1_000_000
    quiet = {name.removeprefix("/") for name, one in PERMISSIONS.items() if one.records}
    coarse = [
        one
        for one in told(tmp_path, day(0), exporter)
        if one.name.startswith("cycle/") or one.name in quiet
    ]
    assert len(coarse) > len(STEPS)
    assert {(one.end_time or 1) % grain for one in coarse} == {0}


def test_records_that_are_refused_or_few_give_the_same_spans(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    table = day(0)
    fast = table.set_column(2, "speed", pa.array(np.full(4000, 1e6)))
    whole = facts(told(tmp_path / "whole", table, exporter))
    assert facts(told(tmp_path / "few", day(0, 5), exporter)) == whole
    assert facts(told(tmp_path / "refused", fast, exporter, "RECORDS_REFUSED")) == whole


def test_without_opentelemetry_nothing_is_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    tracing._tracer.cache_clear()
    try:
        assert tracing._tracer() is None
        with Store(tmp_path, workers=0) as store:
            store.create_stream(spec())
            with tracing.window(store.parts.observers, "rides", 1):
                assert store.parts.observers._observers == ()
            tracing.call_ended("/a.B/C", "OK", 0.1)
    finally:
        tracing._tracer.cache_clear()
