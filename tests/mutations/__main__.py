"""``python -m tests.mutations [--write FILE] [--only TEXT] [--jobs N]``: make every mistake, one at
a time.

It copies the tree to temporary directories, one for each job, checks that the tests that are named
pass there, then applies one mutation at a time and runs its test. It prints, and with ``--write``
keeps as markdown, which test caught which mutation. The exit status is 1 if a mutation survives or
hangs, if its test cannot be run, or if a test fails before anything is broken; 2 if the table does
not fit the code (its old text is not found exactly once: the code moved, update the table).
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from typing import TypeVar

from tests.mutations import MUTATIONS, Mutation
from tests.mutations.mutation import misfits
from tests.mutations.page import markdown
from tests.mutations.running import ROOT, Outcome, copy_tree, first_failure, try_one

Result = TypeVar("Result")


def main(arguments: list[str] | None = None) -> int:
    """Run the mutations asked for; see the module."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description="Break the code on purpose."
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the table as markdown")
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only mutations whose name or file contains this"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutations tried side by side"
    )
    options = parser.parse_args(arguments)
    chosen = [one for one in MUTATIONS if options.only in one.name or options.only in one.path]
    if not chosen:
        parser.error(f"no mutation has {options.only!r} in its name or file")
    wrong = misfits(ROOT, chosen)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="mutations-") as name,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        trees = _Trees(Path(name), options.jobs)
        failures = pool.map(trees.first_failure, _parts(chosen, options.jobs))
        failed = [one for one in failures if one is not None]
        if failed:
            print(f"the tests fail before anything is broken: {', '.join(failed)}", file=sys.stderr)
            return 1
        print(
            f"the tests pass before anything is broken ({time.monotonic() - begun:.0f} s)",
            flush=True,
        )
        outcomes = _tried(chosen, pool, trees)
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(markdown(outcomes), encoding="utf-8")
    missed = [one for one in outcomes if one.caught_by is None]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(outcomes) - len(missed)} of {len(outcomes)} mutations caught in {time.monotonic() - begun:.0f} s "
        f"({used.ru_utime + used.ru_stime:.0f} s of the processor)"
    )
    for one in missed:
        print(f"  not caught: {one.mutation.name}: {one}")
    return 1 if missed else 0


class _Trees:
    """Copies of the tree, each for one at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: Queue[Path] = Queue()
        for place in range(count):
            copy_tree(folder / str(place))
            self._free.put(folder / str(place))

    def lent(self, work: Callable[[Path], Result]) -> Result:
        """Work in a tree that nobody else has meanwhile."""
        tree = self._free.get()
        try:
            return work(tree)
        finally:
            self._free.put(tree)

    def first_failure(self, tests: list[str]) -> str | None:
        """The first of these tests that fails before anything is broken."""
        return self.lent(lambda tree: first_failure(tree, tests, None))


def _parts(chosen: Sequence[Mutation], count: int) -> list[list[str]]:
    """The tests that must pass before anything is broken, each once, in as many parts as run side
    by side.
    """
    tests = sorted({one.test for one in chosen})
    return [part for part in (tests[place::count] for place in range(count)) if part]


def _tried(chosen: Sequence[Mutation], pool: ThreadPoolExecutor, trees: _Trees) -> list[Outcome]:
    """What became of each, in the order of the table; told as it comes."""

    def work(mutation: Mutation) -> Outcome:
        return trees.lent(lambda tree: try_one(tree, mutation))

    found: dict[str, Outcome] = {}
    for done in as_completed([pool.submit(work, one) for one in chosen]):
        outcome = done.result()
        found[outcome.mutation.name] = outcome
        counted = f"{len(found):{len(str(len(chosen)))}} of {len(chosen)}"
        print(
            f"{counted}  {outcome.seconds:5.1f} s  {outcome.mutation.name:60} {outcome}", flush=True
        )
    return [found[one.name] for one in chosen]


if __name__ == "__main__":
    raise SystemExit(main())
