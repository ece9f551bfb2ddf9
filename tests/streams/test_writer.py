from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput, SageError
from ptkstore.api.columns import Column
from ptkstore.api.refused import RefusedRecords
from ptkstore.streams import Ack, BlockRefused, StreamUnavailable, StreamWriter
from tests.streams import rides
from tests.streams.rides import BASE_MS, FIRST, HOUR_MS, SECOND, THIRD, Store, batch


def test_what_is_appended_is_read_back_once_sealed(store: Store) -> None:
    sent = batch(range(1000), hours=[k / 400 for k in range(1000)], note="hello")
    with store.writer() as writer:
        assert writer.append(sent, producer="p", seq=1) == Ack(False, BASE_MS)
        assert writer.seal_due(BASE_MS + 3 * HOUR_MS) == [FIRST, SECOND, THIRD]
        opened = store.reader.open_slice(store.grant([FIRST, SECOND, THIRD]), store.ledger)
        table = pa.Table.from_batches(opened, schema=store.spec.schema)
    assert table.equals(pa.Table.from_batches([sent]).cast(store.spec.schema))


@pytest.mark.parametrize("shuffle", [1, 7, 999])
def test_a_batch_in_any_order_is_split_by_event_time(store: Store, shuffle: int) -> None:
    whos = [k * shuffle % 1000 for k in range(1000)]
    with store.writer() as writer:
        writer.append(batch(whos, hours=[who / 400 for who in whos]), producer="p", seq=1)
        store.seal_all(writer)
        for block, start in ((FIRST, 0), (SECOND, 400), (THIRD, 800)):
            found = store.whos([block])
            assert found == [who for who in whos if start <= who < start + 400]


def test_duplicates_are_dropped_also_after_restart_sealing_and_expiry(store: Store) -> None:
    with store.writer() as writer:
        for seq in (1, 2, 5):
            assert not writer.append(batch([seq]), producer="p", seq=seq).duplicate
        assert writer.append(batch([99]), producer="p", seq=2).duplicate
        assert not writer.append(batch([100]), producer="q", seq=2).duplicate
    with store.writer() as writer:
        assert writer.append(batch([99]), producer="p", seq=5).duplicate
        assert not writer.append(batch([3]), producer="p", seq=3).duplicate
        store.seal_all(writer)
        assert sorted(store.whos([FIRST])) == [1, 2, 3, 5, 100]
    with store.writer() as writer:
        assert writer.append(batch([99], hours=6), producer="p", seq=3).duplicate
        writer.expire(FIRST)
    with store.writer() as writer:
        assert writer.append(batch([99], hours=6), producer="q", seq=2).duplicate
        assert not writer.append(batch([99], hours=6), producer="q", seq=3).duplicate


def test_an_answer_says_nothing_about_the_records(tmp_path: Path) -> None:
    """Clipped, late, quarantined, empty or plain: the same answer."""
    answers = set()
    for late in ("oldest_open", "quarantine"):
        with StreamWriter.open(tmp_path / late, rides.spec(late=late)) as writer:
            writer.seal_due(BASE_MS + 2 * HOUR_MS)
            sent = [
                batch([1], hours=2),
                batch([-5], hours=2),
                batch([1], hours=0),
                batch([], hours=0),
                batch([1], hours=90),
            ]
            answers |= {writer.append(one, producer="p", seq=seq) for seq, one in enumerate(sent)}
    assert answers == {Ack(False, BASE_MS + 2 * HOUR_MS)}


@pytest.mark.parametrize(
    "spoiled", [{"who": -5}, {"who": None}, {"note": None}, {"note": "x" * 200}, {"at": None}]
)
@pytest.mark.parametrize("unit", ["event", "user"])
def test_no_record_decides_over_another(tmp_path: Path, spoiled: dict[str, Any], unit: str) -> None:
    """A record that cannot be in the stream is left out; everybody else is where they are without
    it.
    """
    make = rides.spec if unit == "event" else rides.user_spec
    store = Store(tmp_path, make(out_of_bounds="refuse"))
    rows = batch(range(100), hours=[k / 40 for k in range(100)]).to_pylist()
    rows[50] |= spoiled
    sent = pa.RecordBatch.from_pylist(rows, schema=batch([]).schema)
    (column,) = spoiled
    reason = "NULL_VALUE" if spoiled[column] is None else "OUT_OF_BOUNDS"
    with store.ledger, store.writer() as writer:
        for duplicate in (False, True):
            assert writer.append(sent, producer="p", seq=1) == Ack(
                duplicate, BASE_MS, (RefusedRecords(column, reason, 1, 50),)
            )
        blocks = store.seal_all(writer)
        assert [sorted(store.whos([one])) for one in blocks[:3]] == [
            list(range(40)),
            [*range(40, 50), *range(51, 80)],
            list(range(80, 100)),
        ]


