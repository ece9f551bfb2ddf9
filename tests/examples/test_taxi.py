"""The taxi demo: a city with seasons, a fair comparison, a page that stands alone, and the whole
show in small.
"""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray
from rich.console import Console

from examples.taxi.city import DAY_MS, FIRST_DAY_MS, GREEN, YELLOW, ZONES, City, Fleet
from examples.taxi.demo import Options, canary, run
from examples.taxi.downstream import ARMS, FRACTIONS, NO_PTK, PTK, SMALL, Comparison, Point, compare
from examples.taxi.report import Check, Story, WindowSeen, html
from examples.taxi.stream import DEFAULT_ROWS, HELPFUL, TOO_AMBITIOUS, plant, spec, wanted
from ptklib.state import State
from ptkstore import Store
from ptkstore.api.views import (
    BlockLine,
    BudgetView,
    CycleView,
    ExposureView,
    Finding,
    PlanLine,
    PlanView,
    Registration,
    TrainedLine,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def city() -> City:
    return City()


@pytest.fixture(scope="module")
def week(city: City) -> pa.Table:
    return city.rides(40_000, first_day=0, days=7, seed=1)


def hours(rides: pa.Table) -> NDArray[np.int64]:
    return np.array(pc.hour(rides["pickup_time"]), dtype=np.int64)


class TestCity:
    def test_rides_fit_the_stream_as_declared(self, week: pa.Table) -> None:
        declared = spec()
        assert week.schema.names == [column.name for column in declared.columns]
        for column in declared.columns:
            if column.is_float:
                assert column.lower is not None
                assert column.upper is not None
                values = week[column.name].to_numpy()
                assert values.min() >= column.lower
                assert values.max() <= column.upper
            elif column.domain:
                assert set(week[column.name].to_pylist()) == set(column.domain)

    def test_rides_come_in_order_and_within_their_days(self, week: pa.Table) -> None:
        times = week["pickup_time"].cast(pa.int64()).to_numpy()
        assert len(week) == 40_000
        assert np.all(np.diff(times) >= 0)
        assert times[0] >= FIRST_DAY_MS
        assert times[-1] < FIRST_DAY_MS + 7 * DAY_MS

    def test_weeks_begin_where_windows_begin(self) -> None:
        assert FIRST_DAY_MS % (7 * DAY_MS) == 0

    def test_the_same_seeds_give_the_same_rides_and_others_do_not(
        self, city: City, week: pa.Table
    ) -> None:
        assert City().rides(40_000, first_day=0, days=7, seed=1).equals(week)
        assert not city.rides(40_000, first_day=0, days=7, seed=2).equals(week)
        assert not city.rides(40_000, first_day=7, days=7, seed=1).equals(week)

    def test_working_days_have_rush_hours_and_weekends_late_nights(self, week: pa.Table) -> None:
        weekday = pc.day_of_week(week["pickup_time"]).to_numpy()
        working = np.bincount(hours(week)[weekday < 5], minlength=24) / 5
        weekend = np.bincount(hours(week)[weekday >= 5], minlength=24) / 2
        assert working[8] > 3 * working[3]
        assert working[18] > 3 * working[3]
        assert weekend[23] > 2 * working[23]
        assert working[8] > 2 * weekend[8]

    def test_speed_depends_on_hour_and_zone_together(self, week: pa.Table) -> None:
        speed, zone, hour = (
            week["speed_kmh"].to_numpy(),
            np.array(week["pickup_zone"].to_pylist()),
            hours(week),
        )

        def mean(name: str, at: tuple[int, ...]) -> float:
            return float(speed[(zone == name) & np.isin(hour, at)].mean())

        rush, night = (17, 18, 19), (1, 2, 3, 4)
        assert mean("Exchange", rush) < 0.75 * mean("Exchange", night)
        # The airport is far from the jam: the middle of the city loses more.
        lost = [1 - mean(name, rush) / mean(name, night) for name in ("Exchange", "Airport")]
        assert lost[0] > lost[1]
        assert mean("Airport", rush) > 1.2 * mean("Exchange", rush)

    def test_durations_have_a_long_tail_and_fares_follow_the_meter(self, week: pa.Table) -> None:
        minutes = week["duration_min"].to_numpy()
        assert np.mean(minutes) > 1.1 * np.median(minutes)
        assert abs(float(np.mean(np.log(minutes)) - np.median(np.log(minutes)))) < 0.1
        assert np.corrcoef(week["fare"].to_numpy(), minutes)[0, 1] > 0.8

    def test_the_second_fleet_serves_other_zones_in_the_same_traffic(
        self, city: City, week: pa.Table
    ) -> None:
        other = city.rides(40_000, first_day=0, days=7, seed=1, fleet=GREEN)

        def share(rides: pa.Table, zones: tuple[str, ...]) -> float:
            return float(np.isin(rides["pickup_zone"].to_pylist(), zones).mean())

        offices = ZONES[:6]
        assert share(other, offices) < 0.8 * share(week, offices)
        same_pace = Fleet(
            "yellow again", serves=YELLOW.serves, pace=YELLOW.pace, spread=YELLOW.spread
        )
        assert city.rides(40_000, first_day=0, days=7, seed=1, fleet=same_pace).equals(week)

    def test_a_canary_is_one_ride_and_changes_no_other(self, week: pa.Table) -> None:
        planted = plant(week, note="canary", fare=77.7)
        assert planted.schema.equals(week.schema)
        assert planted["note"].null_count == len(week) - 1
        assert np.sum(planted["fare"].to_numpy() != week["fare"].to_numpy()) == 1


class TestWanted:
    def test_every_ptk_reads_the_stream_and_features_have_their_own_names(self) -> None:
        known = {column.name for column in spec().columns}
        asked = wanted()
        assert all(set(one.ptk.columns()) <= known for one in asked)
        names = [name for one in asked for name in one.ptk.feature_names()]
        assert len(set(names)) == len(names)
        assert asked[-1].name == TOO_AMBITIOUS
        assert set(HELPFUL) <= {one.name for one in asked[:-1]}

    @pytest.mark.parametrize("rows", [20_000, DEFAULT_ROWS, 500_000])
    def test_all_but_the_last_fit_the_window_together(self, rows: int) -> None:
        # At level 1 a PTK needs epsilon times samples of the window; levels between add up alike.
        needs = [one.ptk.analytic_profile(one.target, ["1"])[0] for one in wanted(rows)]
        assert all(need is not None for need in needs)
        assert sum(need or 0 for need in needs[:-1]) < 0.95 * spec(rows).n_max
        assert (needs[-1] or 0) > spec(rows).n_max


def trained(city: City, rows: int) -> list[State]:
    rides = city.rides(rows, first_day=0, days=7, seed=1)
    asked = {one.name: one.ptk for one in wanted()}
    return [
        State.make(
            asked[name], asked[name].train_dp(rides.to_batches(), epsilon=1), name=name, epsilon=1
        )
        for name in HELPFUL
    ]


def made_up(gain: Callable[[float], float]) -> Comparison:
    """Errors of three seeds: no PTK and own statistics at 0.3, PTK better by ``gain(fraction)``."""
    points = [
        Point(
            arm,
            one,
            100,
            tuple(
                (0.3 + 0.001 * seed) * (1 - (gain(one) if arm == PTK else 0)) for seed in range(3)
            ),
        )
        for arm in ARMS
        for one in FRACTIONS
    ]
    return Comparison(tuple(points), 20_000, 10_000, 3)


class TestDownstream:
    def test_ptks_help_when_data_is_scarce_and_errors_fall_with_data(self, city: City) -> None:
        found = compare(
            trained(city, 60_000),
            city=city,
            first_day=7,
            test_rides=4_000,
            seeds=6,
            fractions=(0.003, 0.01, 0.1),
        )
        assert found.ptks_win_when_data_is_scarce
        for arm in ARMS:
            errors = [found.point(arm, one).mean for one in found.fractions]
            assert errors == sorted(errors, reverse=True)
        assert found.point(NO_PTK, 0.1).rides == 2_000

    def test_states_that_know_nothing_do_not_win(self, city: City) -> None:
        # The same PTKs, trained on no ride at all: features of pure noise.
        asked = {one.name: one.ptk for one in wanted()}
        states = [
            State.make(asked[name], asked[name].train_dp([], epsilon=1), name=name, epsilon=1)
            for name in HELPFUL
        ]
        found = compare(
            states, city=city, first_day=7, test_rides=2_000, seeds=6, fractions=(0.003, 0.01)
        )
        assert not found.ptks_win_when_data_is_scarce

    def test_the_same_states_give_the_same_errors(self, city: City) -> None:
        states = trained(city, 10_000)
        runs = [
            compare(
                states,
                city=city,
                first_day=7,
                train_rides=2_000,
                test_rides=500,
                seeds=2,
                fractions=(0.1,),
            )
            for _ in range(2)
        ]
        assert runs[0] == runs[1]

    def test_winning_means_the_whole_interval_at_every_small_fraction(self) -> None:
        assert made_up(lambda _: 0.1).ptks_win_when_data_is_scarce
        assert not made_up(lambda _: -0.1).ptks_win_when_data_is_scarce
        assert made_up(
            lambda fraction: 0.1 if fraction <= SMALL else -0.1
        ).ptks_win_when_data_is_scarce
        assert not made_up(
            lambda fraction: -0.1 if fraction == SMALL else 0.1
        ).ptks_win_when_data_is_scarce
        unsure = made_up(lambda _: 0.1)
        points = [
            replace(one, errors=(0.2, 0.31, 0.3))
            if (one.arm, one.fraction) == (PTK, SMALL)
            else one
            for one in unsure.points
        ]
        assert not replace(unsure, points=tuple(points)).ptks_win_when_data_is_scarce

    def test_one_seed_proves_nothing(self) -> None:
        once = made_up(lambda _: 0.1)
        points = tuple(replace(one, errors=one.errors[:1]) for one in once.points)
        assert not replace(once, points=points, seeds=1).ptks_win_when_data_is_scarce


def seen(number: int) -> WindowSeen:
    blocks = tuple(
        BlockLine(
            f"2026-01-{day + 1:02d}T00:00Z",
            day // 7,
            "expired" if day // 7 < number else "sealed",
            9_000,
            0.1,
            None,
        )
        for day in range(7 * (number + 1))
    )
    held = BudgetView(
        "rides", "event", "1", "0.000001", "renyi", ExposureView(0, 1, 7, 63_000), blocks
    )
    after = replace(
        held,
        exposure=ExposureView(None, None, 0, 0),
        blocks=tuple(replace(block, status="expired") for block in blocks),
    )
    lines = (
        PlanLine("a<b>&c", "0.5", 20_000, 0.4, 0.03),
        PlanLine("zone", "0.25", 50_000, 0.9, 0.1),
    )
    plan = PlanView("rides", number, "OPTIMAL", 50_000, 54_000, "exact", 0.01, lines)
    cycle = CycleView(
        "rides",
        number,
        "DONE",
        (),
        "OPTIMAL",
        60_000,
        (TrainedLine("zone", "PUBLISHED", number + 1),),
    )
    return WindowSeen(cycle, plan, held, after)


def story() -> Story:
    return Story(
        title="Rides & <states>",
        registrations=(
            Registration("zone", "ACTIVE"),
            Registration("route", "REJECTED", "too <much>", 0.2),
        ),
        targets=(0.1, 0.01),
        windows=(seen(0), seen(1)),
        comparison=made_up(lambda _: 0.1),
        findings=(Finding("OK", "canaries", "none of 2"), Finding("ERROR", "a & b", "<bad>")),
        checks=(Check("all is well", True, "yes"), Check("nothing fails", False, "it did")),
        seconds=12.3,
    )


class TestReport:
    def test_the_page_is_well_formed_with_a_title_and_words_for_every_picture(self) -> None:
        page = ElementTree.fromstring(html(story()))
        assert page.findtext("head/title") == "Rides & <states>"
        pictures = list(page.iter("svg"))
        assert len(pictures) == 3
        for picture in pictures:
            assert picture.get("role") == "img"
            labelled = (picture.get("aria-labelledby") or "").split()
            own = [one for one in picture if one.tag in ("title", "desc")]
            assert [one.get("id") for one in own] == labelled
            assert all((one.text or "").strip() for one in own)

    def test_ids_are_unique_and_classes_have_a_style(self) -> None:
        text = html(story())
        ids = re.findall(r' id="([^"]+)"', text)
        assert len(set(ids)) == len(ids)
        style = text[text.index("<style>") : text.index("</style>")]
        used = {name for names in re.findall(r' class="([^"]+)"', text) for name in names.split()}
        assert all(f".{name}" in style for name in used)

    def test_the_page_points_nowhere_and_runs_nothing(self) -> None:
        text = html(story())
        assert not re.search(
            r"https?:|//|url\(|@import|<script|<link|<img|\bsrc=|\bhref=|\bon\w+=", text
        )

    def test_light_and_dark_define_the_same_colours(self) -> None:
        text = html(story())
        light, dark = (
            re.search(r":root \{(.*?)\}", text, re.S),
            re.search(r"dark\) \{ :root \{(.*?)\}", text, re.S),
        )
        assert light
        assert dark
        names = [set(re.findall(r"(--\w+):", one[1])) for one in (light, dark)]
        assert names[0] == names[1]
        assert set(re.findall(r"var\((--\w+)\)", text)) <= names[0]

    def test_shapes_stay_inside_their_pictures(self) -> None:
        for picture in ElementTree.fromstring(html(story())).iter("svg"):
            _, _, width, height = map(float, (picture.get("viewBox") or "").split())
            for shape in picture.iter("rect"):
                x, y, w, h = (float(shape.get(name) or 0) for name in ("x", "y", "width", "height"))
                assert x >= 0
                assert y >= 0
                assert x + w <= width
                assert y + h <= height

    def test_what_failed_is_said(self) -> None:
        text = html(story())
        assert '<span class="bad">FAILED</span>' in text
        assert '<span class="bad">ERROR</span>' in text
        assert "nearest feasible target 20.0%" in text


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "examples.taxi", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
    )


