"""``python -m examples.taxi``: see `examples.taxi.demo`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

_LEAST_ROWS, _MOST_ROWS = 20_000, 500_000


def main() -> int:
    """Read the options and run; 2 when they make no sense."""
    # Before NumPy is imported: the matrices are small, and more threads would only wait for each
    # other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rich.console import Console

    from examples.taxi.demo import Options, run
    from ptklib.errors import SageError

    parser = argparse.ArgumentParser(
        prog="python -m examples.taxi",
        description="A taxi company shares what it learned, never its rides.",
    )
    usual = Options()
    parser.add_argument(
        "--rows", type=int, default=usual.rows, help="rides in each window (default %(default)s)"
    )
    parser.add_argument(
        "--windows", type=int, default=usual.windows, help="windows of a week (default %(default)s)"
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=usual.report,
        metavar="DIR",
        help="where the report goes (default %(default)s)",
    )
    parser.add_argument(
        "--store",
        type=Path,
        metavar="PATH",
        help="keep the store here (default: a temporary folder)",
    )
    given = parser.parse_args()
    if not _LEAST_ROWS <= given.rows <= _MOST_ROWS or not 1 <= given.windows <= 52:
        parser.error(f"--rows must be {_LEAST_ROWS} to {_MOST_ROWS}, --windows 1 to 52")
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    try:
        return run(
            Options(rows=given.rows, windows=given.windows, report=given.report, store=given.store),
            console,
        )
    except SageError as refusal:
        console.print(f"{refusal.message} [{refusal.reason}]", markup=False)
        return 2


if __name__ == "__main__":
    sys.exit(main())