@pytest.mark.parametrize(("late", "expected"), [("oldest_open", [1, 2, 3]), ("quarantine", [2])])
def test_late_records_go_to_the_oldest_open_block_or_to_quarantine(
    tmp_path: Path, late: str, expected: list[int]
) -> None:
    store = Store(tmp_path, rides.spec(late=late))
    with store.ledger, store.writer() as writer:
        writer.seal_due(BASE_MS + HOUR_MS)
        writer.append(batch([1, 2, 3], hours=[0, 1, 0.5]), producer="p", seq=1)
        assert store.seal_all(writer, 2) == [FIRST, SECOND]
        assert store.whos([FIRST]) == []
        assert sorted(store.whos([SECOND])) == expected
        assert (tmp_path / f"streams/rides/quarantine-{SECOND}.block").exists() == (
            late == "quarantine"
        )
        # Quarantine is no block: nothing opens it, and it goes with the block of its time.
        with pytest.raises(BlockRefused) as error:
            store.whos([f"quarantine-{SECOND}"])
        assert error.value.reason == "BLOCK_UNKNOWN"
        writer.expire(SECOND)
        assert not list(tmp_path.glob("*/rides/quarantine-*"))


def test_a_sealed_block_never_changes(store: Store) -> None:
    path = store.path / f"streams/rides/{FIRST}.block"
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        store.seal_all(writer, 1)
        before = path.read_bytes()
        writer.append(batch([2, 3], hours=[0, 1]), producer="p", seq=2)
        assert writer.seal_due(BASE_MS + HOUR_MS) == []
        assert writer.seal_due(BASE_MS) == []
    with store.writer() as writer:
        writer.append(batch([4]), producer="p", seq=3)
        assert path.read_bytes() == before
        store.seal_all(writer)
        assert sorted(store.whos([SECOND])) == [2, 3, 4]


def test_which_blocks_exist_does_not_depend_on_the_records(tmp_path: Path) -> None:
    listings = []
    for name, hours in (("empty", []), ("full", [0, 1, 2]), ("future", [0, 50])):
        with StreamWriter.open(tmp_path / name, rides.spec()) as writer:
            writer.append(batch(range(len(hours)), hours=hours), producer="p", seq=1)
            listings.append(
                (writer.seal_due(BASE_MS + 4 * HOUR_MS), writer.sealed(), writer.exposure({}))
            )
    assert listings[0] == listings[1] == listings[2]
    assert len(listings[0][0]) == 4


def test_the_watermark_is_declared_or_the_clock_never_the_data(tmp_path: Path) -> None:
    now = [BASE_MS / 1000 + 3 * 3600 + 59]
    with StreamWriter.open(
        tmp_path, rides.spec(lateness_seconds=60), clock=lambda: now[0]
    ) as writer:
        writer.append(batch([1], hours=500), producer="p", seq=1)
        assert writer.seal_due() == [FIRST, SECOND]
        now[0] += 1
        assert writer.seal_due() == [THIRD]
        assert writer.watermark_ms == BASE_MS + 3 * HOUR_MS


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda w: w.append(batch([1]), producer="", seq=1), "NAME_INVALID"),
        (lambda w: w.append(batch([1]), producer="p\n", seq=1), "NAME_INVALID"),
        (lambda w: w.append(batch([1]), producer="p", seq=-1), "SEQ_INVALID"),
        (lambda w: w.append(batch([1]), producer="p", seq=True), "SEQ_INVALID"),
        (
            lambda w: w.append(batch([1]), producer="p", seq=1, fingerprint="0" * 64),
            "SCHEMA_MISMATCH",
        ),
        (lambda w: w.append(batch([1]).select(["at"]), producer="p", seq=1), "SCHEMA_MISMATCH"),
        (
            lambda w: w.append(batch(range(600), hours=list(range(600))), producer="p", seq=1),
            "BATCH_TOO_WIDE",
        ),
        (lambda w: w.append(batch([1, 2], hours=[0, 4096]), producer="p", seq=1), "EVENT_TOO_FAR"),
        (lambda w: w.seal_due("now"), "WATERMARK_INVALID"),
        (lambda w: w.seal_due(BASE_MS + 5000 * HOUR_MS), "WATERMARK_TOO_FAR"),
        (lambda w: w.expire("2026-01-01T00:30Z"), "BLOCK_UNKNOWN"),
        (lambda w: w.expire("../../etc"), "BLOCK_UNKNOWN"),
        (lambda w: w.expire("2025-12-31T23:00Z"), "BLOCK_UNKNOWN"),
        (lambda w: w.expire(FIRST), "BLOCK_NOT_SEALED"),
        (lambda w: StreamWriter.open(w._vault.files.parents[1], w.spec), "STREAM_LOCKED"),
    ],
)
def test_refusals_change_nothing(store: Store, call: Any, reason: str) -> None:
    with store.writer() as writer:
        with pytest.raises(SageError) as error:
            call(writer)
        assert error.value.reason == reason
        assert writer.append(batch([7]), producer="p", seq=1) == Ack(False, BASE_MS)
        assert store.whos(store.seal_all(writer)) == [7]


