"""Bytes of strangers: nothing breaks the server, what is wrong is the caller's mistake, and nothing
is repeated to anybody.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.client.push import batch_request
from ptkstore.rpc.services.arrow import read_batch
from ptkstore.server import Server
from ptkstore.streams.blocks.encoding import Encoding
from ptkstore.v1 import ptk_pb2, stream_pb2
from ptkstore.wire.batches import framed, unframed
from ptkstore.wire.faults import error_of
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, day, spec
from tests.rpc.calling import SERVED
from tests.rpc.requests import append, ipc, registration
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled

CALLERS_FAULT = {
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
    "OK",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Store]]:
    with serving(tmp_path_factory.mktemp("store"), server={"calls_per_second": 0}) as (
        server,
        store,
    ):
        filled(store)
        yield server, store


def refused(act: Any) -> InvalidInput | None:
    """How it was refused, or None."""
    try:
        act()
    except InvalidInput as error:
        return error
    return None


def outcome(channel: grpc.Channel, method: str, *bodies: bytes) -> str:
    failure = None
    try:
        if method.endswith("/Append"):
            list(channel.stream_stream(method)(iter(bodies), timeout=10))
        elif method.rpartition("/")[2] in (
            "ReadState",
            "WatchPtk",
            "WatchOperation",
            "WatchEvents",
        ):
            call = channel.unary_stream(method)(
                bodies[0], timeout=1 if method.endswith("/WatchPtk") else 10
            )
            next(call, None)
            call.cancel()
        else:
            channel.unary_unary(method)(bodies[0], timeout=10)
    except grpc.RpcError as error:
        failure = error
    if failure is None:
        return "OK"
    if method.endswith("/WatchPtk") and failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "OK"  # it waits for a state
    assert CANARY not in str(failure)
    assert error_of(failure).reason != "INTERNAL_ERROR", method
    return str(failure.code().name)


# Asked of those that answer at once; those that would wait for events are sent bytes that are no
# message.
WAITING = ("WatchEvents", "RunDoctor", "CloseWindow", "SealStream", "CreateStream", "ApprovePlan")


def test_bytes_that_are_no_message_are_the_callers_mistake(served: tuple[Server, Store]) -> None:
    with channel_to(served[0]) as channel:
        for method in SERVED:
            for body in (b"\xff", b"\x0a\xff\xff\xff\xff\x7f", b"\x00" * 100):
                assert outcome(channel, method, body) == "INVALID_ARGUMENT", method


def test_random_messages_never_break_anything(served: tuple[Server, Store]) -> None:
    """Every field of every request filled with what nobody would send."""
    rng = random.Random(7)
    texts = [
        "",
        "a",
        "hour-speed",
        "rides",
        "\x00",
        "é" * 300,
        "x" * 100_000,
        "{}",
        '{"a":',
        "[[[[",
        "' OR 1=1",
        "9" * 30,
        "-1",
    ]
    numbers = [0, 1, -1, 2**31 - 1, -(2**31)]
    with channel_to(served[0]) as channel:
        for method in SERVED:
            if method.rpartition("/")[2] in (*WAITING, "Append"):
                continue
            kind = _request_of(method)
            for _ in range(12):
                request = kind()
                for field in kind.DESCRIPTOR.fields:
                    value: Any = None
                    if field.type == field.TYPE_STRING:
                        value = rng.choice(texts)
                    elif field.type in (field.TYPE_INT32, field.TYPE_INT64, field.TYPE_UINT64):
                        value = rng.choice(
                            numbers[:4] if field.type != field.TYPE_UINT64 else [0, 1, 2**63]
                        )
                    elif field.type == field.TYPE_DOUBLE:
                        value = rng.choice(
                            [0.0, -1.0, 0.5, float("nan"), float("inf"), 1e308, 5e-324]
                        )
                    if value is None or rng.random() < 0.3:
                        continue
                    if field.is_repeated if hasattr(field, "is_repeated") else field.label == 3:
                        getattr(request, field.name).extend([value] * rng.choice([1, 3, 200]))
                    else:
                        setattr(request, field.name, value)
                assert outcome(channel, method, request.SerializeToString()) in CALLERS_FAULT, (
                    method,
                    request,
                )
        assert outcome(channel, "/ptkstore.v1.StreamService/ListStreams", b"") == "OK"


def test_configurations_and_specifications_from_nowhere(served: tuple[Server, Store]) -> None:
    bodies = [
        "[" * 10_000,
        '{"keys": ' + "[" * 500 + "]" * 500 + "}",
        '{"a": 1e999}',
        '{"keys": null}',
        '"x"',
        "1" * 10_000,
    ]
    with channel_to(served[0]) as channel:
        for body in bodies:
            request = registration("fuzz")
            request.config_json = body
            assert (
                outcome(channel, "/ptkstore.v1.PtkService/RegisterPtk", request.SerializeToString())
                == "INVALID_ARGUMENT"
            )
            made = stream_pb2.CreateStreamRequest(spec_json=body).SerializeToString()
            assert (
                outcome(channel, "/ptkstore.v1.StreamService/CreateStream", made)
                == "INVALID_ARGUMENT"
            )


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_as_a_batch(data: bytes) -> None:
    for convert in (True, False):
        error = refused(lambda convert=convert: read_batch(data, spec(), convert=convert))
        assert error is None or error.reason in ("BATCH_INVALID", "COLUMN_MISSING")


def test_a_batch_with_any_bytes_changed_is_taken_or_refused(tmp_path: Path) -> None:
    """Flips in the frame of the IPC stream: lengths, offsets, types.

    Nothing that is refused quotes a value.
    """
    rng = np.random.default_rng(11)
    encoding = Encoding(spec())
    whole = np.frombuffer(ipc(day(0).slice(0, 50)), np.uint8)
    count = 0
    for _ in range(1500):
        data = whole.copy()
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(0, len(data))] = rng.integers(0, 256)
        for convert in (True, False):
            error = refused(
                lambda data=data, convert=convert: encoding.encode(
                    read_batch(data.tobytes(), spec(), convert=convert)
                )
            )
            count += error is not None
            assert CANARY not in str(error)
    assert count > 200


def test_every_cut_of_a_batch_is_refused_or_a_prefix() -> None:
    data = ipc(day(0).slice(0, 20))
    for stop in range(0, len(data), 7):
        rows: list[int] = []
        error = refused(
            lambda stop=stop, rows=rows: rows.append(
                read_batch(data[:stop], spec(), convert=False).num_rows
            )
        )
        assert error.reason == "BATCH_INVALID" if error else rows[0] in (0, 20)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_batches_are_refused_before_they_are_unpacked(codec: str) -> None:
    zeros = pa.table({"at": pa.array(np.zeros(1_000_000, "int64"), pa.timestamp("ms"))})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    small = ipc(zeros, options=options)
    assert len(small) < 100_000
    with pytest.raises(InvalidInput, match="BATCH_COMPRESSED"):
        read_batch(small, spec(), convert=True)
    words = pa.table({"driver": pa.array(["x"] * 10).dictionary_encode()})
    with pytest.raises(InvalidInput, match="BATCH_COMPRESSED"):
        read_batch(ipc(words, options=options), spec(), convert=True)


def test_rows_that_are_only_claimed_cost_nothing() -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(2**31 - 1)], names=["at"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    assert len(data) < 1000
    with pytest.raises(InvalidInput, match="BATCH_TOO_LARGE"):
        read_batch(data, spec(), convert=True)


def test_columns_that_would_unpack_are_not_converted() -> None:
    table = day(0)
    long = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(4000, "int32")), pa.array(["x" * 1_000_000])
    )
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([4000], pa.int32()), pa.array([1.5]))
    lists = pa.array([[1.0]] * 4000)
    for place, name, column in (
        (3, "driver", long),
        (2, "speed", runs),
        (2, "speed", lists),
        (1, "hour", pa.nulls(4000)),
    ):
        with pytest.raises(InvalidInput, match=r"COLUMN_TYPE|BATCH_INVALID"):
            read_batch(ipc(table.set_column(place, name, column)), spec(), convert=True)


def test_several_batches_with_other_dictionaries_become_one() -> None:
    kinds = StreamSpec(
        name="s",
        columns=(
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="zone", type="dictionary", domain=("a", "b", "c")),
        ),
        time_column="at",
    )
    at = pa.array([FIRST_MS, FIRST_MS], pa.timestamp("ms"))
    parts = [
        pa.table({"at": at, "zone": pa.array(one).dictionary_encode()})
        for one in (["a", "b"], ["c", "a"])
    ]
    data = ipc(pa.concat_tables(parts))
    for convert in (True, False):
        found = read_batch(data, kinds, convert=convert)
        assert found.column("zone").to_pylist() == ["a", "b", "c", "a"]
        assert len(Encoding(kinds).encode(found).columns) == 2


@given(st.integers(0, 2**64 - 1), st.binary(max_size=300))
def test_a_frame_is_what_the_message_gives(seq: int, data: bytes) -> None:
    message = stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=seq, arrow_ipc=data))
    assert framed(seq, memoryview(data)) == message.SerializeToString()
    found = unframed(message.SerializeToString())
    if data:
        assert found is not None
        assert (found[0], bytes(found[1])) == (seq, data)


@settings(max_examples=500)
@given(st.binary(max_size=40))
def test_what_is_read_from_any_bytes_is_what_the_runtime_reads(data: bytes) -> None:
    found = unframed(b"\x12" + bytes([len(data)]) + data)
    if found is not None:
        message = stream_pb2.AppendRequest.FromString(b"\x12" + bytes([len(data)]) + data)
        assert (message.batch.seq, message.batch.arrow_ipc) == (found[0], bytes(found[1]))


def test_the_server_takes_both_layouts(served: tuple[Server, Store]) -> None:
    batch = day(0).combine_chunks().to_batches()[0].slice(0, 10)
    opening = stream_pb2.AppendRequest(
        open=stream_pb2.AppendOpen(stream="rides", producer="fuzz")
    ).SerializeToString()
    ours = batch_request(2**62, batch)
    # The same message with its fields the other way round.
    inner = stream_pb2.AppendBatch.FromString(
        stream_pb2.AppendRequest.FromString(ours).batch.SerializeToString()
    )
    turned = stream_pb2.AppendBatch(arrow_ipc=inner.arrow_ipc).SerializeToString() + b"\x08\x07"
    other = b"\x12" + _varint(len(turned)) + turned
    assert unframed(other) is None
    with channel_to(served[0]) as channel:
        acks = channel.stream_stream(
            "/ptkstore.v1.StreamService/Append",
            response_deserializer=stream_pb2.AppendResponse.FromString,
        )(iter([opening, ours, other]), timeout=10)
        assert [one.seq for one in acks] == [2**62, 7]


def test_what_is_refused_on_the_way_in_leaves_no_trace(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, store), channel_to(server) as channel:
        from ptkstore.v1 import stream_pb2_grpc

        streams = stream_pb2_grpc.StreamServiceStub(channel)
        store.create_stream(spec(out_of_bounds="refuse"))
        secret = day(0).set_column(2, "speed", pa.array([99.0] * 4000))
        assert append(streams, ipc(secret)) == [0]
        with pytest.raises(grpc.RpcError) as error:
            append(streams, ipc(secret.rename_columns(["at", "hour", CANARY, "driver"])))
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined, unused-ignore]
        with Store(server.address) as remote:
            assert "ERROR" not in {one.level for one in remote.doctor([CANARY])}
            (cycle,) = remote.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert abs(cycle.dp_records) < 200


def _request_of(method: str) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    from tests.rpc.calling import RPCS

    return GetMessageClass(RPCS[method].input_type)


def _varint(value: int) -> bytes:
    return (
        struct.pack("B", value)
        if value < 128
        else struct.pack("B", value & 127 | 128) + _varint(value >> 7)
    )


def test_the_requests_of_ptks_are_checked_too(served: tuple[Server, Store]) -> None:
    with channel_to(served[0]) as channel:
        for target in (float("nan"), float("inf"), -1.0, 0.0):
            request = registration("odd", target=target)
            assert (
                outcome(channel, "/ptkstore.v1.PtkService/RegisterPtk", request.SerializeToString())
                in CALLERS_FAULT
            )
        update = ptk_pb2.UpdatePtkPerformanceTargetRequest(name="hour-speed", target=float("nan"))
        answer = outcome(
            channel,
            "/ptkstore.v1.PtkService/UpdatePtkPerformanceTarget",
            update.SerializeToString(),
        )
        assert answer in CALLERS_FAULT
