"""``sage audit --all`` in this process, of one subject alone: everything but the choice is the
command's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptklib.auditing.subject import Subject
from ptkstore.engine.safekeeping import auditing
from tests.cli.sage import call

__all__ = ["commanded"]


def commanded(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    subject: Subject,
    *options: str,
    code: int | None = None,
) -> Any:
    """What the report says of it; ``code`` is what the command must exit with, None for any."""
    monkeypatch.setattr(auditing, "shipped_subjects", lambda: [subject])
    report = call("audit", "--all", "--json", *options, cwd=folder, code=code).json
    (finding,) = report["findings"]
    assert report["passed"] == (finding["verdict"] in ("HOLDS", "WEAK"))
    return finding
