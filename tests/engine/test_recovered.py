"""Whatever recovery drops is told: an event and a line in the log, which say nothing of what it
was.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ptkstore import Store
from tests.engine.small import DAY_MS, FIRST_MS, day, open_store


def test_an_append_that_a_crash_cut_short_is_an_event(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes = tmp_path / "streams/rides/acknowledged"
    with open_store(tmp_path) as store:
        store.push("rides", day(0, 500), seq=0)
        before = notes.read_bytes()
        store.push("rides", day(0, 300), seq=1)
    # As a crash leaves it that comes before the second is whole.
    notes.write_bytes(before)
    block = sorted(tmp_path.glob("streams/rides/*.block"))[-1]
    block.write_bytes(block.read_bytes()[:-7])
    with caplog.at_level(logging.WARNING), Store(tmp_path, workers=0) as store:
        store.push("rides", day(0, 300), seq=1)
        (event,) = [one for one in store.events() if one.kind == "stream.recovered"]
        assert (event.subject, event.body) == ("rides", {"stream": "rides"})
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 800) < 100
    (line,) = [one for one in caplog.messages if "recovered" in one]
    assert block.stem not in line


def test_a_restart_that_drops_nothing_is_no_event(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.push("rides", day(0, 500), seq=0)
    with Store(tmp_path, workers=0) as store:
        store.push("rides", day(0, 300), seq=1)
        assert [one.kind for one in store.events()] == ["stream.created"]
