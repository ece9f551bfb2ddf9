"""The newcomer's path works word for word: every ``sh`` block of docs/start runs, in order, in an
empty directory.
"""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.sage import environment, sage

ROOT = Path(__file__).parents[1]
START = (ROOT / "docs/start/README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", START, flags=re.M | re.S)
MARK = "---- block ----"


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The directory after all blocks, and what each of them printed."""
    parts = tmp_path_factory.mktemp("start")
    script = f"\necho '{MARK}'\n".join(BLOCKS)
    run = subprocess.run(
        ["/bin/sh", "-eu", "-c", script],
        cwd=parts,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return parts / "taxi", run.stdout.split(f"{MARK}\n")


def test_there_is_a_path_to_walk() -> None:
    assert len(BLOCKS) >= 5
    assert not re.findall(r"^```(bash|shell)\n", START, flags=re.M)


def test_it_ends_with_a_featurized_frame(walked: tuple[Path, list[str]]) -> None:
    path, _ = walked
    with (path / "features.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    speeds = {row["pickup_at"][11:13]: float(row["pickup_at_speed_kmh_mean"]) for row in rows}
    assert speeds["18"] < 30 < speeds["03"]
    fares = {row["zone"]: float(row["zone_fare_mean"]) for row in rows}
    assert fares["airport"] == pytest.approx(55, abs=3)


def test_what_the_page_shows_is_what_is_printed(walked: tuple[Path, list[str]]) -> None:
    """Every line of a ``text`` block begins as some line does that the ``sh`` block before it
    printed; numbers are noisy.
    """
    _, printed = walked
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", START, flags=re.M | re.S)
    number, compared = -1, 0
    for kind, text in blocks:
        number += kind == "sh"
        if kind == "text":
            begins = {line.split()[0] for line in printed[number].splitlines() if line.strip()}
            for line in text.splitlines():
                assert line.split()[0] in begins, f"{line!r} is not in\n{printed[number]}"
                compared += 1
    assert compared > 20


def test_the_data_is_made_up_the_same_every_time(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        sage("init", name, cwd=tmp_path)
        subprocess.run(
            ["python", "make_rides.py"],
            cwd=tmp_path / name,
            env=environment(),
            check=True,
            timeout=120,
        )
        made.append(
            [(tmp_path / name / file).read_bytes() for file in ("rides.parquet", "trips.csv")]
        )
    assert made[0] == made[1]
