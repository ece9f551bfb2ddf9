"""Whether a producer's records were taken is told to the producer alone: not to the log, the audit log or the metrics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from ptklib.errors import SageError
from ptkstore.client import Store
from ptkstore.server import Server
from tests.engine.small import day, spec
from tests.rpc.small import serving


def sound() -> pa.Table:
    return day(0, 50)


def beyond() -> pa.Table:
    table = sound()
    return table.set_column(table.schema.get_field_index("speed"), "speed", pa.array(np.full(50, 1e6)))


def missing() -> pa.Table:
    table = sound()
    return table.set_column(table.schema.get_field_index("speed"), "speed", pa.nulls(50, pa.float64()))


def far() -> pa.Table:
    """Years ahead of the oldest open block."""
    return day(4000, 50)


def told(server: Server, store: Store, table: pa.Table, reason: str | None) -> tuple[list[object], list[object], str]:
    """What everybody but the producer hears of one push: log, audit log without numbers and times, metrics."""
    with capture_logs() as logged, Store(server.address) as producer:
        if reason is None:
            producer.push("rides", table, producer="p", seq=0)
        else:
            with pytest.raises(SageError) as error:
                producer.push("rides", table, producer="p", seq=0)
            assert error.value.reason == reason
    server.stop()
    with store.home.metadata.read() as tx:
        written = [(one.who, one.what, one.subject, one.outcome) for one in tx.audit.list()]
    lines = generate_latest(server.metrics.registry).decode().splitlines()
    return list(logged), list(written), "\n".join(line for line in lines if "Append" in line)


def heard(path: Path, table: pa.Table, reason: str | None) -> tuple[list[object], list[object], str]:
    with serving(path) as (server, store):
        store.create_stream(spec(out_of_bounds="refuse"))
        return told(server, store, table, reason)


@pytest.mark.parametrize(
    ("make", "reason"), [(beyond, "RECORDS_REFUSED"), (missing, "RECORDS_REFUSED"), (far, "EVENT_TOO_FAR")]
)
def test_a_refused_batch_sounds_like_one_that_was_taken(tmp_path: Path, make: object, reason: str) -> None:
    taken = heard(tmp_path / "taken", sound(), None)
    refused = heard(tmp_path / "refused", make(), reason)  # type: ignore[operator]
    assert refused == taken
    assert taken[1]
    assert 'code="ENDED"' in taken[2]


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
