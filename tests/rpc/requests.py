"""Requests that tests of the server make again and again, and what they make of the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pyarrow as pa
import pytest

from ptkstore.v1 import ptk_pb2, stream_pb2
from ptkstore.wire.faults import error_of
from tests.engine.small import config, spec

__all__ = ["append", "create", "ipc", "refusal", "registration", "until"]


def refusal(act: Any) -> str:
    """Code and reason of a refusal."""
    with pytest.raises(grpc.RpcError) as error:
        act()
    return f"{error.value.code().name} {error_of(error.value).reason}"  # type: ignore[attr-defined, unused-ignore]


def create(streams: Any, request_id: str = "", **changes: Any) -> stream_pb2.CreateStreamResponse:
    request = stream_pb2.CreateStreamRequest(
        request_id=request_id, spec_json=spec(**changes).to_json_text()
    )
    made: stream_pb2.CreateStreamResponse = streams.CreateStream(request)
    return made


def registration(
    name: str = "a", request_id: str = "", target: float = 0.3
) -> ptk_pb2.RegisterPtkRequest:
    return ptk_pb2.RegisterPtkRequest(
        request_id=request_id,
        name=name,
        stream="rides",
        kind="statistics",
        config_json=json.dumps(config()),
        target=target,
    )


def ipc(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def append(
    streams: Any, *batches: bytes, producer: str = "p", fingerprint: str = "", first: int = 0
) -> list[int]:
    def requests() -> Iterator[stream_pb2.AppendRequest]:
        yield stream_pb2.AppendRequest(
            open=stream_pb2.AppendOpen(
                stream="rides", producer=producer, schema_fingerprint=fingerprint
            )
        )
        for seq, data in enumerate(batches, first):
            yield stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=seq, arrow_ipc=data))

    return [ack.seq for ack in streams.Append(requests())]


def until(holds: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except grpc.RpcError:
            pass
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")
