"""diffprivlib lives in ``.venv-diffprivlib/`` beside the project's own environment: it cannot
import a recent scikit-learn.

The environment is made on first use, with ``venv`` and ``pip``, and kept. Deleting the folder makes
it anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.bars import Say

__all__ = ["NotReady", "python"]

FOLDER = Path(__file__).parents[2] / ".venv-diffprivlib"
REQUIREMENTS = ("diffprivlib==0.6.6", "scikit-learn>=1.5,<1.7")


class NotReady(Exception):
    """The environment could not be made; the text says why and what to do."""


def python(say: Say) -> Path:
    """The interpreter of the environment, which is made if it is not there or was made for other
    requirements.
    """
    stamp = FOLDER / ".ready"
    found = FOLDER / "bin" / "python"
    wanted = "\n".join(REQUIREMENTS)
    if stamp.exists() and stamp.read_text() == wanted and found.exists():
        return found
    say(
        f"making {FOLDER.name}/ with {', '.join(REQUIREMENTS)} (about a minute, only the first "
        "time)"
    )
    shutil.rmtree(FOLDER, ignore_errors=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    for command in (
        [sys.executable, "-m", "venv", str(FOLDER)],
        [str(found), "-m", "pip", "install", *quiet, *REQUIREMENTS],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise NotReady(f"{FOLDER.name}/ could not be made, pip needs a package index: {last}")
    stamp.write_text(wanted)
    return found
