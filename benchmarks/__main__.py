"""Run benchmarks: ``python -m benchmarks`` for all, ``python -m benchmarks NAME [--json] [--data
PATH] [--sample]`` for one.

``--data`` (or SAGE_DATA) names a folder of real data sets for the benchmarks that can use one;
without it they use synthetic data alone. Exit status 1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import pkgutil
import sys
import time
from pathlib import Path

import benchmarks
from benchmarks.bars import Report

_FRAME = {"__main__", "bars"}


def names() -> list[str]:
    """All benchmarks: the modules beside this one that have a ``run``.

    Packages hold parts of benchmarks.
    """
    found = (
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg
    )
    return sorted(name for name in found if name not in _FRAME and not name.startswith("_"))


def main() -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Run Sage's benchmarks."
    )
    parser.add_argument("name", nargs="?", choices=names(), help="one benchmark; all when left out")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object on stdout, nothing else"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SAGE_DATA"),
        metavar="PATH",
        help="a folder of real data sets, for the benchmarks that can use one (default: SAGE_DATA)",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="fewer seeds, for the benchmarks that can do with them",
    )
    arguments = parser.parse_args()
    chosen = [arguments.name] if arguments.name else names()
    if arguments.data is not None and not arguments.data.is_dir():
        parser.error(f"--data must be a folder, got {arguments.data}")
    reports = {}
    for name in chosen:
        start = time.perf_counter()
        report = _run(name, arguments.data, sample=arguments.sample)
        report.figures["seconds"] = round(time.perf_counter() - start, 1)
        reports[name] = report
        if not arguments.json:
            _print_table(name, report)
    if arguments.json:
        bodies = {
            name: {"bars": [bar.as_json() for bar in r.bars], "figures": r.figures}
            for name, r in reports.items()
        }
        print(
            json.dumps(
                {"name": arguments.name, **bodies[arguments.name]} if arguments.name else bodies,
                indent=1,
            )
        )
    return 0 if all(bar.holds for report in reports.values() for bar in report.bars) else 1


def _run(name: str, data: Path | None, *, sample: bool = False) -> Report:
    """Run one benchmark; it gets the data folder and ``sample`` if it has parameters for them."""
    run = importlib.import_module(f"benchmarks.{name}").run
    wanted = inspect.signature(run).parameters
    offered: dict[str, object] = {"data": data, "sample": sample}
    more = {key: value for key, value in offered.items() if key in wanted}
    report: Report = run(lambda text: print(f"  {text}", file=sys.stderr, flush=True), **more)
    return report


def _print_table(name: str, report: Report) -> None:
    print(f"\n{name}  ({report.figures['seconds']} s)")
    for bar in report.bars:
        limit = f">= {bar.least:g}" if bar.least is not None else f"<= {bar.most:g}"
        print(
            f"  {'holds ' if bar.holds else 'BROKEN'}  {bar.value:12.5g}  {limit:>12}  {bar.what}"
        )
    for key, value in report.figures.items():
        if isinstance(value, list):
            print(f"  {key}:")
            for row in value:
                print(
                    "    " + "  ".join(f"{k}={v}" for k, v in row.items())
                    if isinstance(row, dict)
                    else f"    {row}"
                )
        elif key != "seconds":
            print(f"  {key}: {value}")


if __name__ == "__main__":
    sys.exit(main())
