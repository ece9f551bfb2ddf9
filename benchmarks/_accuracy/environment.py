"""What we compare with lives in environments beside the project's own: diffprivlib cannot import a
recent scikit-learn, and nobody needs interpret to use Sage.

An environment is made on first use, with ``venv`` and ``pip``, and kept. Deleting the folder makes
it anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Say

__all__ = ["DIFFPRIVLIB", "INTERPRET", "Environment", "NotReady", "python"]


@dataclass(frozen=True)
class Environment:
    """A folder beside the project's own environment, and what is installed there."""

    name: str
    requirements: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where it is."""
        return Path(__file__).parents[2] / self.name


DIFFPRIVLIB = Environment(".venv-diffprivlib", ("diffprivlib==0.6.6", "scikit-learn>=1.5,<1.7"))
INTERPRET = Environment(".venv-interpret", ("interpret==0.7.8",))


class NotReady(Exception):
    """The environment could not be made; the text says why and what to do."""


def python(say: Say, wanted: Environment = DIFFPRIVLIB) -> Path:
    """The interpreter of the environment, which is made if it is not there or was made for other
    requirements.
    """
    folder, stamp = wanted.folder, wanted.folder / ".ready"
    interpreter = folder / "bin" / "python"
    listed = "\n".join(wanted.requirements)
    if stamp.exists() and stamp.read_text() == listed and interpreter.exists():
        return interpreter
    say(
        f"making {folder.name}/ with {', '.join(wanted.requirements)} (about a minute, only the "
        "first time)"
    )
    shutil.rmtree(folder, ignore_errors=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(interpreter), "-m", "pip", "install", *quiet, *wanted.requirements],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise NotReady(f"{folder.name}/ could not be made, pip needs a package index: {last}")
    stamp.write_text(listed)
    return interpreter
