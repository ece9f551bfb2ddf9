"""``python -m examples.profiles``: the three shapes of profiles, drawn from made-up data into
docs/guides/profiles.

Embeddings get better slowly and go on doing so, clusters jump and then settle, statistics converge.
Real losses of invented records: nothing here is private, and nothing needs to be.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from examples.ptks.profile import CASES
from profiler.research import research_profile
from ptkstore.drawing.research_svg import research_svg

__all__ = ["SHAPES", "draw"]

LEVELS = ("0.1", "0.3", "1")
SHAPES: dict[str, tuple[int, ...]] = {
    "embeddings": (3_000, 10_000, 30_000, 100_000, 200_000),
    "clusters": (30, 100, 300, 1_000, 3_000, 10_000),
    "statistics": (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000),
}


def draw(kind: str, folder: Path, *, repeats: int = 5) -> str:
    """Train, draw, and give the numbers as text."""
    case, samples = CASES[kind](), SHAPES[kind]
    table = case.rows(samples[-1] * 3 // 2 + 3, np.random.default_rng(1))
    delta = "1e-6" if case.ptk.tags.needs_delta else 0
    found = research_profile(
        case.ptk, table, samples=samples, levels=LEVELS, delta=delta, repeats=repeats
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kind}.svg").write_text(
        research_svg(found, title=f"{kind}: loss by samples (invented data)")
    )
    lines = [
        f"{kind}, epsilon {one.epsilon:g}, {one.samples:>7,} samples: {one.loss:.5f} +- "
        f"{one.spread:.5f}"
        for one in found
    ]
    return "\n".join(lines)


def main() -> int:
    """Draw all shapes."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.profiles", description="Draw the shapes of profiles."
    )
    parser.add_argument("--out", type=Path, default=Path("docs/guides/profiles"), metavar="DIR")
    given = parser.parse_args()
    for kind in SHAPES:
        print(draw(kind, given.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
