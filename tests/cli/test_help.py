"""Help is quick, complete and the same as the reference."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ptkstore.cli import main
from tests.cli.sage import environment, sage

ROOT = Path(__file__).parents[2]
HEAVY = {
    "alembic",
    "grpc",
    "jinja2",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "yaml",
}

_CALL = """
import sys
from ptkstore.cli import main
try:
    main({arguments!r}, prog_name="sage")
except SystemExit as end:
    assert end.code == 0, end.code
print("LOADED", sorted({heavy!r} & set(sys.modules)))
"""


def commands(
    group: click.Group = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group below one."""
    context = click.Context(group, info_name="sage")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = dict(commands())


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["ptk", "--help"], ["plan", "-h"], [], ["stream"], ["version"]],
    ids=str,
)
def test_help_loads_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _CALL.format(arguments=arguments, heavy=HEAVY)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.endswith("LOADED []\n")
    assert "sage" in run.stdout


def test_the_import_check_notices_what_is_heavy() -> None:
    call = "import pyarrow\n" + _CALL.format(arguments=["--help"], heavy=HEAVY)
    run = subprocess.run(
        [sys.executable, "-c", call], capture_output=True, text=True, check=True, timeout=60
    )
    assert "LOADED ['numpy', 'pyarrow']" in run.stdout or "LOADED ['pyarrow']" in run.stdout


def test_there_are_the_commands_that_were_promised() -> None:
    assert {" ".join(path) for path in ALL} == {
        "init", "apply", "plan", "plan show", "plan solve", "plan what-if", "run", "featurize", "audit",
    "doctor", "version",
        "stream", "stream infer", "stream create", "stream list", "stream check", "stream push",
        "ptk", "ptk kinds", "ptk list", "ptk describe", "ptk profile", "ptk versions",
        "ptk register", "ptk retarget", "ptk retire",
        "budget", "budget show", "budget history", "events", "events tail",
        "backup", "health", "restore",
        "serve", "token", "token create", "token list", "token revoke", "audit-log", "audit-log rotate", "audit-log verify",
        "research", "research profile", "schedule", "schedule solve",
        "ui",
    }  # fmt: skip


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_an_example_of_itself_and_the_shared_options(
    path: tuple[str, ...],
) -> None:
    text = ALL[path].get_help(click.Context(ALL[path], info_name="sage"))
    assert re.search(rf"Examples?:\n\s+sage {' '.join(path)}", text), text
    assert "--json" in text
    assert "--store" in text


@pytest.mark.parametrize("path", [(), *ALL], ids=" ".join)
def test_no_summary_is_cut_off(path: tuple[str, ...]) -> None:
    command = ALL[path] if path else main
    listed = command.get_help(click.Context(command, info_name="sage")).partition("Commands:")[2]
    assert "..." not in listed


def test_the_reference_has_every_command_and_every_option() -> None:
    text = (ROOT / "docs/reference/cli.md").read_text()
    lines = [one for one in text.splitlines() if one.startswith("| `sage ")]
    documented = {}
    for line in lines:
        usage = line.split("`")[1]
        words = tuple(re.match(r"sage ((?:[a-z-]+ ?)+)", usage)[1].split())  # type: ignore[index]
        path = next(words[:size] for size in (2, 1) if words[:size] in ALL)
        documented[path] = line
    leaves = {path for path, one in ALL.items() if not isinstance(one, click.Group)} | {
        ("plan",),
        ("events",),
    }
    assert set(documented) == leaves
    for path, line in documented.items():
        options = {
            name for one in ALL[path].params for name in one.opts if name.startswith("-")
        } - {
            "--json",
            "--store",
        }
        for option in options:
            assert re.search(rf"(^|[^\w-]){option}\b", line), f"{path}: {option}"
        assert not set(re.findall(r"--[a-z-]+", line.split("`")[1])) - options, line


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen(
        ["/bin/sh", "-c", "sage --help; echo code $? >&2"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() in ("code 1\n", "code 0\n")


def test_version(tmp_path: Path) -> None:
    assert set(sage("version", "--json", cwd=tmp_path).json) == {"sage", "python"}
    assert sage("version", cwd=tmp_path).out.startswith("sage 0.")
    assert list(tmp_path.iterdir()) == []
