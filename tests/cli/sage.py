"""Run ``sage``: as a process of its own, as people do, or inside this one where a table of cases
would take minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ptkstore.cli import main

__all__ = ["BIN", "SAGE", "Run", "call", "environment", "sage"]

BIN = Path(sys.executable).parent
SAGE = str(BIN / "sage")


@dataclass(frozen=True)
class Run:
    """What one call gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The payload of a call that succeeded or was rejected: one document on stdout, nothing on
        stderr.
        """
        assert self.err == "", self.err
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error of a call with ``--json``: one object on stderr, nothing on stdout."""
        assert self.out == ""
        found: dict[str, Any] = json.loads(self.err)
        assert set(found) == {"reason", "message", "details"}
        return found


def environment(**more: str) -> Mapping[str, str]:
    """The environment of a newcomer: this interpreter's commands first, no settings of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAGE_")}
    return {**kept, "PATH": f"{BIN}{os.pathsep}{kept.get('PATH', '')}", "COLUMNS": "100", **more}


def sage(*arguments: str | Path, cwd: Path, code: int | None = 0, **variables: str) -> Run:
    """Call ``sage``; ``code`` is the exit code it must have, None for any."""
    done = subprocess.run(
        [SAGE, *map(str, arguments)],
        cwd=cwd,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert code is None or done.returncode == code, (
        f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return Run(done.returncode, done.stdout, done.stderr)


def call(*arguments: str | Path, cwd: Path, code: int | None = 0) -> Run:
    """The same without a new process: everything but the start of the interpreter is real."""
    out, err = StringIO(), StringIO()
    found: object = None
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(one) for one in arguments], prog_name="sage")
        except SystemExit as end:
            found = end.code
    assert isinstance(found, int)
    assert code is None or found == code, (
        f"{arguments}: {found}\n{out.getvalue()}\n{err.getvalue()}"
    )
    return Run(found, out.getvalue(), err.getvalue())
