"""``python -m devtools.layers [--svg FILE]``: print what breaks a rule, or draw the house."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from devtools.layers.findings import findings
from devtools.layers.imports import modules
from devtools.layers.picture import draw


def main() -> int:
    """1 when a rule is broken."""
    parser = argparse.ArgumentParser(prog="python -m devtools.layers", description=__doc__)
    parser.add_argument("--svg", type=Path, help="draw packages and imports into this file")
    asked = parser.parse_args()
    if asked.svg is not None:
        asked.svg.write_text(draw(), encoding="utf-8")
    lines = findings()
    for line in lines:
        print(line)
    print(f"layers: {len(lines)} findings in {len(modules())} modules")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
