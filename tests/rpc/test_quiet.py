"""Whether a producer's records were taken is told to the producer alone: not to the log, the audit
log or the metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from ptklib.errors import SageError
from ptkstore import Store, tracing
from ptkstore.server import Server
from tests.engine.small import day, spec
from tests.rpc.small import serving


def sound() -> pa.Table:
    return day(0, 50)


def beyond() -> pa.Table:
    table = sound()
    return table.set_column(
        table.schema.get_field_index("speed"), "speed", pa.array(np.full(50, 1e6))
    )


def missing() -> pa.Table:
    table = sound()
    return table.set_column(
        table.schema.get_field_index("speed"), "speed", pa.nulls(50, pa.float64())
    )


def far() -> pa.Table:
    """Years ahead of the oldest open block."""
    return day(4000, 50)


def told(
    server: Server, store: Store, table: pa.Table, reason: str | None
) -> tuple[list[object], list[object], str]:
    """What everybody but the producer hears of one push: log, audit log without numbers and times,
    metrics.
    """
    with capture_logs() as logged, Store(server.address) as producer:
        if reason is None:
            producer.push("rides", table, producer="p", seq=0)
        else:
            with pytest.raises(SageError) as error:
                producer.push("rides", table, producer="p", seq=0)
            assert error.value.reason == reason
    server.stop()
    with store.parts.metadata.read() as tx:
        written = [(one.who, one.what, one.subject, one.outcome) for one in tx.audit.list()]
    return list(logged), list(written), generate_latest(server.metrics.registry).decode()


def heard(
    path: Path, table: pa.Table, reason: str | None
) -> tuple[list[object], list[object], str]:
    with serving(path) as (server, store):
        store.create_stream(spec(out_of_bounds="refuse"))
        return told(server, store, table, reason)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(beyond, "RECORDS_REFUSED"), (missing, "RECORDS_REFUSED"), (far, "EVENT_TOO_FAR")],
)
def test_a_refused_batch_sounds_like_one_that_was_taken(
    tmp_path: Path, make: object, reason: str
) -> None:
    taken = heard(tmp_path / "taken", sound(), None)
    refused = heard(tmp_path / "refused", make(), reason)  # type: ignore[operator]
    assert refused == taken
    assert taken[1]


class Outside:
    """What somebody sees of a server who has no business with its records: everything but the
    answers to the producer.
    """

    def __init__(self, server: Server, store: Store, spans: InMemorySpanExporter) -> None:
        self._server, self._store, self._spans = server, store, spans

    def seen(self) -> dict[str, object]:
        """Every series of the registry, every entry of the audit log, every span and every line of
        the log so far.
        """
        self._server._auditor.flush()
        with self._store.parts.metadata.read() as tx:
            audit = [
                (one.at_ms, one.who, one.what, one.subject, one.outcome, one.times)
                for one in tx.audit.list()
            ]
            events = [(one.kind, one.subject, one.body) for one in tx.events.after(0)]
        series = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self._server.metrics.registry.collect()
            for sample in family.samples
        }
        spans = [(one.name, dict(one.attributes or {})) for one in self._spans.get_finished_spans()]
        return {"series": series, "audit": audit, "events": events, "spans": spans}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    found = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("sage"))
    yield found
    provider.shutdown()


@pytest.mark.parametrize(
    ("calls", "batches", "rows"), [(1, 1, 1), (2, 1, 50), (1, 7, 50), (9, 3, 400)]
)
def test_nothing_anywhere_changes_with_how_often_or_how_much_is_pushed(
    tmp_path: Path, spans: InMemorySpanExporter, calls: int, batches: int, rows: int
) -> None:
    with serving(tmp_path) as (server, store), capture_logs() as logged:
        store.create_stream(spec(out_of_bounds="refuse"))
        outside = Outside(server, store, spans)

        def push(producer: str) -> None:
            batch = day(0, rows).combine_chunks().to_batches()[0]
            with Store(server.address) as remote:
                remote.push(
                    "rides", pa.Table.from_batches([batch] * batches), producer=producer, seq=0
                )

        push("p")
        with Store(server.address) as remote:
            remote.streams()
        before, said = outside.seen(), len(logged)
        assert before["audit"], "there is something to see"
        for number in range(calls):
            push(f"p{number}")
        assert outside.seen() == before
        assert not logged[said:]


def test_calls_that_grow_with_what_is_held_are_counted_and_not_timed(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, store):
        store.create_stream(spec())
        with Store(server.address) as operator:
            operator.doctor()
            operator.streams()
        lines = generate_latest(server.metrics.registry).decode()
    assert 'sage_calls_total{code="OK",method="/ptkstore.v1.OperationService/RunDoctor"}' in lines
    assert 'sage_call_seconds_count{method="/ptkstore.v1.StreamService/ListStreams"}' in lines
    assert 'sage_call_seconds_count{method="/ptkstore.v1.OperationService/RunDoctor"}' not in lines
    assert "_created" not in lines, "when a call was counted first is when it ended"
