"""What goes into the image is fixed by version and digest; tests/devtools/test_locks.py holds that
it is what the project asks for.
"""

from __future__ import annotations

import re
from pathlib import Path

from devtools.locks import IMAGE_PYTHON

ROOT = Path(__file__).parents[2]


def test_the_image_takes_nothing_but_what_is_locked() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", "")
    installs = re.findall(r"pip install [^&\n]*", text)
    assert len(installs) == 3
    for one in installs:
        assert "--require-hashes" in one or "--no-deps /wheels/" in one, one
    assert "--no-build-isolation" in text, "a build that is isolated fetches what it likes"
    assert set(re.findall(r"FROM python:([0-9.]+)", text)) == {IMAGE_PYTHON}, (
        "resolved for another Python"
    )
