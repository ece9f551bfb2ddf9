"""``python -m tests.again``: after a run of all tests, try the few that failed once more, alone.

Two sorts of tests fail now and then for nothing: audits of noise, each of which says how rarely it
may accuse a mechanism that is right, and tests that measure patience while the machine is busy with
the rest of the suite. Where no more than `MOST` failed they run again, one after the other with
nothing beside them. Those that pass now are named as unsteady, and the exit status is 0; one that
fails twice, or more than `MOST` that failed once, is a failure as before.

Reads what pytest keeps of the run before (``lastfailed``); exit status 1 if that is not there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

__all__ = ["MOST", "failed_before", "main"]

MOST = 5
_ROOT = Path(__file__).parents[1]
_KEPT = ".pytest_cache/v/cache/lastfailed"


def failed_before(root: Path = _ROOT) -> list[str]:
    """The tests that failed in the run before, by their ids; none where nothing was kept."""
    try:
        kept = json.loads((root / _KEPT).read_text())
    except (OSError, ValueError):
        return []
    return sorted(kept) if isinstance(kept, dict) else []


def main(root: Path = _ROOT) -> int:
    """Try again, and say what came of it; the exit status."""
    failed = failed_before(root)
    if not failed:
        print("again: no test is known to have failed: nothing to try", flush=True)
        return 1
    if len(failed) > MOST:
        print(f"again: {len(failed)} tests failed, more than {MOST}: not tried", flush=True)
        return 1
    print(f"again: {len(failed)} failed; once more, alone", flush=True)
    tried = subprocess.run([sys.executable, "-m", "pytest", *failed], cwd=root, check=False)
    if tried.returncode:
        print("again: FAILED twice", flush=True)
        return 1
    for test in failed:
        print(f"again: UNSTEADY, failed and then passed: {test}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
