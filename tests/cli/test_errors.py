"""Every way to get it wrong: the exit code, one line with the reason, one JSON object; no
traceback, nothing left behind.
"""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from ptklib.errors import BudgetExceeded, InvalidInput, JournalUnavailable, SageError
from ptkstore.cli import main
from ptkstore.cli.groups import exit_code
from tests.cli.conftest import Taxi
from tests.cli.sage import call, sage

# Without any store.
NOWHERE = [
    (["frob"], 2, "COMMAND_USAGE"),
    (["ptk", "lst"], 2, "COMMAND_USAGE"),
    (["ptk", "list", "--nope"], 2, "COMMAND_USAGE"),
    (["ptk", "describe"], 2, "COMMAND_USAGE"),
    (["ptk", "retarget", "a", "much"], 2, "COMMAND_USAGE"),
    (["stream", "push", "rides", "x.csv", "--seq", "-1"], 2, "COMMAND_USAGE"),
    (["featurize", "x.csv", "-o", "y.csv"], 2, "COMMAND_USAGE"),
    (["init", "-t", "nope"], 2, "TEMPLATE_UNKNOWN"),
    (["apply"], 2, "PROJECT_MISSING"),
    (["apply", "-f", "missing.yaml"], 2, "PROJECT_MISSING"),
    (["stream", "create", "missing.yaml"], 2, "FILE_UNREADABLE"),
    (["run", "--until", "yesterday"], 2, "TIME_INVALID"),
    *(
        (arguments, 2, "STORE_MISSING")
        for arguments in (
            ["plan"],
            ["plan", "show"],
            ["run"],
            ["stream", "list"],
            ["stream", "push", "rides", "rides.csv"],
            ["ptk", "list"],
            ["ptk", "describe", "a"],
            ["ptk", "versions", "a"],
            ["ptk", "retire", "a"],
            ["ptk", "retarget", "a", "0.1"],
            ["budget", "show", "rides"],
            ["budget", "history", "rides"],
            ["events", "tail"],
            ["doctor"],
            ["featurize", "x.csv", "--ptk", "a", "-o", "y.csv"],
        )
    ),
]

REGISTER = [
    "ptk",
    "register",
    "a",
    "--stream",
    "rides",
    "--kind",
    "statistics",
    "--target",
    "0.1",
    "--config",
]

# On a store that is well.
STORE = [
    (["ptk", "describe", "nope"], "PTK_UNKNOWN"),
    (["ptk", "versions", "nope"], "PTK_UNKNOWN"),
    (["ptk", "retire", "nope"], "PTK_UNKNOWN"),
    (["ptk", "retarget", "nope", "0.1"], "PTK_UNKNOWN"),
    (["budget", "show", "nope"], "STREAM_UNKNOWN"),
    (["budget", "history", "nope"], "STREAM_UNKNOWN"),
    (["plan", "--stream", "nope"], "STREAM_UNKNOWN"),
    (["plan", "show", "--stream", "nope"], "STREAM_UNKNOWN"),
    (["run", "--stream", "nope"], "STREAM_UNKNOWN"),
    (["ptk", "list", "--stream", "nope"], "STREAM_UNKNOWN"),
    (["featurize", "trips.csv", "--ptk", "hour-speed@7", "-o", "out.csv"], "REFERENCE_INVALID"),
    (
        [
            "featurize",
            "trips.csv",
            "--ptk",
            "hour-speed",
            "--ptk",
            "hour-speed@v1",
            "-o",
            "out.csv",
        ],
        "COLUMN_EXISTS",
    ),
    (["stream", "push", "nope", "rides.parquet"], "STREAM_UNKNOWN"),
    (["stream", "push", "rides", "missing.parquet"], "FILE_UNREADABLE"),
    (["stream", "push", "rides", "rides.xlsx"], "FILE_KIND_UNKNOWN"),
    (["stream", "push", "rides", "trips.csv"], "COLUMN_MISSING"),
    (["featurize", "missing.csv", "--ptk", "hour-speed", "-o", "out.csv"], "FILE_UNREADABLE"),
    (["featurize", "trips.csv", "--ptk", "nope", "-o", "out.csv"], "PTK_UNKNOWN"),
    (["featurize", "trips.csv", "--ptk", "hour-speed@v99", "-o", "out.csv"], "STATE_UNKNOWN"),
    (["featurize", "trips.csv", "--ptk", "hour-speed", "-o", "nowhere/out.csv"], "FILE_UNWRITABLE"),
    (["featurize", "trips.csv", "--ptk", "hour-speed", "-o", "out.txt"], "FILE_KIND_UNKNOWN"),
    ([*REGISTER, "{nope"], "PROJECT_UNREADABLE"),
    ([*REGISTER, "7"], "FILE_UNREADABLE"),
    ([*REGISTER, "@missing.json"], "FILE_UNREADABLE"),
    ([*REGISTER, "{}"], "CONFIG_FIELDS"),
    (["init", "."], "PROJECT_EXISTS"),
]


