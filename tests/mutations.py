"""Break the code that keeps the promise on purpose, one line at a time, and see that the tests notice.

``python -m tests.mutations [--write FILE] [--only NAME] [--jobs N]`` copies the tree to temporary directories, one for each
job, checks that the tests pass there, applies one mutation of `MUTATIONS` at a time and runs its tests until the first
failure. It prints, and with ``--write`` keeps as markdown, which test caught which mutation. The exit status is 1 if a mutation
survives or hangs, if its old text is not found exactly once (the code moved: update the table), or if the tests fail before
anything is broken.

Every mutation is a mistake somebody could make and that would leak or under-charge: half a sensitivity, epsilon for
1/epsilon, a rounding dropped or turned around, an exact path skipped, a charge that comes after the data, a check of a grant
or a role that is gone. They are in `mutations` (privacy), `mutations_of_ptks`, `mutations_of_ledger` and
`mutations_of_service`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import TypeVar

from tests.mutations_of_ledger import OF_LEDGER
from tests.mutations_of_ptks import OF_PTKS, Mutation
from tests.mutations_of_service import OF_SERVICE

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("ptklib", "profiler", "allocator", "ptkstore", "benchmarks", "examples", "tests", "docs", "pyproject.toml")
# A mutant may loop for ever. That is not a catch: the machine could have been slow.
TIMEOUT_SECONDS = 1200
SURVIVED = "SURVIVED"
Outcome = TypeVar("Outcome")


def _in(path: str, tests: tuple[str, ...], *rows: tuple[str, str, str]) -> list[Mutation]:
    paths = tuple(f"tests/privacy/test_{name}.py" for name in tests)
    return [Mutation(name, f"ptklib/privacy/{path}", old, new, paths) for name, old, new in rows]


LAPLACE_DRAW = "noise = discrete_laplace(data.shape, self.scale, source=source)"
GAUSSIAN_DRAW = "noise = rounded_gaussian(data.shape, self.sigma, source=source)"
COUNT_DRAW = "noise = discrete_laplace(1, self.scale, source=source)"

MUTATIONS: list[Mutation] = [
    *_in(
        "mechanisms/release.py",
        ("mechanisms_release",),
        ("laplace: half the sensitivity", "noise_scale(reach / level)", "noise_scale(reach / level / 2)"),
        ("laplace: epsilon for 1/epsilon", "noise_scale(reach / level)", "noise_scale(reach * level)"),
        ("laplace: half the noise at the full price", LAPLACE_DRAW, LAPLACE_DRAW.replace(".scale", ".scale / 2")),
        ("laplace: no noise", LAPLACE_DRAW, LAPLACE_DRAW + " * 0"),
        ("laplace: one draw for all entries", LAPLACE_DRAW, LAPLACE_DRAW.replace("data.shape", "(1,) * data.ndim")),
        (
            "laplace: cost of half the sensitivity",
            "scale=scale, sensitivity=reach)",
            "scale=2 * scale, sensitivity=reach)",
        ),
        ("gaussian: half the sensitivity", "sigma=spread, sensitivity=reach)", "sigma=spread, sensitivity=reach / 2)"),
        ("gaussian: sigma for 1/sigma", GAUSSIAN_DRAW, GAUSSIAN_DRAW.replace("self.sigma", "1 / self.sigma")),
        ("gaussian: half the noise at the full price", GAUSSIAN_DRAW, GAUSSIAN_DRAW.replace(".sigma", ".sigma / 2")),
        ("gaussian: no noise", GAUSSIAN_DRAW, GAUSSIAN_DRAW + " * 0"),
        ("count: half the sensitivity", "noise_scale(1 / level)", "noise_scale(1 / level / 2)"),
        ("count: epsilon for 1/epsilon", "noise_scale(1 / level)", "noise_scale(level)"),
        ("count: half the noise at the full price", COUNT_DRAW, COUNT_DRAW.replace(".scale", ".scale / 2")),
    ),
    *_in(
        "mechanisms/inputs.py",
        ("mechanisms_release", "mechanisms_selection"),
        ("data: a float array is truncated", 'values.dtype.kind not in "iu"', 'values.dtype.kind not in "iuf"'),
        ("data: a value is not clamped", "return max(-LIMIT, min(LIMIT, int(value)))", "return int(value)"),
        ("data: an array is not clamped", "np.iinfo(values.dtype).max > LIMIT", "False"),
        ("sensitivity: zero is taken", "if value <= 0:", "if value < 0:"),
        (
            "sensitivity: a float is truncated",
            'not isinstance(value, int | np.integer):\n        raise InvalidInput(\n            "SENS',
            'not isinstance(value, int | float):\n        raise InvalidInput(\n            "SENS',
        ),
        ("sums overflow", "np.clip(noise, -2 * LIMIT, 2 * LIMIT)", "noise"),
    ),
    *_in(
        "mechanisms/selection.py",
        ("mechanisms_selection",),
        ("exponential: half the sensitivity", "level / (2 * reach)", "level / reach"),
        ("exponential: epsilon for 1/epsilon", "level / (2 * reach)", "1 / (2 * reach * level)"),
        ("noisy max: half the sensitivity", "noise_scale(2 * reach / level)", "noise_scale(reach / level)"),
        ("noisy max: epsilon for 1/epsilon", "noise_scale(2 * reach / level)", "noise_scale(2 * reach * level)"),
        ("noisy max: no noise", "np.argmax(noise - (", "np.argmax(0 * noise - ("),
        (
            "noisy max: last of equals",
            "int(np.argmax(noise - (data.max() - data)))",
            "data.size - 1 - int(np.argmax((noise - (data.max() - data))[::-1]))",
        ),
    ),
    *_in(
        "mechanisms/gibbs.py",
        ("mechanisms_selection",),
        ("weighted draw: undecided path skipped", "np.flatnonzero(~decided)", "np.flatnonzero(~decided)[:0]"),
        ("weighted draw: float64 always trusted", "slack = 4 * _ROUNDOFF", "slack = 0 * _ROUNDOFF"),
        (
            "weighted draw: no more bits for U",
            "u = (u << _STEP_BITS) | int(bits.words(1)[0])",
            "u = (u << _STEP_BITS) | 1",
        ),
        ("weighted draw: weights turned round", "gaps = scores.max() - scores", "gaps = scores - scores.min()"),
    ),
    *_in(
        "mechanisms/large_margin.py",
        ("mechanisms_large_margin",),
        (
            "large margin: half the sensitivity in step 1",
            "noise_scale(reach / third,",
            "noise_scale(reach / third / 2,",
        ),
        (
            "large margin: half the sensitivity in step 2",
            "noise_scale(2 * reach / sixth,",
            "noise_scale(reach / sixth,",
        ),
        ("large margin: half the sensitivity in step 3", "third / (2 * reach)", "third / reach"),
        ("large margin: epsilon for 1/epsilon", "noise_scale(reach / sixth,", "noise_scale(reach * sixth,"),
        ("large margin: thresholds rounded down", "np.ceil(values + ", "np.floor(values + "),
        (
            "large margin: no room for moving ranks",
            "margin = 2 * self.sensitivity + ",
            "margin = 0 * self.sensitivity + ",
        ),
        ("large margin: the margin forgets r", "np.log(r / part)", "np.log(np.ones_like(r) / part)"),
        ("large margin: no room for threshold noise", "return margin + top + bar + ", "return margin + top + "),
        ("large margin: every query has the whole delta", "part / (r * (r + 1))", "part / np.ones_like(r)"),
        ("large margin: one candidate too few", "int(stops[0]) + 1 if", "max(1, int(stops[0])) if"),
        (
            "large margin: no noise on the top score",
            "ranked[0] - ranked[1:] + top_noise",
            "ranked[0] - ranked[1:] + 0 * top_noise",
        ),
        (
            "large margin: no noise on the threshold",
            "self.thresholds(ranked.size) + bar_noise",
            "self.thresholds(ranked.size)",
        ),
    ),
    *_in(
        "mechanisms/above_threshold.py",
        ("mechanisms_above_threshold",),
        ("above threshold: half the sensitivity", "noise_scale(2 * reach / half,", "noise_scale(reach / half,"),
        ("above threshold: epsilon for 1/epsilon", "noise_scale(reach / half,", "noise_scale(reach * half,"),
        ("above threshold: epsilon spent twice", "half, bar = level / 2,", "half, bar = level,"),
        ("above threshold: no noise on the threshold", "int(discrete_laplace(1, ", "0 * int(discrete_laplace(1, "),
        ("above threshold: the same noise again", "self.__noise.pop()", "self.__noise[-1]"),
        ("above threshold: goes on after True", "if self.__spent:", "if False:"),
    ),
    *_in(
        "sampler.py",
        ("sampler", "mutation_gaps"),
        (
            "sampler: rounds instead of floor",
            "np.floor(y, out=near)\n    np.copyto",
            "np.rint(y, out=near)\n    np.copyto",
        ),
        ("sampler: Gaussian without its 1/2", "Probit, 2.0**-64, 0.5, size", "Probit, 2.0**-64, 0.0, size"),
        ("sampler: Laplace without its offset", "offset = -size * log1p(expm1(-1 / size) / 2)", "offset = 0.0"),
        (
            "sampler: undecided path skipped",
            "np.flatnonzero((lowest != highest) | open_ended)",
            "np.flatnonzero(open_ended)",
        ),
        ("sampler: the first cell is not open-ended", "open_ended = u == 0", "open_ended = u < 0"),
    ),
    *_in(
        "sampler_slow.py",
        ("sampler", "mutation_gaps"),
        ("sampler: exact Gaussian without its 1/2", "Fraction(2 * k - 1, 2) / sigma", "Fraction(k) / sigma"),
        ("sampler: no more bits for U", "u = (u << _STEP_BITS) | more()", "u = (u << _STEP_BITS) | 1"),
    ),
    *_in(
        "fixed_point.py",
        ("fixed_point", "mutation_gaps"),
        (
            "fixed point: rounding missing from the sensitivity",
            "max(abs(self.lower_units), abs(self.upper_units))",
            "int(max(abs(self.lower), abs(self.upper)) / self.resolution)",
        ),
        ("fixed point: truncates", "np.rint(reals, out=reals)", "np.trunc(reals, out=reals)"),
        (
            "fixed point: not clipped after rounding",
            "return np.clip(reals.astype(np.int64), self.lower_units, self.upper_units)",
            "return reals.astype(np.int64)",
        ),
    ),
    *_in(
        "amounts.py",
        ("amounts", "mutation_gaps"),
        (
            "amounts: charges rounded down",
            "return -((-value.numerator * unit) // value.denominator)",
            "return value.numerator * unit // value.denominator",
        ),
        (
            "amounts: capacities rounded up",
            "    return value.numerator * unit // value.denominator\n\n\ndef show(",
            "    return ceil_units(value, unit)\n\n\ndef show(",
        ),
    ),
    *_in(
        "filters/basic.py",
        ("mutation_gaps",),
        (
            "basic filter: capacity rounded up",
            "capacity = (floor_units(epsilon, NANO)",
            "capacity = (ceil_units(epsilon, NANO)",
        ),
        (
            "basic filter: demand rounded down",
            "demand = (ceil_units(known[0], NANO)",
            "demand = (floor_units(known[0], NANO)",
        ),
    ),
    *_in(
        "filters/gaussian.py",
        ("mutation_gaps",),
        ("gaussian filter: capacity rounded up", "    return low\n", "    return high\n"),
    ),
    *_in(
        "filters/renyi.py",
        ("mutation_gaps",),
        (
            "renyi filter: capacity rounded up",
            "math.floor(curves.capacity_at(order, epsilon, delta * share) * NANO)",
            "math.ceil(curves.capacity_at(order, epsilon, delta * share) * NANO)",
        ),
        (
            "renyi filter: every order has the whole delta",
            "curves.capacity_at(order, epsilon, delta * share)",
            "curves.capacity_at(order, epsilon, delta)",
        ),
    ),
    *_in(
        "filters/strong.py",
        ("mutation_gaps",),
        (
            "strong filter: capacity rounded up",
            "math.floor((curves.precise(epsilon) - _root(s, epsilon, delta)) * NANO)",
            "math.ceil((curves.precise(epsilon) - _root(s, epsilon, delta)) * NANO)",
        ),
        ("strong filter: a forgotten logarithm", " * (1 + curves.log(weight * square + 1) / 2)", ""),
    ),
    *_in(
        "curves.py",
        ("mutation_gaps",),
        (
            "renyi filter: a forgotten logarithm",
            "(_PRECISE.mp.log(precise(delta)) + _PRECISE.mp.log(a)) / (a - 1)",
            "_PRECISE.mp.log(a) / (a - 1)",
        ),
    ),
    *_in(
        "costs/laplace.py",
        ("mutation_gaps",),
        (
            "discrete laplace cost: the continuous curve",
            "curves.laplace_renyi(orders, self.basic()[0], 1 / self.scale)",
            "curves.laplace_renyi(orders, self.basic()[0])",
        ),
    ),
    *_in(
        "costs/pure.py",
        ("mutation_gaps",),
        ("exponential cost: half the range", "** 2 / 8", "** 2 / 32"),
    ),
    *OF_PTKS,
    *OF_LEDGER,
    *OF_SERVICE,
]


def main(arguments: list[str] | None = None) -> int:
    """Run the mutations asked for; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description="Break the code on purpose.")
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the table as markdown")
    parser.add_argument("--only", metavar="NAME", default="", help="only mutations whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutations tried side by side")
    options = parser.parse_args(arguments)
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.name]
    if not chosen:
        parser.error(f"no mutation has {options.only!r} in its name")
    with tempfile.TemporaryDirectory(prefix="mutations-") as name, ThreadPoolExecutor(options.jobs) as pool:
        trees: Queue[Path] = Queue()
        for job in range(options.jobs):
            tree = Path(name) / str(job)
            copy_tree(tree)
            trees.put(tree)
        for failure in pool.map(lambda asked: _lent(trees, lambda tree: first_failure(tree, *asked)), baseline(chosen)):
            if failure is not None:
                print(f"the tests fail before anything is broken: {failure}", file=sys.stderr)
                return 1
        rows = []
        for mutation, outcome in pool.map(lambda one: (one, _lent(trees, lambda tree: try_one(tree, one))), chosen):
            rows.append((mutation, outcome))
            print(f"{mutation.name:55} {outcome}", flush=True)
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(markdown(rows), encoding="utf-8")
    bad = [mutation.name for mutation, outcome in rows if not outcome.startswith("caught by ")]
    print(
        f"{len(rows) - len(bad)} of {len(rows)} mutations caught" + "".join(f"\n  not caught: {name}" for name in bad)
    )
    return 1 if bad else 0