def test_a_closed_writer_refuses(store: Store) -> None:
    writer = store.writer()
    writer.close()
    writer.close()
    for call in (
        lambda: writer.append(batch([1]), producer="p", seq=1),
        lambda: writer.seal_due(BASE_MS * 2),
    ):
        with pytest.raises(StreamUnavailable) as error:
            call()
        assert error.value.reason == "STREAM_CLOSED"


def test_a_stream_keeps_its_shape_and_may_change_its_prices(store: Store) -> None:
    store.writer().close()
    StreamWriter.open(store.path, rides.spec(count_epsilon="0.02", n_max=5)).close()
    for changes in (
        {"window_seconds": 3600},
        {"columns": (*rides.COLUMNS, Column(name="x", type="bool"))},
    ):
        with pytest.raises(InvalidInput) as error:
            StreamWriter.open(store.path, rides.spec(**changes))
        assert error.value.reason == "SPEC_CHANGED"


def test_a_disk_that_fails_loses_nothing_that_was_acknowledged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", full)
            with pytest.raises(StreamUnavailable) as error:
                writer.append(batch([2, 3], hours=[0, 1]), producer="p", seq=2)
        assert error.value.reason == "STREAM_UNAVAILABLE"
        # What is durable is uncertain now: the writer stays away until it is opened again.
        with pytest.raises(StreamUnavailable):
            writer.append(batch([4]), producer="p", seq=3)
    with store.writer() as writer:
        assert not writer.append(batch([2, 3], hours=[0, 1]), producer="p", seq=2).duplicate
        assert sorted(store.whos(store.seal_all(writer))) == [1, 2, 3]


def test_threads_append_at_once_and_share_fsyncs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = []
    fdatasync = os.fdatasync

    def counted(descriptor: int) -> None:
        syncs.append(descriptor)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)
    threads, each = 8, 25
    with store.writer() as writer:
        start = threading.Barrier(threads)

        def produce(number: int) -> None:
            start.wait()
            for seq in range(each):
                who = number * each + seq
                writer.append(
                    batch([who, who + 10_000], hours=[0, 1]), producer=f"p{number}", seq=seq
                )
                assert writer.append(batch([5]), producer=f"p{number}", seq=seq).duplicate

        running = [threading.Thread(target=produce, args=(number,)) for number in range(threads)]
        for one in running:
            one.start()
        for one in running:
            one.join(60)
        assert len(syncs) < 2 * threads * each
        assert sorted(store.whos(store.seal_all(writer))) == sorted(
            [*range(threads * each), *range(10_000, 10_000 + threads * each)]
        )


def test_exposure_is_made_of_public_and_dp_numbers(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch(range(50)), producer="p", seq=1)
        blocks = store.seal_all(writer, 2)
        assert writer.exposure({}) == (BASE_MS, BASE_MS + 3 * HOUR_MS, 3, 0, 0)
        counts = {FIRST: 40, SECOND: -3, "2020-01-01T00:00Z": 1000}
        found = writer.exposure(counts)
        assert (found.dp_records, found.bytes) == (37, 37 * (8 + 8 + 8 + 104))
        for block in blocks:
            writer.expire(block)
            writer.expire(block)
        assert writer.exposure(counts) == (BASE_MS + 2 * HOUR_MS, BASE_MS + 3 * HOUR_MS, 1, 0, 0)