class TestDemo:
    def test_the_whole_show_in_small(self, tmp_path: Path) -> None:
        # In small the noise of a few zones may drown what the features are worth, one time in many;
        # twice in a row it may not.
        for attempt in ("first", "second"):
            report, store = tmp_path / attempt / "report", tmp_path / attempt / "store"
            arguments = (
                "--rows",
                "50000",
                "--windows",
                "2",
                "--report",
                str(report),
                "--store",
                str(store),
            )
            first = demo(*arguments)
            if not re.search(r"FAILED\s+with little data", first.stdout):
                break
        assert first.returncode == 0, first.stdout + first.stderr
        assert "FAILED" not in first.stdout
        assert first.stdout.count("held  ") == 5
        assert re.search(r"route-duration\s.*REJECTED", first.stdout)
        assert "nearest target that would fit" in first.stdout
        assert "14 of 14 published" in first.stdout
        assert "told of 7 new states" in first.stdout
        page = ElementTree.fromstring((report / "taxi.html").read_text())
        assert len(list(page.iter("svg"))) == 3
        files = [path for path in store.rglob("*") if path.is_file()]
        assert len([path for path in files if path.suffix == ".safetensors"]) == 14
        assert not [path for path in files if path.suffix == ".block"]
        # The doctor would have noticed.
        note, fare = canary(1)
        for left in (note.encode(), struct.pack("<d", fare)):
            (store / "left-behind").write_bytes(b"xx" + left)
            with Store(store) as again:
                assert [one.what for one in again.doctor([left]) if one.level == "ERROR"] == [
                    "canaries"
                ]

        second = demo(*arguments)
        assert second.returncode == 2
        assert "STREAM_EXISTS" in second.stdout

    @pytest.mark.parametrize(
        ("gain", "level", "code", "failed"),
        [
            (0.1, "OK", 0, ""),
            (0.1, "WARNING", 0, ""),
            (-0.1, "OK", 1, "FAILED with little data"),
            (0.1, "ERROR", 1, "FAILED the doctor"),
        ],
    )
    def test_the_exit_code_tells_whether_promises_held(
        self,
        gain: float,
        level: str,
        code: int,
        failed: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("examples.taxi.demo.compare", lambda *_, **__: made_up(lambda _: gain))
        monkeypatch.setattr(Store, "doctor", lambda *_: [Finding(level, "something", "or other")])
        out = io.StringIO()
        found = run(Options(rows=20_000, windows=1, report=tmp_path), Console(file=out, width=160))
        assert found == code, out.getvalue()
        assert out.getvalue().count("FAILED") == bool(failed)
        assert failed in out.getvalue()

    @pytest.mark.parametrize("arguments", [("--rows", "10"), ("--windows", "0")])
    def test_options_that_make_no_sense_are_refused(self, arguments: tuple[str, ...]) -> None:
        refused = demo(*arguments)
        assert refused.returncode == 2
        assert "--rows must be 20000 to 500000" in refused.stderr
