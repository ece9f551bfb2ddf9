"""Memory is set aside from public numbers before data is opened; no outcome tells how many records
there were.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from profiler.measuring.pieces import Piece, PieceCost
from profiler.measuring.tasks import SystemNoise, TrainTask
from ptklib import registry
from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.policy import Policy
from ptklib.privacy.costs import PureCost
from ptklib.ptk import Ptk
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.embeddings import Embeddings
from ptklib.ptks.forest import Forest
from ptklib.ptks.vectors import Bounded
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views.remedies import remedies_of
from ptkstore.engine.room.memory import (
    most_in_slice,
    most_in_window,
    profiling_bytes,
    require_room,
    row_bytes,
    training_bytes,
)
from ptkstore.workers.joining import joined
from ptkstore.workers.memory import default_bytes
from ptkstore.workers.processes import ProcessWorkers
from ptkstore.workers.protocol import ProfileJob
from tests.engine.plugins import installed
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store, spec

MIB = 1 << 20
SPEED = {"kind": "number", "column": "speed", "lower": 0.0, "upper": 60.0, "bins": 300}


class TestConfigurations:
    """Bytes for each record are bounded by the columns of the stream, not by how often a
    configuration names them.
    """

    def test_a_column_that_is_repeated_is_refused_at_registration(self, tmp_path: Path) -> None:
        worst = {
            "inputs": [SPEED] * 2000,
            "label": "hour",
            "classes": [0, 1],
            "trees": 2,
            "depth": 1,
        }
        with open_store(tmp_path) as store, pytest.raises(InvalidInput) as refused:
            store.register("worst", stream="rides", kind="forest", config=worst, target=0.9)
        assert refused.value.reason == "CONFIG_INVALID"

    @pytest.mark.parametrize(
        "inputs",
        [
            [SPEED, SPEED],
            [SPEED, SPEED | {"bins": 299}],
            [{"kind": "time_part", "column": "at", "part": "hour"}] * 2,
            [SPEED | {"column": f"x{k}"} for k in range(1025)],
        ],
        ids=["the same", "another number of bins", "a part of a time", "too many"],
    )
    def test_inputs_of_a_forest_differ_and_are_not_too_many(
        self, inputs: list[dict[str, Any]]
    ) -> None:
        with pytest.raises(InvalidInput, match="inputs must"):
            registry.make("forest", {"inputs": inputs, "label": "y", "classes": [0, 1]})

    def test_a_column_may_be_read_in_several_ways(self) -> None:
        edges = {"kind": "bins", "column": "speed", "edges": [0.0, 30.0, 60.0]}
        parts = [
            {"kind": "time_part", "column": "at", "part": part} for part in ("hour", "weekday")
        ]
        made = registry.make(
            "forest", {"inputs": [SPEED, edges, *parts], "label": "y", "classes": [0, 1]}
        )
        assert made.columns() == ("speed", "at", "y")

    @pytest.mark.parametrize("kind", ["statistics", "ratios", "quantiles"])
    def test_keys_differ_and_do_not_blow_up(self, kind: str) -> None:
        rests: dict[str, dict[str, Any]] = {
            "statistics": {"statistics": ["count"]},
            "ratios": {
                "numerator": "a",
                "denominator": "b",
                "denominator_upper": 1.0,
                "ratio_upper": 1.0,
            },
            "quantiles": {"value": "v", "quantiles": [0.5], "lower": 0.0, "upper": 1.0, "bins": 2},
        }
        for keys, words in (
            ([{"kind": "integers", "column": "k", "first": 0, "last": 1}] * 2, "keys must differ"),
            (
                [{"kind": "integers", "column": f"k{k}", "first": 0, "last": 0} for k in range(40)],
                "where each has one more",
            ),
        ):
            with pytest.raises(InvalidInput, match=words):
                registry.make(kind, {"keys": keys, **rests[kind]})


class TestPlannedNumbers:
    """What is set aside is enough but for a probability that never happens."""

    @pytest.mark.parametrize("records", [1, 40, 4_000, 10**7])
    @pytest.mark.parametrize("share", [Fraction(1, 1000), Fraction(1, 10), Fraction(9, 10)])
    def test_a_slice_does_not_hold_more_than_the_most(self, records: int, share: Fraction) -> None:
        most = most_in_slice(records, share, 1)
        assert most <= records
        assert stats.binom.sf(most, records, float(share)) <= 2.0**-64
        # Not far more either: a reservation that is ten times too large refuses what would fit.
        assert most <= records * share * 2 + 300

    def test_users_hold_their_records_together(self) -> None:
        users, each = 1_000, 50
        most = most_in_slice(users * each, Fraction(1, 10), each)
        assert stats.binom.sf(most // each, users, 0.1) <= 2.0**-60
        assert most > most_in_slice(users * each, Fraction(1, 10), 1)

    @pytest.mark.parametrize("blocks", [1, 30, 2_000])
    def test_a_window_does_not_hold_more_than_its_noisy_count_allows(self, blocks: int) -> None:
        stream = spec()
        below = most_in_window(1_000, blocks, stream) - 1_000
        scale = float(stream.count_release().scale)
        # By Chernoff's bound at the best of many rates: that of Laplace noise bounds the discrete
        # one.
        rates = np.linspace(0.001, 0.999, 5_000) / scale
        logs = -blocks * np.log1p(-((scale * rates) ** 2)) - rates * below
        assert logs.min() <= -64 * np.log(2) * 0.999
        assert below <= 130 * scale * max(1, np.sqrt(blocks))

    def test_the_bytes_of_a_record_follow_from_the_schema(self) -> None:
        columns = (
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="flag", type="bool"),
            Column(name="word", type="string", upper=40),
            Column(name="city", type="string", domain=("a", "Zürich")),
            Column(name="who", type="string"),
        )
        stream = StreamSpec(
            name="s",
            columns=columns,
            time_column="at",
            user_column="who",
            unit="user",
            policy=Policy(epsilon=1, unit="user"),
        )
        assert [row_bytes(stream, (one.name,)) for one in columns] == [10, 3, 46, 13, 1030]

    def test_a_name_of_a_user_has_a_largest_size(self, tmp_path: Path) -> None:
        from ptkstore.streams.blocks.encoding import MAX_TEXT_BYTES, Encoding

        columns = (
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="who", type="string"),
        )
        stream = StreamSpec(
            name="s",
            columns=columns,
            time_column="at",
            user_column="who",
            unit="user",
            policy=Policy(epsilon=1, unit="user"),
        )
        batch = pa.RecordBatch.from_pydict(
            {"at": pa.array([FIRST_MS], pa.timestamp("ms")), "who": ["x" * 5_000]}
        )
        if stream.out_of_bounds == "clip":
            assert len(Encoding(stream).encode(batch).columns[1][0].as_py()) == MAX_TEXT_BYTES
        else:
            with pytest.raises(InvalidInput, match="public bounds"):
                Encoding(stream).encode(batch)

    def test_a_machine_is_shared_by_its_workers(self) -> None:
        assert default_bytes(1) > default_bytes(3) >= 256 * MIB

    def test_a_refusal_says_what_is_needed_and_what_to_do(self) -> None:
        with pytest.raises(
            Refused,
            match=r"may need 3 MiB of memory, and a worker has 2: raise workers.memory_bytes",
        ) as no:
            require_room(3 * MIB, 2 * MIB, "training")
        assert no.value.reason == "MEMORY_TOO_SMALL"


def wide_spec(columns: int) -> StreamSpec:
    """Rides with many numbers."""
    return spec(
        columns=(
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="hour", type="int32", lower=0, upper=23),
            *(Column(name=f"x{k}", type="float64", lower=0, upper=1) for k in range(columns)),
        ),
        profile_share="0.6",
    )


def wide_day(rows: int, columns: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    at = np.sort(rng.integers(0, DAY_MS, rows)) + FIRST_MS
    table = {
        "at": pa.array(at, pa.timestamp("ms")),
        "hour": (at // 3_600_000 % 24).astype(np.int32),
    }
    return pa.table(table | {f"x{k}": rng.uniform(0, 1, rows) for k in range(columns)})


def widest(columns: int) -> dict[str, Any]:
    """The forest that holds the most bytes for a record: every column in every way, two bytes
    each.
    """
    numbers = [SPEED | {"column": f"x{k}", "upper": 1.0} for k in range(columns)]
    bins = [
        {"kind": "bins", "column": f"x{k}", "edges": np.linspace(0, 1, 301).tolist()}
        for k in range(columns)
    ]
    return {
        "inputs": numbers + bins,
        "label": "hour",
        "classes": [0, 1],
        "trees": 2,
        "depth": 1,
        "splits": "random",
    }


class TestOutcomes:
    """Through the engine and a worker under a limit."""

    COLUMNS = 60
    ROWS = 3_131

    def outcome(self, path: Path, rows: int, memory_bytes: int) -> tuple[str, str, list[str]]:
        # Workers had more memory when it was registered.
        with Store(path, workers=0) as store:
            store.create_stream(wide_spec(self.COLUMNS))
            store.register(
                "wide", stream="rides", kind="forest", config=widest(self.COLUMNS), target=0.9
            )
        with Store(path, workers=1, memory_bytes=memory_bytes) as store:
            store.push("rides", wide_day(rows, self.COLUMNS))
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
            view = store.ptk("wide")
            return view.status, view.reason, [line.outcome for line in cycle.trained]

    def needed(self, dp_records: int) -> tuple[int, int]:
        """For the profile, and for training on the whole window."""
        stream = wide_spec(self.COLUMNS)
        ptk = registry.make("forest", widest(self.COLUMNS))
        window = most_in_window(dp_records, 2, stream)
        most = most_in_slice(window, Fraction(stream.profile_share), 1)
        training = training_bytes(stream, ptk, window=window, most=window)
        return profiling_bytes(stream, ptk, window=window, most=most), training

    def test_the_widest_forest_is_trained_whatever_the_count_where_memory_is_just_enough(
        self, tmp_path: Path
    ) -> None:
        # The noise of the count is within this: what is set aside never exceeds the limit.
        limit = max(self.needed(self.ROWS + 400))
        found = [
            self.outcome(tmp_path / str(rows), rows, limit)
            for rows in (self.ROWS - 1, self.ROWS, self.ROWS + 1)
        ]
        assert found == [("ACTIVE", "", ["PUBLISHED"])] * 3

    def test_it_is_refused_whatever_the_count_where_memory_is_too_small(
        self, tmp_path: Path
    ) -> None:
        limit = min(self.needed(0)) - MIB
        found = [
            self.outcome(tmp_path / str(rows), rows, limit) for rows in (self.ROWS, self.ROWS + 1)
        ]
        assert [(status, outcomes) for status, _, outcomes in found] == [
            ("WAITING", ["NOT_PROFILED"])
        ] * 2
        assert all("MEMORY_TOO_SMALL" in reason for _, reason, _ in found)
        # Public numbers alone: nothing was charged or opened.
        with Store(tmp_path / str(self.ROWS), workers=0) as store:
            assert not [one for one in store.charges("rides").charges if "wide" in str(one)]

    def test_a_ptk_without_room_is_left_out_of_the_plan_and_not_charged(
        self, tmp_path: Path
    ) -> None:
        with Store(tmp_path, workers=0, memory_bytes=8192 * MIB) as store:
            store.create_stream(spec())
            for name, body in (("large", large()), ("small", config())):
                assert (
                    store.register(
                        name, stream="rides", kind="statistics", config=body, target=0.3
                    ).status
                    == "ACTIVE"
                )
        with Store(tmp_path, workers=0, memory_bytes=600 * MIB) as store:
            store.push("rides", day(0))
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
            lines = {line.ptk: line for line in cycle.trained}
            assert (lines["small"].outcome, lines["large"].outcome) == ("PUBLISHED", "SKIPPED")
            assert lines["large"].reason.startswith("MEMORY_TOO_SMALL: training may need ")
            assert store.ptk("large").status == "ACTIVE"

    def test_one_that_would_never_have_room_is_told_when_it_is_asked_for(
        self, tmp_path: Path
    ) -> None:
        asked: dict[str, Any] = {"kind": "statistics", "config": large(), "target": 0.3}
        with Store(tmp_path, workers=0, memory_bytes=600 * MIB) as store:
            store.create_stream(spec())
            answer = store.register("large", stream="rides", **asked)
            assert answer.status == "REJECTED"
            assert answer.reason.startswith("MEMORY_TOO_SMALL: training may need ")
            (remedy,) = answer.remedies
            assert remedy.kind == "memory_bytes"
            assert isinstance(remedy.value, int)
            changes = Changes(add=(AddedPtk(name="more", stream="rides", **asked),))
            with pytest.raises(Refused, match="MEMORY_TOO_SMALL") as looked:
                store.what_if("rides", changes)
            assert looked.value.details["ptk"] == "more"
            with pytest.raises(Refused, match="PLAN_INFEASIBLE") as applied:
                store.apply(changes)
            assert [one.value for one in remedies_of(applied.value)] == [remedy.value]
            assert [one.name for one in store.ptks()] == ["large"]
        with Store(tmp_path, workers=0, memory_bytes=remedy.value) as store:
            assert store.apply(changes).registrations[0].status == "ACTIVE"


def large() -> dict[str, Any]:
    keys = [{"kind": "integers", "column": "hour", "first": 0, "last": 999_999}]
    return config() | {"keys": keys, "min_share": 0.01}


def embeddings() -> Embeddings:
    users, items = (
        IntegerRange(column="user", first=0, last=4_999),
        IntegerRange(column="item", first=0, last=999),
    )
    return Embeddings(users=users, items=items, value="rating", lower=0.0, upper=5.0)


# Those that hold every record, with many for each byte that they hold besides.
HOLDING: dict[str, tuple[Ptk, int]] = {
    "forest": (
        Forest(
            inputs=tuple(Number(column=f"x{k}", lower=0.0, upper=1.0, bins=300) for k in range(40)),
            label="y",
            classes=(0, 1),
            trees=4,
            depth=4,
        ),
        300_000,
    ),
    "lloyd": (
        Clusters(
            values=tuple(Bounded(column=f"x{k}", lower=0.0, upper=1.0) for k in range(40)),
            clusters=4,
            iterations=2,
        ),
        300_000,
    ),
    "embeddings": (embeddings(), 1_000_000),
}


class TestWorkers:
    """The limit is real, and what kinds declare is enough for it."""

    def trained(self, ptk: Ptk, rows: int, memory_bytes: int) -> str:
        delta = Fraction(1, 10**6) if ptk.tags.needs_delta else Fraction(0)
        example = ptk.example(50_000)
        assert example is not None
        piece = Piece("train", Fraction(0), Fraction(1), rows)
        charge = PieceCost("train", piece, PureCost(epsilon=1))
        task = TrainTask(charge, ptk, Fraction(1), delta, 1, None, 0, SystemNoise())
        pool = ProcessWorkers(1, memory_bytes)
        try:
            (done,) = pool.profile(
                [ProfileJob("train", task, tuple(example for _ in range(rows // 50_000)))]
            )
        finally:
            pool.close()
        return done.answer.failure

    def needed(self, ptk: Ptk, rows: int) -> int:
        """As for a profile, without what reading blocks takes, which a job does not."""
        example = ptk.example(1_000)
        assert example is not None
        records = rows * (int(example.nbytes) // 1_000 + 8) * 4
        return (records + ptk.working_bytes(rows) + ptk.working_bytes(0)) * 5 // 4 + 32 * MIB

    @pytest.mark.parametrize("name", HOLDING)
    def test_what_is_set_aside_is_enough(self, name: str) -> None:
        ptk, rows = HOLDING[name]
        assert self.trained(ptk, rows, self.needed(ptk, rows)) == ""

    def test_a_worker_has_no_more_than_it_was_given(self) -> None:
        ptk, rows = HOLDING["forest"]
        assert self.trained(ptk, rows, 16 * MIB) == "PTK_FAILED"

    @pytest.mark.parametrize(
        "deed",
        [
            "raise ValueError(str(listed[0].to_pylist()[:1]))",
            "kept = bytearray(1 << 40)",
            "kept = [bytes(1 << 20) for _ in range(1 << 20)]",
            "os._exit(3)",
            "os.abort()",
        ],
        ids=["raises", "asks for too much", "takes too much", "leaves", "aborts"],
    )
    def test_every_failure_on_data_is_told_alike(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
    ) -> None:
        with (
            installed(tmp_path / "package", monkeypatch, deed),
            Store(tmp_path / "store", workers=2, memory_bytes=900 * MIB) as store,
        ):
            store.create_stream(spec())
            bounds = {"column": "speed", "lower": 0.0, "upper": 60.0}
            assert (
                store.register(
                    "bad", stream="rides", kind="other", config=bounds, target=0.2
                ).status
                == "ACTIVE"
            )
            store.register("good", stream="rides", kind="statistics", config=config(), target=0.2)
            store.push("rides", day(0))
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
            lines = {line.ptk: (line.outcome, line.reason) for line in cycle.trained}
            assert lines == {"bad": ("TRAIN_FAILED", "PTK_FAILED"), "good": ("PUBLISHED", "")}
            assert (store.ptk("bad").status, store.ptk("bad").reason) == ("FAILED", "PTK_FAILED")


def test_small_batches_are_joined_and_lose_nothing() -> None:
    sizes = [1] * 700 + [5_000, 3, 0, 4_096, 1]
    ends = np.cumsum([0, *sizes])
    batches = [
        pa.RecordBatch.from_pydict({"x": np.arange(start, stop)}) for start, stop in pairwise(ends)
    ]
    found = list(joined(batches))
    assert np.concatenate([one.column(0).to_numpy() for one in found]).tolist() == list(
        range(sum(sizes))
    )
    assert len(found) <= 8
