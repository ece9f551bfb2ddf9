"""``python -m examples.experiments NAME --data PATH [--fast] [--out DIR]``: run one experiment, or
all of them.

Writes ``NAME.svg``, ``NAME.md`` and ``NAME.json`` into the folder and prints the table. ``--fast``
is a rehearsal on little data and few seeds: it shows that everything runs, not what PTKs are worth.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

EXPERIMENTS = {
    "taxi-zones": ("taxi", "zones"),
    "taxi-places": ("taxi", "places"),
    "clicks": ("labels", "clicks"),
    "adult": ("labels", "adult"),
    "douban-music": ("ratings", "music"),
    "douban-book": ("ratings", "books"),
    "bikes-from-taxis": ("bikes", "from_taxis"),
    "bikes-retained": ("bikes", "retained"),
}


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.experiments", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "name", nargs="?", choices=sorted(EXPERIMENTS), help="one experiment; all when left out"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SAGE_DATA"),
        metavar="PATH",
        help="the folder of the data sets (default: SAGE_DATA)",
    )
    parser.add_argument("--fast", action="store_true", help="a rehearsal: little data, few seeds")
    parser.add_argument("--out", type=Path, default=Path("artifacts/experiments"), metavar="DIR")
    given = parser.parse_args()
    if given.data is None or not given.data.is_dir():
        parser.error("--data must name the folder of the data sets")
    for name in [given.name] if given.name else EXPERIMENTS:
        module, function = EXPERIMENTS[name]
        begin = time.perf_counter()
        run = getattr(importlib.import_module(f"examples.experiments.{module}"), function)
        outcome = run(
            given.data, given.fast, lambda text: print(f"  {text}", file=sys.stderr, flush=True)
        )
        outcome.write(given.out)
        print(
            f"\n{outcome.experiment.title} ({time.perf_counter() - begin:.0f} "
            f"s)\n\n{outcome.table()}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