def _words(one: object) -> str:
    return " ".join(one) if isinstance(one, list) else ""


@pytest.mark.parametrize(("arguments", "code", "reason"), NOWHERE, ids=_words)
def test_without_a_store(tmp_path: Path, arguments: list[str], code: int, reason: str) -> None:
    people = call(*arguments, cwd=tmp_path, code=code)
    assert people.out == ""
    assert people.err.endswith(f" [{reason}]\n")
    assert people.err.count("\n") == 1
    assert call(*arguments, "--json", cwd=tmp_path, code=code).error["reason"] == reason
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "reason"), STORE, ids=_words)
def test_on_a_store(taxi: Taxi, arguments: list[str], reason: str) -> None:
    before = sorted(taxi.path.iterdir())
    people = call(*arguments, cwd=taxi.path, code=None)
    assert people.code in (1, 2)
    assert people.out == ""
    assert people.err.endswith(f" [{reason}]\n"), people.err
    assert people.err.count("\n") == 1
    programs = call(*arguments, "--json", cwd=taxi.path, code=people.code)
    assert programs.error["reason"] == reason
    assert sorted(taxi.path.iterdir()) == before


def test_a_process_of_its_own_says_the_same(taxi: Taxi) -> None:
    for arguments in (
        ["ptk", "lst"],
        ["ptk", "describe", "nope"],
        ["budget", "show", "nope", "--json"],
    ):
        assert sage(*arguments, cwd=taxi.path, code=None) == call(
            *arguments, cwd=taxi.path, code=None
        )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("A_B", "c"), 2),
        (click.UsageError("c"), 2),
        (BudgetExceeded("A_B", "c"), 1),
        (JournalUnavailable("A_B", "c"), 1),
        (SageError("A_B", "c"), 1),
        (OSError(28, "No space left on device"), 1),
        (RuntimeError("c"), 1),
        (click.Abort(), 130),
    ],
    ids=lambda one: type(one).__name__,
)
def test_exit_codes(error: Exception, code: int) -> None:
    assert exit_code(error) == code


def _raising(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str]:
    """What ``sage version`` prints and exits with when it fails so."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("platform.python_version", fail)
    with pytest.raises(SystemExit) as caught:
        main(["version"], prog_name="sage")
    return caught.value.code, capsys.readouterr().err


def test_an_error_that_is_not_ours_is_not_quoted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = _raising(RuntimeError("Jane Doe, 4711"), monkeypatch, capsys)
    assert code == 1
    assert "unexpected RuntimeError" in text
    assert "INTERNAL_ERROR" in text
    assert "Jane" not in text


def test_a_traceback_can_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SAGE_TRACEBACK", "1")
    assert "Traceback" in _raising(RuntimeError("x"), monkeypatch, capsys)[1]


def test_the_operating_system_is_quoted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(28, "No space left on device", "meta.db")
    assert _raising(error, monkeypatch, capsys) == (
        1,
        "No space left on device: meta.db [SYSTEM_ERROR]\n",
    )


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ModuleNotFoundError("No module named 'structlog'", name="structlog")
    code, text = _raising(error, monkeypatch, capsys)
    assert (code, text) == (
        1,
        "the package structlog is not installed: pip install 'ptkstore[server]' [PACKAGE_MISSING]\n",
    )


def test_what_is_not_a_store_is_told_and_kept(tmp_path: Path) -> None:
    (tmp_path / "meta.db").write_text("this is my diary, not a database" * 100)
    run = sage("ptk", "list", cwd=tmp_path, code=None)
    assert run.code == 1
    assert run.err.count("\n") == 1
    assert "INTERNAL_ERROR" not in run.err
    assert (tmp_path / "meta.db").read_text().startswith("this is my diary")
