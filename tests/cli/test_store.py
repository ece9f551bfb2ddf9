"""From nothing to a featurized frame, with every command, by people and by programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Taxi
from tests.cli.sage import SAGE, call, environment, sage
from tests.pixels import pixels

SPEEDS = "pickup_at_speed_kmh_mean"


def test_apply_creates_and_registers(taxi: Taxi) -> None:
    outcomes = {one["name"]: one for one in taxi.applied.json["outcomes"]}
    assert {name: one["status"] for name, one in outcomes.items()} == {
        "rides": "CREATED",
        "hour-speed": "REGISTERED",
        "zone-fare": "REGISTERED",
    }
    assert outcomes["hour-speed"]["planned_samples"] > 0
    assert taxi.applied.json["undeclared"] == []


def test_a_push_tells_no_count(taxi: Taxi) -> None:
    body = taxi.pushed.json
    assert {name: body[name] for name in ("stream", "file", "producer", "seq")} == {
        "stream": "rides",
        "file": "rides.parquet",
        "producer": "depot",
        "seq": 1,
    }
    assert set(body) == {"stream", "file", "producer", "seq", "watermark_ms"}


def test_every_day_gave_every_ptk_a_version(taxi: Taxi) -> None:
    assert len(taxi.ran.json) == 3
    for cycle in taxi.ran.json:
        assert cycle["status"] == "DONE"
        assert {one["ptk"]: one["outcome"] for one in cycle["trained"]} == {
            "hour-speed": "PUBLISHED",
            "zone-fare": "PUBLISHED",
        }
        # A DP count of four blocks with 20,000 records together: noise of scale 100 each.
        assert abs(cycle["dp_records"] - 20_000) < 4000
        assert cycle["dp_records"] != 0


def test_running_again_does_nothing(taxi: Taxi) -> None:
    assert call("run", "--until", "2026-03-04", "--json", cwd=taxi.path).json == []
    assert (
        "no window is complete"
        in call("run", "--stream", "rides", "--until", "2026-03-02", cwd=taxi.path).out
    )


def test_applying_again_changes_nothing(taxi: Taxi) -> None:
    again = call("apply", "--json", cwd=taxi.path).json["outcomes"]
    assert {one["status"] for one in again} == {"UNCHANGED"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "--stream", "rides"],
        ["plan", "show"],
        ["plan", "show", "--stream", "rides"],
        ["plan", "--stream", "rides", "show"],
        ["stream", "list"],
        ["ptk", "list"],
        ["ptk", "list", "--stream", "rides"],
        ["ptk", "describe", "zone-fare"],
        ["ptk", "versions", "zone-fare"],
        ["budget", "show", "rides"],
        ["budget", "history", "rides"],
        ["events", "tail"],
        ["events", "tail", "-n", "2"],
        ["doctor"],
        ["doctor", "--canary", "Jane Doe", "--canary", "4711-secret"],
    ],
    ids=" ".join,
)
def test_every_look_is_for_people_and_for_programs(
    taxi: Taxi, tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    people = call(*arguments, cwd=taxi.path)
    assert people.out.strip()
    assert people.err == ""
    assert not people.out.lstrip().startswith(("{", "["))
    # Before the command, after it, and from elsewhere: the same document.
    payload = call("--json", *arguments, cwd=taxi.path).json
    assert payload
    elsewhere = call(*arguments, "--json", "--store", taxi.path, cwd=tmp_path).json
    assert _timeless(elsewhere) == _timeless(payload)
    monkeypatch.setenv("SAGE_STORE", str(taxi.path))
    assert _timeless(call(*arguments, "--json", cwd=tmp_path).json) == _timeless(payload)
    assert list(tmp_path.iterdir()) == []


def _timeless(payload: Any) -> Any:
    """Without the seconds that a solver took."""
    if isinstance(payload, list):
        return [_timeless(one) for one in payload]
    if isinstance(payload, dict):
        return {name: _timeless(one) for name, one in payload.items() if name != "seconds"}
    return payload


def test_a_plan_is_a_table_of_ptks(taxi: Taxi) -> None:
    (plan,) = call("plan", "--json", cwd=taxi.path).json
    assert {line["ptk"] for line in plan["lines"]} == {"hour-speed", "zone-fare"}
    words = call("plan", cwd=taxi.path).out.splitlines()
    assert words[1].split() == ["ptk", "epsilon", "samples", "target", "partitions"]
    assert {line.split()[0] for line in words[2:4]} == {"hour-speed", "zone-fare"}


def test_versions_and_description(taxi: Taxi) -> None:
    versions = call("ptk", "versions", "hour-speed", "--json", cwd=taxi.path).json
    assert sorted(one["version"] for one in versions) == [1, 2, 3]
    body = call("ptk", "describe", "hour-speed", "--json", cwd=taxi.path).json
    assert body["latest_version"] == 3
    assert body["features"] == [SPEEDS, "pickup_at_speed_kmh_count"]
    assert body["reads"] == ["pickup_at"]


def test_the_budget_holds_no_raw_data_any_more(taxi: Taxi) -> None:
    body = call("budget", "show", "rides", "--json", cwd=taxi.path).json
    assert (body["epsilon"], body["unit"], body["delta"]) == ("1", "event", "1e-06")
    assert [one["status"] for one in body["blocks"]] == ["expired"] * 12
    # What is open begins where the last window ended, and nobody has pushed anything there.
    assert body["exposure"]["blocks"] <= 1
    assert (body["exposure"]["oldest_ms"] or 1_772_582_400_000) >= 1_772_582_400_000
    history = call("budget", "history", "rides", "--json", cwd=taxi.path).json
    assert len(history) == 3


def test_events_are_in_order_and_can_be_continued(taxi: Taxi) -> None:
    everything = call("events", "tail", "-n", "1000", "--json", cwd=taxi.path).json
    ids = [one["id"] for one in everything]
    assert ids == sorted(set(ids))
    assert [
        one["id"] for one in call("events", "tail", "-n", "2", "--json", cwd=taxi.path).json
    ] == ids[-2:]
    assert [
        one["id"]
        for one in call("events", "tail", "--after", str(ids[-3]), "--json", cwd=taxi.path).json
    ] == ids[-2:]
    assert call("events", "tail", "-n", "0", "--json", cwd=taxi.path).json == []
    assert {one["subject"] for one in everything if one["kind"] == "ptk.state"} == {
        "hour-speed",
        "zone-fare",
    }


def test_follow_goes_on_until_interrupted(taxi: Taxi, tmp_path: Path) -> None:
    store = _copy(taxi, tmp_path)
    with subprocess.Popen(
        [SAGE, "events", "tail", "-n", "1", "--follow", "--interval", "0.1", "--json"],
        cwd=store,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            first = json.loads(process.stdout.readline())
            # Another process changes the store while this one follows.
            sage("ptk", "retire", "zone-fare", cwd=store)
            second = json.loads(process.stdout.readline())
            assert second["id"] > first["id"]
            assert second["subject"] == "zone-fare"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert json.loads(process.stderr.read())["reason"] == "RUN_INTERRUPTED"
        finally:
            process.kill()  # or leaving would wait for it for ever


def test_the_doctor_finds_a_canary_in_the_clear(taxi: Taxi, tmp_path: Path) -> None:
    store = _copy(taxi, tmp_path)
    healthy = call("doctor", "--canary", "Jane-Doe-4711", "--json", cwd=store).json
    assert {one["level"] for one in healthy} <= {"OK", "WARNING"}
    (store / "lake" / "leak.txt").write_text("... Jane-Doe-4711 ...")
    found = call("doctor", "--canary", "Jane-Doe-4711", "--json", cwd=store, code=1).json
    assert "ERROR" in {one["level"] for one in found}


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_featurize(taxi: Taxi, tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"features{ending}"
    arguments = [
        "featurize",
        "trips.csv",
        "--ptk",
        "hour-speed",
        "--ptk",
        "zone-fare@v2",
        "-o",
        str(output),
    ]
    body = sage(*arguments, "--json", cwd=taxi.path).json
    assert body["rows"] == 8
    assert body["states"] == ["hour-speed@v3", "zone-fare@v2"]
    assert body["features"] == [SPEEDS, "pickup_at_speed_kmh_count", "zone_fare_mean"]
    assert body["columns"] == ["trip", "pickup_at", "zone", *body["features"]]
    assert str(output) in call(*arguments, cwd=taxi.path).out
    if ending == ".csv":
        table = pyarrow.csv.read_csv(output)
    elif ending == ".parquet":
        table = pq.read_table(output)
    else:
        return
    speeds = dict(zip(range(0, 24, 3), table[SPEEDS].to_pylist(), strict=True))
    # The evening rush is slow, the small hours are not, and the noise leaves that to be seen.
    assert speeds[18] < 30 < speeds[3]
    fares = dict(zip(table["zone"].to_pylist(), table["zone_fare_mean"].to_pylist(), strict=True))
    assert fares["airport"] == pytest.approx(55, abs=3)
    assert fares["centre"] == pytest.approx(14, abs=3)


def test_register_retarget_retire(taxi: Taxi, tmp_path: Path) -> None:
    store = _copy(taxi, tmp_path)
    config = {
        "keys": [{"kind": "time_part", "column": "pickup_at", "part": "weekday"}],
        "statistics": ["count"],
    }
    (store / "weekday.yaml").write_text(json.dumps(config))
    register = [
        "ptk",
        "register",
        "weekday",
        "--stream",
        "rides",
        "--kind",
        "statistics",
        "--target",
        "0.05",
    ]
    answer = call(*register, "--config", "@weekday.yaml", "--json", cwd=store).json
    assert answer["status"] == "ACTIVE"
    assert (
        call("ptk", "retarget", "weekday", "0.06", "--json", cwd=store).json["status"] == "ACTIVE"
    )
    refused = call("ptk", "retarget", "weekday", "0.0000001", "--json", cwd=store, code=1).json
    assert refused["status"] == "REJECTED"
    assert refused["reason"]
    words = call("ptk", "retarget", "weekday", "0.0000001", cwd=store, code=1).out
    assert words.startswith("weekday REJECTED: ")
    assert call("ptk", "describe", "weekday", "--json", cwd=store).json["target"] == 0.06
    # It is not in sage.yaml, and apply says so.
    assert call("apply", "--json", cwd=store).json["undeclared"] == ["weekday"]
    assert "not declared: weekday" in call("apply", cwd=store).out
    assert call("ptk", "retire", "weekday", "--json", cwd=store).json["status"] == "RETIRED"
    twice = call(*register, "--config", json.dumps(config), "--json", cwd=store, code=1)
    assert twice.error["reason"] == "PTK_EXISTS"


def test_a_push_can_be_repeated(taxi: Taxi, tmp_path: Path) -> None:
    store = _copy(taxi, tmp_path)
    push = ["stream", "push", "rides", "rides.csv", "--producer", "depot", "--seq", "2", "--json"]
    (store / "rides.csv").write_text(
        "pickup_at,zone,speed_kmh,fare\n2026-03-05 10:00:00,north,31.5,12\n"
    )
    first, second = (call(*push, cwd=store).json for _ in range(2))
    assert first == second
    assert "pushed rides.csv to rides" in call(*push[:-1], cwd=store).out
    # Raw data is held until its window is done, and is nowhere in the clear.
    assert call("budget", "show", "rides", "--json", cwd=store).json["exposure"]["blocks"] >= 1


def test_a_record_that_cannot_be_in_the_stream_is_told_and_the_others_are_pushed(
    taxi: Taxi, tmp_path: Path
) -> None:
    store = _copy(taxi, tmp_path)
    push = ["stream", "push", "rides", "rides.csv", "--producer", "depot", "--seq", "3"]
    rows = [f"2026-03-05 10:00:{k:02},north,{'' if k in (5, 7) else '31.5'},12" for k in range(20)]
    (store / "rides.csv").write_text("\n".join(["pickup_at,zone,speed_kmh,fare", *rows, ""]))
    refused = {"column": "speed_kmh", "reason": "NULL_VALUE", "records": 2, "first_row": 5}
    for _ in range(2):
        error = call(*push, "--json", cwd=store, code=1).error
        assert (error["reason"], error["details"]) == ("RECORDS_REFUSED", {"refused": [refused]})
    words = call(*push, cwd=store, code=1).err
    assert "2 records were refused" in words
    assert "All others of the push are durable" in words


def test_a_stream_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "name: clicks\ntime_column: at\n"
        "columns: [{name: at, type: timestamp, lower: 2026-01-01}, {name: ok, type: bool}]\n"
    )
    assert call("stream", "create", "one.yaml", "--json", cwd=tmp_path).json["name"] == "clicks"
    (spec,) = call("stream", "list", "--json", cwd=tmp_path).json
    assert spec["time_column"] == "at"
    again = call("stream", "create", "one.yaml", "--json", cwd=tmp_path, code=1)
    assert again.error["reason"] == "STREAM_EXISTS"
    assert call("ptk", "list", "--json", cwd=tmp_path).json == []
    assert "no PTKs yet" in call("ptk", "list", cwd=tmp_path).out
    assert call("plan", "show", "--json", cwd=tmp_path).json == []


def _copy(taxi: Taxi, tmp_path: Path) -> Path:
    shutil.copytree(taxi.path, tmp_path / "taxi")
    # Keys are readable by their owner only, copies too.
    assert all(one.stat().st_mode & 0o077 == 0 for one in (tmp_path / "taxi").rglob("*.key")), (
        os.listdir(tmp_path)
    )
    return tmp_path / "taxi"


def test_a_window_without_enough_data_says_why(taxi: Taxi, tmp_path: Path) -> None:
    store = _copy(taxi, tmp_path)
    people = call("run", "--until", "2026-03-05", cwd=store, code=1)
    assert "SHORT. 2 of 2 PTKs got no new version" in people.out
    assert "Send at least" in people.out
    assert "2026-03-04" in people.out
    assert "sage plan show --stream rides" in people.out
    assert {
        one["outcome"]
        for one in call("budget", "history", "rides", "--json", cwd=store).json[-1]["trained"]
    } == {"SKIPPED"}
    shown = call("plan", "show", "--svg", str(store / "plan.svg"), cwd=store).out
    assert (store / "plan.svg").read_text().startswith("<svg")
    assert "INFEASIBLE" in shown
    assert "WINDOW_TOO_SMALL" in shown
    assert "windows of rides" in call("doctor", cwd=store, code=1).out


def test_the_picture_of_a_plan_is_written_as_svg_and_as_png(taxi: Taxi, tmp_path: Path) -> None:
    svg, png = tmp_path / "plan.svg", tmp_path / "plan.png"
    call("plan", "show", "--stream", "rides", "--svg", str(svg), "--png", str(png), cwd=taxi.path)
    size = re.search(r'width="(\d+)" height="(\d+)"', svg.read_text())
    assert size is not None
    found = pixels(png.read_bytes())
    assert found.shape == (2 * int(size[2]), 2 * int(size[1]), 3)
    assert len({tuple(one) for one in found[:, ::40].reshape(-1, 3).tolist()}) > 3
    call("plan", "show", "--png", str(tmp_path / "no" / "plan.png"), cwd=taxi.path, code=2)


def test_what_if_shows_both_plans(taxi: Taxi) -> None:
    found = call(
        "plan", "what-if", "--stream", "rides", "--drop", "zone-fare", "--json", cwd=taxi.path
    ).json
    assert {line["ptk"] for line in found["current"]["lines"]} == {"hour-speed", "zone-fare"}
    assert {line["ptk"] for line in found["proposed"]["lines"]} == {"hour-speed"}
    words = call(
        "plan", "what-if", "--stream", "rides", "--retarget", "zone-fare=0.2", cwd=taxi.path
    ).out
    assert words.startswith("now: ")
    assert "\nthen: " in words
    for option, bad, code in (
        ("--retarget", "zone-fare", 2),
        ("--add", "nobody", 2),
        ("--drop", "nobody", 1),
    ):
        call("plan", "what-if", "--stream", "rides", option, bad, cwd=taxi.path, code=code)
