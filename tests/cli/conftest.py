"""A store that has been through its first three days, made by the commands that a newcomer
types.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.sage import Run, sage


@dataclass(frozen=True)
class Taxi:
    """The store and what each command printed under ``--json``.

    Tests that change something copy it.
    """

    path: Path
    applied: Run
    pushed: Run
    ran: Run


@pytest.fixture(scope="session")
def taxi(tmp_path_factory: pytest.TempPathFactory) -> Taxi:
    """init, make_rides, apply, push, run."""
    parts = tmp_path_factory.mktemp("cli")
    sage("init", "-t", "taxi", "taxi", cwd=parts)
    path = parts / "taxi"
    subprocess.run(
        [sys.executable, "make_rides.py"],
        cwd=path,
        check=True,
        timeout=120,
        stdout=subprocess.DEVNULL,
    )
    applied = sage("apply", "--json", cwd=path)
    pushed = sage(
        "stream",
        "push",
        "rides",
        "rides.parquet",
        "--producer",
        "depot",
        "--seq",
        "1",
        "--json",
        cwd=path,
    )
    ran = sage("run", "--until", "2026-03-04", "--json", cwd=path)
    return Taxi(path, applied, pushed, ran)
