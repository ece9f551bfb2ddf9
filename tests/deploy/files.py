"""The files of deploy/, read; and a copy of them that a test may break."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

__all__ = ["DEPLOY", "broken", "read", "read_all"]

DEPLOY = Path(__file__).parents[2] / "deploy"


def read(path: Path) -> Any:
    """The one YAML document of a file."""
    return yaml.safe_load(path.read_text())


def read_all(*paths: Path) -> list[dict[str, Any]]:
    """Every YAML document of some files."""
    return [one for path in paths for one in yaml.safe_load_all(path.read_text()) if one]


def broken(to: Path, file: str, old: str, new: str) -> Path:
    """A copy of deploy/ in which one text of one file is another one."""
    copy = to / "deploy"
    shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns("secrets", "secrets.*"))
    path = copy / file
    text = path.read_text()
    assert old in text, f"{file} has no {old!r}"
    path.write_text(text.replace(old, new))
    return copy
