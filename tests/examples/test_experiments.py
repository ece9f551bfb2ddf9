"""The experiments run from end to end on small made-up files in the layout of the real ones; charts
say what they should.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from examples.experiments import __main__ as command
from examples.experiments.harness import NO_PTK, NP_PTK, Experiment, Outcome, Scene, arm_of, compare
from examples.plots import Axis, Point, Series, line_chart
from examples.ptks import profile

SVG = "{http://www.w3.org/2000/svg}"


def rides(rng: np.random.Generator, rows: int, years: tuple[str, str]) -> pd.DataFrame:
    """Rides whose pace depends on the place and the hour."""
    start, end = (pd.Timestamp(one).value // 10**9 for one in years)
    at = pd.Series(pd.to_datetime(rng.integers(start, end, rows), unit="s"))
    places = {
        f"{which}_{axis}": rng.uniform(*ends, rows)
        for which in ("pickup", "dropoff")
        for axis, ends in (("longitude", (-74.02, -73.8)), ("latitude", (40.65, 40.85)))
    }
    km = np.hypot(
        (places["pickup_longitude"] - places["dropoff_longitude"]) * 84.3,
        (places["pickup_latitude"] - places["dropoff_latitude"]) * 111.2,
    )
    seconds = np.clip(km * np.exp(5 + rng.normal(0, 0.3, rows) + (at.dt.hour > 12) * 0.3), 61, 7000)
    return pd.DataFrame(
        {"pickup_datetime": at, **places, "trip_duration": seconds.astype(np.int32)}
    )


def made_up(folder: Path) -> Path:
    """All files that the experiments read."""
    rng = np.random.default_rng(0)
    for name in ("taxi", "ads", "tabular", "ratings", "citibike"):
        (folder / name).mkdir()
    zones = rides(rng, 6_000, ("2018-01-01", "2020-01-01")).rename(
        columns={"trip_duration": "trip_duration_s"}
    )
    zones = zones.assign(
        pickup_location_id=rng.integers(1, 266, len(zones)),
        dropoff_location_id=rng.integers(1, 266, len(zones)),
    )
    zones.to_parquet(folder / "taxi" / "yellow_2018_2019_zones.parquet")
    rides(rng, 6_000, ("2016-01-01", "2016-07-01")).to_parquet(
        folder / "taxi" / "yellow_2016H1_lonlat.parquet"
    )
    rows = 4_000
    app = rng.integers(0, 50, rows)
    clicks = {
        name: rng.integers(0, 100, rows).astype(np.int32)
        for name in ("ip", "device", "os", "channel")
    }
    label = (rng.random(rows) < np.where(app < 5, 0.3, 0.01)).astype(np.int8)
    at = pd.to_datetime(rng.integers(1_510_000_000, 1_510_250_000, rows), unit="s")
    pd.DataFrame(
        {**clicks, "app": app.astype(np.int32), "is_attributed": label, "click_time": at}
    ).to_parquet(folder / "ads" / "talkingdata_100k.parquet")
    texts = (
        "workclass",
        "education",
        "marital_status",
        "occupation",
        "relationship",
        "native_country",
        "race",
        "sex",
    )
    people = {name: rng.choice(["a", "b", "c"], rows) for name in texts}
    numbers = {
        "age": rng.integers(17, 91, rows),
        "education_num": rng.integers(1, 17, rows),
        "hours_per_week": rng.integers(1, 99, rows),
        "capital_gain": rng.integers(0, 9_000, rows),
        "capital_loss": rng.integers(0, 3_000, rows),
    }
    rich = rng.random(rows) < np.where(people["education"] == "a", 0.7, 0.1)
    pd.DataFrame({**people, **numbers, "income": np.where(rich, ">50K", "<=50K")}).to_parquet(
        folder / "tabular" / "adult.parquet"
    )
    mood = rng.normal(0, 0.7, 2_719)
    for name, items in (("book", 6_777), ("music", 5_567)):
        users = rng.integers(1, 2_719, 5_000)
        stars = np.clip(np.rint(4 + mood[users] + rng.normal(0, 0.5, 5_000)), 1, 5)
        frame = pd.DataFrame(
            {"user_id": users, "item_id": rng.integers(1, items + 1, 5_000), "rating": stars}
        )
        frame.to_parquet(folder / "ratings" / f"douban_{name}.parquet")
    starts = pd.to_datetime(rng.integers(1_445_000_000, 1_514_000_000, rows), unit="s")
    stations = rng.integers(3_183, 3_213, (2, rows)).astype(np.int32)
    kinds = rng.choice(["Subscriber", "Customer"], rows)
    pd.DataFrame(
        {
            "starttime": starts,
            "start_station_id": stations[0],
            "end_station_id": stations[1],
            "usertype": kinds,
        }
    ).to_parquet(folder / "citibike" / "jersey_city_2015_2017.parquet")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("name", sorted(command.EXPERIMENTS))
def test_a_rehearsal_writes_a_chart_a_table_and_all_numbers(
    name: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["experiments", name, "--data", str(data), "--fast", "--out", str(tmp_path)]
    )
    assert command.main() == 0
    table = (tmp_path / f"{name}.md").read_text()
    assert table.strip() in capsys.readouterr().out
    points = json.loads((tmp_path / f"{name}.json").read_text())
    arms = {point["arm"] for point in points}
    assert {NO_PTK, NP_PTK, arm_of(0.1), arm_of(0.5), arm_of(1)} <= arms
    assert all(np.isfinite(point["errors"]).all() and len(point["errors"]) >= 2 for point in points)
    chart = ElementTree.fromstring((tmp_path / f"{name}.svg").read_text())
    assert len(chart.findall(f"{SVG}polyline")) == len(arms)


def scripted(saved: Callable[[int], float]) -> Outcome:
    """The error without PTKs is 1 plus the seed over 10; with one it is lower by a given part."""

    def scene(seed: int) -> Scene:
        plain = np.full((10, 1), 1 + seed / 10)
        return Scene(
            arms={NO_PTK: (plain, plain), arm_of(1): (plain, plain * (1 - saved(seed)))},
            train_answers=np.zeros(10),
            test_answers=np.zeros(10),
        )

    experiment = Experiment(
        name="x",
        title="X",
        error="error",
        learn=lambda _train, _answers, test: test[:, 0],
        loss=lambda predicted, _: float(predicted.mean()),
        fractions=(0.5, 1.0),
    )
    return compare(experiment, scene, seeds=4, say=lambda _: None)


def test_gains_are_paired_by_seed() -> None:
    mean, half = scripted(lambda _: 0.2).gain(arm_of(1), 1.0)
    assert mean == pytest.approx(0.2)
    # Errors differ from seed to seed, gains do not.
    assert half == pytest.approx(0, abs=1e-9)
    assert scripted(lambda _: 0.2).mean(NO_PTK, 1.0)[1] > 0.1
    mean, half = scripted(lambda seed: 0.1 if seed % 2 else -0.1).gain(arm_of(1), 0.5)
    assert mean - half < 0 < mean + half


class TestChart:
    def test_a_chart_is_one_file_with_words_for_everything(self) -> None:
        lines = [Series(f"a<{place}>", (Point(1, 0.5, 0.1), Point(10, 0.25))) for place in range(6)]
        text = line_chart("T & t", "said", Axis(words="x", log=True), Axis(words="y"), lines)
        page = ElementTree.fromstring(text)
        assert page.findtext(f"{SVG}title") == "T & t"
        assert page.findtext(f"{SVG}desc") == "said"
        assert len(page.findall(f"{SVG}polyline")) == 6
        assert "a&lt;5&gt;: 0.5 ± 0.1" in text
        assert text.count("http") == 1  # the name of the format
        assert "href" not in text

    @pytest.mark.parametrize(
        "lines", [[], [Series("empty", ())], [Series("a", (Point(1, 1),))] * 7]
    )
    def test_a_chart_of_nothing_or_too_much_is_refused(self, lines: list[Series]) -> None:
        with pytest.raises(ValueError, match="must have 1 to 6 lines"):
            line_chart("t", "d", Axis(words="x"), Axis(words="y"), lines)

    def test_one_point_and_equal_values_can_be_drawn(self) -> None:
        for log in (False, True):
            ElementTree.fromstring(
                line_chart(
                    "t",
                    "d",
                    Axis(words="x", log=log),
                    Axis(words="y"),
                    [Series("a", (Point(3, 0.0),))],
                )
            )

    def test_points_lie_inside_the_frame(self) -> None:
        points = tuple(Point(10.0**k, 0.1 * k - 3, 0.01) for k in range(5))
        page = ElementTree.fromstring(
            line_chart("t", "d", Axis(words="x", log=True), Axis(words="y"), [Series("a", points)])
        )
        line = page.find(f"{SVG}polyline")
        assert line is not None
        for pair in (line.get("points") or "").split():
            x, y = map(float, pair.split(","))
            assert 76 <= x <= 560
            assert 54 <= y <= 352


def test_profiles_draw_lines_that_fall(tmp_path: Path) -> None:
    text = profile.draw("statistics", profile.CASES["statistics"](), tmp_path, seeds=2)
    rows = [line.split() for line in text.splitlines()[1:]]
    first, last = [float(one) for one in rows[0][1:]], [float(one) for one in rows[-1][1:]]
    assert all(after < before for before, after in zip(first, last, strict=True))
    # Less privacy, less loss; with very much data it hardly matters.
    assert first[1] > first[3] > first[0]
    assert last[3] == pytest.approx(last[0], rel=0.02)
    assert (tmp_path / "statistics.svg").read_text().startswith("<svg")
