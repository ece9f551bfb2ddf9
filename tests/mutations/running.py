"""Run tests in a copy of the tree that has one mistake in it.

A mutant runs in a fresh interpreter, for what was imported before would hide it. Compiled files are
made beforehand, and each is held against a hash of its source whenever it is loaded: by its time
and size alone, one from before the mistake could pass for the one after it.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.mutation import Mutation

__all__ = ["ROOT", "Outcome", "copy_tree", "first_failure", "try_one"]

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "ptklib",
    "profiler",
    "allocator",
    "ptkstore",
    "benchmarks",
    "devtools",
    "examples",
    "tests",
    "docs",
    "pyproject.toml",
)
# A mutant may loop for ever. That is not a catch: the machine could have been slow.
TIMEOUT_SECONDS = 1800
_TESTS_FAILED = 1


@dataclass(frozen=True)
class Outcome:
    """What became of a mutation: the test that failed first, or, where none did, what happened
    instead.
    """

    mutation: Mutation
    caught_by: str | None
    instead: str
    seconds: float

    def __str__(self) -> str:
        """In words."""
        return f"caught by {self.caught_by}" if self.caught_by else self.instead


def copy_tree(tree: Path) -> None:
    """What the tests need, compiled."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)
    compileall.compile_dir(
        tree, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
    )


def try_one(tree: Path, mutation: Mutation) -> Outcome:
    """Apply, test and undo one mutation."""
    begun = time.monotonic()
    path = tree / mutation.path
    original = path.read_text(encoding="utf-8")
    path.write_text(mutation.applied(original), encoding="utf-8")
    caught_by, instead = None, "SURVIVED"
    try:
        caught_by = first_failure(tree, [mutation.test])
    except subprocess.TimeoutExpired:
        instead = f"TIMED OUT after {TIMEOUT_SECONDS} s"
    except RuntimeError as error:
        instead = f"NOT RUN: {error}"
    finally:
        path.write_text(original, encoding="utf-8")
        # Examples that a test found against one mistake must not help it against the next.
        shutil.rmtree(tree / ".hypothesis", ignore_errors=True)
    return Outcome(mutation, caught_by, instead, time.monotonic() - begun)


def first_failure(
    tree: Path, tests: list[str], timeout_seconds: float | None = TIMEOUT_SECONDS
) -> str | None:
    """The first of ``tests`` that fails in ``tree``, or None if all pass.

    RuntimeError where they could not be run: a file that cannot be imported is no test that noticed
    something.
    """
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    # Plugins that happen to be installed take longer to load than most of these tests to run.
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(tree),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        command,
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::[^\s\[]+)", done.stdout, re.MULTILINE)
    if done.returncode != _TESTS_FAILED or failed is None:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise RuntimeError(f"pytest ended with status {done.returncode}: {''.join(last)}")
    return failed[1].removeprefix("tests/")
