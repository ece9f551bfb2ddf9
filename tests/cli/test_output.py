"""What is printed: tables for people, JSON for programs, progress for terminals only."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from ptklib.errors import BudgetExceeded
from ptkstore.api.views import BlockLine, Registration
from ptkstore.api.views.remedies import known_remedies
from ptkstore.cli.output import Table, moment, plain, print_error, rejection, show, window_begins
from ptkstore.cli.session import Invocation
from tests.cli.sage import environment

BLOCK = BlockLine("monday", 3, "sealed", None, float("inf"), None)


def test_values_become_plain_json() -> None:
    body = {
        "blocks": (BLOCK,),
        "path": Path("a/b"),
        "exact": Fraction(1, 3),
        "names": {"x"},
        7: True,
        "nan": float("nan"),
    }
    line = {
        "name": "monday",
        "window": 3,
        "status": "sealed",
        "dp_records": None,
        "left": None,
        "retired": None,
    }
    expected = {
        "blocks": [line],
        "path": "a/b",
        "exact": "1/3",
        "names": ["x"],
        "7": True,
        "nan": None,
    }
    assert plain(body) == expected


def test_a_table_on_a_pipe_is_one_line_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 200
    show(
        Invocation(),
        None,
        Table(
            ("name", "count", "text"),
            [("a", 5, long), ("bcd", 12345, None), ("e", None, "two\nlines")],
        ),
    )
    assert capsys.readouterr().out.splitlines() == [
        "name  count  text",
        f"a         5  {long}",
        "bcd   12345  -",
        "e         -  two lines",
    ]


def test_empty_parts_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    show(Invocation(), None, Table(("a",), []), "", "nothing yet")
    assert capsys.readouterr().out == "nothing yet\n"


def test_json_is_the_payload_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    show(Invocation(as_json=True), [BLOCK], "for people", Table(("a",), [(1,)]))
    assert json.loads(capsys.readouterr().out)[0]["name"] == "monday"


def test_errors_are_one_line_or_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    error = BudgetExceeded("BUDGET_EXCEEDED", "no", blocks=("a",), left={"a": Fraction(1, 2)})
    print_error(error, as_json=False)
    print_error(error, as_json=True)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "no [BUDGET_EXCEEDED]"
    details = {"blocks": ["a"], "left": {"a": "1/2"}}
    assert json.loads(second) == {"reason": "BUDGET_EXCEEDED", "message": "no", "details": details}


def test_a_rejection_says_what_would_be_accepted() -> None:
    helps = known_remedies((), ("Raise N_max.",))
    answer = Registration("a", "REJECTED", "too little data", 0.07, remedies=helps)
    assert (
        rejection(answer)
        == "a REJECTED: too little data\n  nearest feasible target: 0.07\n  or: Raise N_max."
    )
    assert rejection(Registration("a", "REJECTED", "no")) == "a REJECTED: no"


def test_times_are_in_utc() -> None:
    assert moment(0) == "1970-01-01 00:00:00Z"
    assert moment(None) is None


_SHOW = """
import time
from ptkstore.cli.output import Table, show
from ptkstore.cli.progress import progress
from ptkstore.cli.session import Invocation
with progress("one [bold]") as tell:
    if tell is not None:
        tell("two")
    time.sleep(0.3)
show(Invocation(), None, Table(("level", "count"), [("OK", 1), ("ERROR", 22)]))
"""


def _on_terminal(stream: str, code: str = _SHOW, **variables: str) -> str:
    """What the terminal shows when that stream of the process is connected to it."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(TERM="xterm", **variables),
        stdout=child if stream == "stdout" else subprocess.DEVNULL,
        stderr=child if stream == "stderr" else subprocess.DEVNULL,
    )
    os.close(child)
    shown = b""
    while True:
        try:
            read = os.read(parent, 65536)
        except OSError:
            break
        if not read:
            break
        shown += read
    os.close(parent)
    assert process.wait(60) == 0
    return shown.decode()


def test_a_terminal_gets_colours() -> None:
    shown = _on_terminal("stdout")
    assert "\x1b[32mOK" in shown
    assert "\x1b[1;31mERROR" in shown
    assert "one" not in shown


_WIDE = """
from ptkstore.cli.output import Table, show
from ptkstore.cli.session import Invocation
name = "mean-speed-by-zone-and-hour-of-the-week-of-yellow-taxis"
words = "the target of this one is not reachable at any profiled level within so many samples"
show(Invocation(), None, Table(("ptk", "stream", "status", "nothing", "reason"), [
    (name, "yellow-taxi-rides", "REJECTED", None, words), ("b", "yellow-taxi-rides", "OK", None, ""),
]))
"""


def test_names_are_whole_on_80_columns() -> None:
    shown = re.sub(r"\x1b\[[0-9;]*m", "", _on_terminal("stdout", _WIDE, COLUMNS="80"))
    lines = [line.rstrip() for line in shown.splitlines()]
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].split() == [
        "mean-speed-by-zone-and-hour-of-the-week-of-yellow-taxis",
        "yellow-taxi-rides",
    ]
    assert lines[2] == "    status: REJECTED"
    assert lines[3].startswith("    reason: the target of this one")
    assert "nothing" not in shown
    assert lines[-2:] == [f"b{' ' * 56}yellow-taxi-rides", "    status: OK"]


def test_a_terminal_gets_progress_and_a_pipe_does_not() -> None:
    shown = _on_terminal("stderr")
    assert "two" in shown
    assert "OK" not in shown
    piped = subprocess.run(
        [sys.executable, "-c", _SHOW], capture_output=True, text=True, check=True, timeout=60
    )
    assert piped.stderr == ""
    assert piped.stdout == "level  count\nOK         1\nERROR     22\n"


@pytest.mark.parametrize(
    ("window", "seconds", "text"),
    [
        (20_513, 86_400, "2026-03-01"),
        (0, 3600, "1970-01-01"),
        (492_313, 3600, "2026-03-01 01:00:00Z"),
    ],
)
def test_a_window_is_named_by_when_it_begins(window: int, seconds: int, text: str) -> None:
    assert window_begins(window, seconds) == text
