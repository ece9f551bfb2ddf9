"""What others wrote and the wheel carries:

``python -m tests.console.vendoring`` fetches it again from npm.
"""

from __future__ import annotations

import json
from pathlib import Path

from devtools.servers.cache import tell
from tests.console.packages import ROOT, npm_package

__all__ = ["VENDOR", "published"]

VENDOR = ROOT / "ptkstore/console/static/vendor"


def published() -> dict[Path, bytes]:
    """Each file here, with its bytes in the package of npm."""
    found: dict[Path, bytes] = {}
    for name, told in json.loads((VENDOR / "versions.json").read_text()).items():
        package = npm_package(name, told["version"], tell)
        found |= {
            VENDOR / ours: (package / theirs).read_bytes() for ours, theirs in told["files"].items()
        }
    return found


def main() -> None:
    """Write them."""
    for path, data in published().items():
        path.write_bytes(data)
        tell(f"{path.relative_to(ROOT)}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