def baseline(chosen: list[Mutation]) -> list[tuple[tuple[str, ...], str]]:
    """What must pass before anything is broken: each test file once, or each selection of tests where only some are run."""
    whole = {test for one in chosen if not one.only for test in one.tests}
    parts = {(test, one.only) for one in chosen if one.only for test in one.tests if test not in whole}
    return [*(((test,), "") for test in sorted(whole)), *(((test,), only) for test, only in sorted(parts))]


def _lent(trees: Queue[Path], work: Callable[[Path], Outcome]) -> Outcome:
    """Work in a tree that nobody else has meanwhile."""
    tree = trees.get()
    try:
        return work(tree)
    finally:
        trees.put(tree)


def copy_tree(tree: Path) -> None:
    """What the tests need, without compiled files: a stale one would hide a mutation."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)


def try_one(tree: Path, mutation: Mutation) -> str:
    """Apply, test and undo one mutation; what happened, in words."""
    path = tree / mutation.path
    original = path.read_text(encoding="utf-8")
    found = original.count(mutation.old)
    if found != 1:
        return f"NOT APPLIED: the old text is found {found} times in {mutation.path}"
    path.write_text(original.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        failure = first_failure(tree, mutation.tests, mutation.only)
    except subprocess.TimeoutExpired:
        return f"TIMED OUT after {TIMEOUT_SECONDS} s"
    finally:
        path.write_text(original, encoding="utf-8")
    return f"caught by {failure}" if failure else SURVIVED


def first_failure(tree: Path, tests: tuple[str, ...], only: str = "") -> str | None:
    """The first test that fails in ``tree``, or None if all pass; ``only`` selects tests as ``pytest -k`` does."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *tests]
    command += ["-k", only] if only else []
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[|\s|$)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"pytest ended with status {done.returncode} and named no test:\n{done.stdout}{done.stderr}")
    return failed[1].removeprefix("tests/")


def markdown(rows: list[tuple[Mutation, str]]) -> str:
    """The page ``docs/internals/mutations.md``."""
    lines = [
        "# Mutations",
        "",
        "Mistakes made on purpose in the code that keeps the promise, one at a time, and the test that noticed each first.",
        "Written by `python -m tests.mutations --write docs/internals/mutations.md`; do not edit.",
        "",
        f"{len(rows)} mutations in {len({one.path for one, _ in rows})} files of `ptklib`, `profiler` and `ptkstore`.",
        "",
        "| mutation | file | outcome |",
        "|---|---|---|",
    ]
    lines += [f"| {mutation.name} | `{mutation.path}` | {_cell(outcome)} |" for mutation, outcome in rows]
    return "\n".join(lines) + "\n"


def _cell(outcome: str) -> str:
    words = outcome.removeprefix("caught by ")
    return f"caught by `{words}`" if "::" in words else outcome


if __name__ == "__main__":
    raise SystemExit(main())
