"""Streams of batches: acknowledged in order, dropped when they come twice, taken up after a
break.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput
from ptkstore import Store
from ptkstore.client.push import Push
from ptkstore.server import Server
from ptkstore.v1 import stream_pb2
from ptkstore.wire.faults import error_of
from tests.engine.small import DAY_MS, FIRST_MS, day, spec
from tests.rpc.requests import append, create, ipc, refusal
from tests.rpc.small import serving


class TestAppend:
    def test_batches_are_acknowledged_in_order_and_duplicates_are_dropped(
        self, server: Server, streams: Any
    ) -> None:
        create(streams)
        batches = [ipc(day(0).slice(begin, 500)) for begin in range(0, 4000, 500)]
        assert append(streams, *batches) == list(range(8))
        assert append(streams, *batches) == list(range(8))
        with Store(server.address) as store:
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 4000) < 200

    def test_without_a_fingerprint_columns_are_converted(
        self, server: Server, streams: Any
    ) -> None:
        create(streams)
        table = day(0)
        shuffled = table.select(["driver", "speed", "at", "hour"]).append_column(
            "more", pa.nulls(4000)
        )
        wide = shuffled.set_column(3, "hour", shuffled["hour"].cast(pa.int64()))
        assert append(streams, ipc(wide), ipc(wide.slice(0, 0))) == [0, 1]
        assert refusal(lambda: append(streams, ipc(wide), fingerprint=spec().fingerprint)).endswith(
            "SCHEMA_MISMATCH"
        )
        several = pa.concat_tables([table.slice(0, 10), table.slice(10, 10)])
        assert append(streams, ipc(several), fingerprint=spec().fingerprint, first=7) == [7]

    @pytest.mark.parametrize(
        ("first", "reason"),
        [
            (stream_pb2.AppendRequest(), "INVALID_ARGUMENT APPEND_ORDER"),
            (
                stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=1)),
                "INVALID_ARGUMENT APPEND_ORDER",
            ),
            (
                stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="none", producer="p")),
                "NOT_FOUND STREAM_UNKNOWN",
            ),
            (
                stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides")),
                "INVALID_ARGUMENT NAME_INVALID",
            ),
            (
                stream_pb2.AppendRequest(
                    open=stream_pb2.AppendOpen(stream="rides", producer="p", schema_fingerprint="f")
                ),
                "INVALID_ARGUMENT SCHEMA_MISMATCH",
            ),
        ],
        ids=["nothing", "a batch first", "no such stream", "no producer", "another fingerprint"],
    )
    def test_the_first_message_opens(self, streams: Any, first: Any, reason: str) -> None:
        create(streams)
        assert refusal(lambda: list(streams.Append(iter([first])))) == reason

    def test_a_second_opening_and_an_empty_call_are_refused(self, streams: Any) -> None:
        create(streams)
        opening = stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", producer="p"))
        assert (
            refusal(lambda: list(streams.Append(iter([opening, opening]))))
            == "INVALID_ARGUMENT APPEND_ORDER"
        )
        assert (
            refusal(lambda: list(streams.Append(iter([])))) == "INVALID_ARGUMENT REQUEST_UNREADABLE"
        )
        assert list(streams.Append(iter([opening]))) == []

    def test_what_was_acknowledged_before_an_error_stays(
        self, server: Server, streams: Any
    ) -> None:
        create(streams)
        good = ipc(day(0))
        acks = []
        call = streams.Append(
            iter(
                [
                    stream_pb2.AppendRequest(
                        open=stream_pb2.AppendOpen(stream="rides", producer="p")
                    ),
                    stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=0, arrow_ipc=good)),
                    stream_pb2.AppendRequest(
                        batch=stream_pb2.AppendBatch(seq=1, arrow_ipc=b"rubbish")
                    ),
                    stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=2, arrow_ipc=good)),
                ]
            )
        )
        with pytest.raises(grpc.RpcError) as error:
            acks += [ack.seq for ack in call]
        assert error_of(error.value).reason == "BATCH_INVALID"
        with Store(server.address) as store:
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert cycle.dp_records > 3500

    def test_what_is_left_out_of_a_batch_is_in_its_acknowledgement(
        self, server: Server, streams: Any
    ) -> None:
        create(streams, out_of_bounds="refuse")
        table = day(0)
        fast = table.set_column(
            2, "speed", pa.array([61.5 if k % 4 == 1 else 30.0 for k in range(4000)])
        )
        messages = [
            stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", producer="p"))
        ]
        for seq, one in enumerate([table, fast, fast.slice(0, 1)]):
            messages.append(
                stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=seq, arrow_ipc=ipc(one)))
            )
        expected = stream_pb2.RefusedRecords(
            column="speed", reason="OUT_OF_BOUNDS", records=1000, first_row=1
        )
        for _ in range(2):
            assert [list(ack.refused) for ack in streams.Append(iter(messages))] == [
                [],
                [expected],
                [],
            ]
        with Store(server.address) as store:
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 7001) < 200

    def test_a_seq_beyond_63_bits_is_refused(self, streams: Any) -> None:
        create(streams)
        assert (
            refusal(lambda: append(streams, ipc(day(0)), first=2**64 - 1))
            == "INVALID_ARGUMENT SEQ_INVALID"
        )

    def test_a_message_that_is_too_large_is_refused(self, tmp_path: Path) -> None:
        with (
            serving(tmp_path, server={"max_message_bytes": 1 << 16}) as (server, _),
            Store(server.address) as store,
        ):
            store.create_stream(spec())
            with pytest.raises(InvalidInput, match="MESSAGE_TOO_LARGE"):
                store.push("rides", day(0))

    def test_a_push_goes_on_after_the_connection_broke(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The server is replaced by another on the same port in the middle of a push."""
        monkeypatch.setattr("ptkstore.client.pushing.rows_of", lambda *_: 100)
        with serving(tmp_path, server={"drain_seconds": 0}) as (server, _):
            address = server.address
            with Store(address) as store:
                store.create_stream(spec())
        taken: list[int] = []
        replaced = threading.Event()
        real = Push.take

        def slow(self: Push, sending: Any) -> Any:
            found = real(self, sending)
            taken.append(1)
            if len(taken) == 20:
                half.set()
                replaced.wait(20)
            return found

        half = threading.Event()
        monkeypatch.setattr(Push, "take", slow)

        def replace() -> None:
            with serving(tmp_path, server={"address": address, "drain_seconds": 0}):
                half.wait(20)
            with serving(tmp_path, server={"address": address, "drain_seconds": 0}):
                replaced.set()
                over.wait(30)

        over = threading.Event()
        thread = threading.Thread(target=replace)
        thread.start()
        with Store(address) as store:
            assert store.push("rides", day(0), producer="p", seq=1) == FIRST_MS
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        over.set()
        thread.join()
        assert len(taken) > 30
        assert abs(cycle.dp_records - 4000) < 200
