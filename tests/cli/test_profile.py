"""Profiles on the command line: drawn for people, exact for programs, and no research on
streams.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.sage import call
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store

CONFIG = json.dumps(config())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with open_store(tmp_path) as opened:
        opened.register(
            "hour-speed", stream="rides", kind="statistics", config=config(), target=0.1
        )
    return tmp_path


def test_a_closed_form_is_drawn(store: Path) -> None:
    people = call("ptk", "profile", "hour-speed", "--svg", "curve.svg", cwd=store)
    assert people.code == 0, people.err
    assert "analytic" in people.out
    assert "█" in people.out
    ElementTree.fromstring((store / "curve.svg").read_text())
    body = call("ptk", "profile", "hour-speed", "--levels", "0.1,1", "--json", cwd=store).json
    assert body["levels"] == ["0.1", "1"]
    assert body["samples"][0] > body["samples"][1] > 0
    described = call("ptk", "describe", "hour-speed", "--svg", "again.svg", cwd=store)
    assert "█" in described.out
    assert (store / "again.svg").exists()
    assert call("ptk", "profile", "nobody", cwd=store, code=None).code == 1


def test_a_measured_one_is_drawn_and_renewed(tmp_path: Path) -> None:
    values = [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}]
    wanted = {"values": values, "clusters": 2}
    with open_store(tmp_path, profile_share="0.7", block_seconds=86_400) as opened:
        opened.register("speeds", stream="rides", kind="clusters", config=wanted, target=0.6)
        opened.register(
            "hour-speed", stream="rides", kind="statistics", config=config(), target=0.2
        )
        opened.push("rides", day(0, 40_000), producer="p", seq=0)
        opened.run("rides", until_ms=FIRST_MS + DAY_MS)
    people = call("ptk", "profile", "speeds", "--svg", "curve.svg", cwd=tmp_path)
    assert "measured" in people.out
    assert "REACHED" in people.out
    assert "measured again" not in people.out
    assert "95% band" in people.out
    assert 'class="band"' in (tmp_path / "curve.svg").read_text(), "the band"
    ElementTree.fromstring((tmp_path / "curve.svg").read_text())
    asked = call("ptk", "profile", "speeds", "--renew", cwd=tmp_path)
    assert "to be measured again when the next window closes" in asked.out
    body = call("ptk", "profile", "speeds", "--json", cwd=tmp_path).json
    assert "measured again" in body["reason"]
    assert all(
        one["witness"] and one["band"][0] <= one["band"][1]
        for one in body["measured"]
        if one["status"] == "REACHED"
    )
    assert "nothing to measure" in call("ptk", "profile", "hour-speed", "--renew", cwd=tmp_path).out


def test_research_takes_files_and_no_streams(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"hour": rng.integers(0, 24, 3000), "speed": rng.uniform(0, 60, 3000)})
    pyarrow.parquet.write_table(table, tmp_path / "rides.parquet")
    asked = [
        "research",
        "profile",
        "rides.parquet",
        "--kind",
        "statistics",
        "--config",
        CONFIG,
        "--samples",
        "50,500",
    ]
    found = call(*asked, "--levels", "1", "--repeats", "2", "--svg", "loss.svg", cwd=tmp_path)
    assert found.code == 0, found.err
    assert "NOT PRIVATE" in found.out
    ElementTree.fromstring((tmp_path / "loss.svg").read_text())
    refused = call(*asked, "--stream", "rides", cwd=tmp_path, code=None)
    assert (refused.code, "RESEARCH_REFUSED" in refused.err) == (1, True)
    wrong = call(*asked[:-1], "many", cwd=tmp_path, code=None)
    assert (wrong.code, "COMMAND_USAGE" in wrong.err) == (2, True)
