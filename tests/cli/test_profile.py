"""Profiles on the command line: drawn for people, exact for programs, and no research on streams."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.sage import call
from tests.engine.small import config, open_store

CONFIG = json.dumps(config())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with open_store(tmp_path) as opened:
        opened.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.1)
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


def test_research_takes_files_and_no_streams(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"hour": rng.integers(0, 24, 3000), "speed": rng.uniform(0, 60, 3000)})
    pyarrow.parquet.write_table(table, tmp_path / "rides.parquet")
    asked = ["research", "profile", "rides.parquet", "--kind", "statistics", "--config", CONFIG, "--samples", "50,500"]
    found = call(*asked, "--levels", "1", "--repeats", "2", "--svg", "loss.svg", cwd=tmp_path)
    assert found.code == 0, found.err
    assert "NOT PRIVATE" in found.out
    ElementTree.fromstring((tmp_path / "loss.svg").read_text())
    refused = call(*asked, "--stream", "rides", cwd=tmp_path, code=None)
    assert (refused.code, "RESEARCH_REFUSED" in refused.err) == (1, True)
    wrong = call(*asked[:-1], "many", cwd=tmp_path, code=None)
    assert (wrong.code, "COMMAND_USAGE" in wrong.err) == (2, True)
