"""What every store must do, in a directory or behind a server. Subclass it, with a fixture
``store`` of an empty one.

``twin`` is the same store embedded: what it says is what the other must say.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput, Refused, SageError
from ptklib.features import featurize
from ptkstore import LocalStore, Store
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, spec


def filled(store: LocalStore, days: int = 1) -> None:
    """A stream, a PTK and some days of data."""
    store.create_stream(spec())
    store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.2)
    for number in range(days):
        store.push("rides", day(number), producer="depot", seq=number)


def reason(kind: type[SageError], act: Any) -> str:
    """The reason of a refusal, which must be of exactly this kind."""
    with pytest.raises(kind) as refusal:
        act()
    assert type(refusal.value) is kind
    return refusal.value.reason


class StoreSuite:
    """The contract of `Store`: streams, records, windows.

    PTKs, plans, budgets and events have suites of their own.
    """

    def test_streams(self, store: Store) -> None:
        assert store.streams() == []
        store.create_stream(spec())
        store.create_stream(spec(name="other"))
        assert store.streams() == [spec(name="other"), spec()]
        assert store.stream("rides") == spec()
        assert reason(Refused, lambda: store.create_stream(spec())) == "STREAM_EXISTS"
        assert reason(Refused, lambda: store.stream("nowhere")) == "STREAM_UNKNOWN"

    def test_a_day_from_records_to_features(self, store: Store, twin: Store) -> None:
        filled(store)
        told: list[str] = []
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS, progress=told.append)
        assert (cycle.status, cycle.trained[0].outcome) == ("DONE", "PUBLISHED")
        assert abs(cycle.dp_records - 4000) < 200
        assert any("trained" in text for text in told)
        state = store.get_state("hour-speed")
        assert state.manifest.version == 1
        frame = pa.table({"hour": pa.array([3, 15], pa.int32())})
        assert featurize(frame, [state]).num_columns == 2
        assert store.cycles("rides") == twin.cycles("rides") == [cycle]
        assert store.states("hour-speed") == twin.states("hour-speed")
        assert (
            store.get_state("hour-speed@v1").to_bytes()
            == twin.get_state("hour-speed@latest").to_bytes()
        )
        assert store.plan("rides") == twin.plan("rides")
        assert store.plan_picture("rides") == twin.plan_picture("rides")
        assert store.budget("rides") == twin.budget("rides")
        assert store.ptks() == twin.ptks() == [store.ptk("hour-speed")]
        assert store.events() == twin.events()
        assert store.run(until_ms=FIRST_MS + DAY_MS) == []

    def test_pushing_again_changes_nothing(self, store: Store) -> None:
        filled(store)
        for _ in range(3):
            assert store.push("rides", day(0), producer="depot", seq=0) == FIRST_MS
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 4000) < 200

    def test_a_push_that_is_wrong(self, store: Store) -> None:
        store.create_stream(spec(out_of_bounds="refuse"))
        assert reason(Refused, lambda: store.push("nowhere", day(0))) == "STREAM_UNKNOWN"
        assert (
            reason(InvalidInput, lambda: store.push("rides", day(0).drop_columns(["hour"])))
            == "COLUMN_MISSING"
        )
        assert reason(InvalidInput, lambda: store.push("rides", day(0), seq=-1)) == "SEQ_INVALID"
        assert (
            reason(InvalidInput, lambda: store.push("rides", day(0), producer="")) == "NAME_INVALID"
        )
        words = day(0).set_column(1, "hour", pa.array(["secret-word"] * 4000))
        with pytest.raises(InvalidInput) as refusal:
            store.push("rides", words)
        assert refusal.value.reason == "COLUMN_TYPE"
        assert "secret" not in str(refusal.value)
        fast = day(0).set_column(2, "speed", pa.array([61.5] * 4000))
        with pytest.raises(Refused) as refused_push:
            store.push("rides", fast)
        refused = {"column": "speed", "reason": "OUT_OF_BOUNDS", "records": 4000, "first_row": 0}
        assert (refused_push.value.reason, refused_push.value.details) == (
            "RECORDS_REFUSED",
            {"refused": [refused]},
        )
        assert "61" not in str(refused_push.value)

    def test_records_that_cannot_be_in_the_stream_are_left_out_and_told(self, store: Store) -> None:
        """Of 3,000 records every fifth is too fast and every seventh has no hour: all others are
        there, once.
        """
        store.create_stream(spec(out_of_bounds="refuse"))
        table = day(0, 3000)
        speeds = [61.5 if k % 5 == 4 else one for k, one in enumerate(table["speed"].to_pylist())]
        hours = [None if k % 7 == 3 else one for k, one in enumerate(table["hour"].to_pylist())]
        table = table.set_column(2, "speed", pa.array(speeds)).set_column(
            1, "hour", pa.array(hours, pa.int32())
        )
        without_hour = [k for k in range(3000) if k % 7 == 3]
        too_fast = [k for k in range(3000) if k % 5 == 4 and k % 7 != 3]
        expected = [
            {
                "column": "hour",
                "reason": "NULL_VALUE",
                "records": len(without_hour),
                "first_row": 3,
            },
            {
                "column": "speed",
                "reason": "OUT_OF_BOUNDS",
                "records": len(too_fast),
                "first_row": 4,
            },
        ]
        for _ in range(2):
            with pytest.raises(Refused) as refusal:
                store.push("rides", table, producer="depot", seq=0)
            assert (refusal.value.reason, refusal.value.details) == (
                "RECORDS_REFUSED",
                {"refused": expected},
            )
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - (3000 - len(without_hour) - len(too_fast))) < 200

    def test_a_frame_of_many_blocks_is_cut_so_that_each_batch_is_taken(self, store: Store) -> None:
        """A month in any order and in blocks of a quarter of an hour: nearly three thousand."""
        store.create_stream(spec(block_seconds=900))
        every = pa.concat_tables([day(number, 50) for number in range(30)])
        shuffled = every.take(pa.array(np.random.default_rng(1).permutation(1500)))
        for _ in range(2):
            store.push("rides", shuffled, producer="depot", seq=0)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records) < 1500

    def test_event_times_too_far_ahead_are_refused_until_the_watermark_has_moved(
        self, store: Store
    ) -> None:
        store.create_stream(spec(horizon_blocks=4))
        store.push("rides", day(1, 100), producer="depot", seq=0)
        with pytest.raises(Refused) as refusal:
            store.push("rides", day(2, 100), producer="depot", seq=1)
        assert (refusal.value.reason, refusal.value.details) == (
            "EVENT_TOO_FAR",
            {"before": "2026-01-03T00:00Z"},
        )
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        store.push("rides", day(2, 100), producer="depot", seq=1)

    def test_an_empty_frame_is_pushed(self, store: Store) -> None:
        filled(store)
        store.push("rides", day(0).slice(0, 0))
        assert len(store.run("rides", until_ms=FIRST_MS + DAY_MS)) == 1

    def test_a_watermark_too_far(self, store: Store) -> None:
        store.create_stream(spec())
        far = FIRST_MS + 10_000 * DAY_MS
        assert reason(InvalidInput, lambda: store.run("rides", until_ms=far)) == "WATERMARK_TOO_FAR"
        assert reason(Refused, lambda: store.run("nowhere")) == "STREAM_UNKNOWN"

    def test_the_doctor(self, store: Store) -> None:
        filled(store)
        found = store.doctor([CANARY, b"\xff" * 40])
        assert "ERROR" not in {one.level for one in found}
        assert "OK" in {one.level for one in found if one.what == "canaries"}
        assert "ERROR" in {
            one.level for one in store.doctor(["hour-speed"]) if one.what == "canaries"
        }

    def test_who_calls(self, store: Store) -> None:
        who = store.caller()
        assert set(who.roles) == {"reader", "producer", "developer", "operator"}
        assert (who.streams, who.ptks) == ((), ())
