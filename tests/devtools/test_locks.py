"""Locks are up to date, and the check notices each way in which one can be stale."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devtools.environment import entry_of
from devtools.locks import LOCKS, PYTHONS, Lock, asked_for, entries, findings

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEV = LOCKS[0]
TEXT = (ROOT / DEV.path).read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.path)
def test_a_lock_is_up_to_date(lock: Lock) -> None:
    text = (ROOT / lock.path).read_text()
    assert findings(lock, text, PYPROJECT) == []
    assert entries(text)


def test_every_extra_is_in_the_lock_that_one_works_with() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    asked = set(asked_for(DEV, PYPROJECT))
    own = {text for texts in extras.values() for text in texts if not text.startswith("ptkstore[")}
    assert own | set(PYPROJECT["project"]["dependencies"]) <= asked
    assert "hatchling>=1.21" in asked


def test_it_is_made_for_the_pythons_that_the_project_names() -> None:
    assert PYPROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert re.search(r"python: \[(.*)\]", workflow)[1] == ", ".join(f'"{one}"' for one in PYTHONS)  # type: ignore[index]
    assert f"for version in {' '.join(PYTHONS)};" in (ROOT / "Makefile").read_text()


def _with_dependency(text: str) -> Callable[[dict[str, Any]], None]:
    return lambda pyproject: pyproject["project"]["dependencies"].append(text)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a new requirement": (
        _with_dependency("marble>=1"),
        "asks for marble>=1 and it has none (Python 3.11, 3.12, 3.13)",
    ),
    "a newer version": (_with_dependency("numpy>=1000"), "asks for numpy>=1000 and it has "),
    "for one Python": (
        _with_dependency("marble; python_version > '3.12'"),
        'asks for marble; python_version > "3.12" and it has none (Python 3.13)',
    ),
    "in an extra of an extra": (
        lambda pyproject: pyproject["project"]["optional-dependencies"]["png"].append("marble"),
        "asks for marble and it has none",
    ),
    "a requirement less": (
        lambda pyproject: pyproject["project"]["dependencies"].remove("mpmath>=1.3"),
        "it was made from other requirements",
    ),
    "another build backend": (
        lambda pyproject: pyproject["build-system"].update(requires=["marble"]),
        "asks for marble and it has none",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_pyproject_is_noticed(change: str) -> None:
    apply, told = CHANGES[change]
    pyproject = copy.deepcopy(PYPROJECT)
    apply(pyproject)
    found = findings(DEV, TEXT, pyproject)
    assert found[0] == "it was made from other requirements"
    assert any(told in one for one in found)


EDITS: dict[str, tuple[Callable[[str], str], str]] = {
    "no digest": (lambda text: text + "marble==1\n", "no archive with a digest: marble==1"),
    "an index": (
        lambda text: text + "--index-url https://mirror.example\n",
        "it names a place to fetch from",
    ),
    "a version out of range": (
        lambda text: text.replace("\nmypy==", "\nmypy==1.0.0+was."),
        "asks for mypy>=1.11 and it has 1.0.0+was.",
    ),
    "an entry less": (
        lambda text: text.replace(entry_of("mypy", text)[1], ""),
        "asks for mypy>=1.11 and it has none",
    ),
    "two versions": (
        lambda text: text + entry_of("mypy", text)[1].replace("==", "==9", 1),
        "mypy has several versions (Python 3.11, 3.12, 3.13)",
    ),
    "another first line": (
        lambda text: "# ?\n" + text.partition("\n")[2],
        "it was made from other requirements",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_lock_that_was_edited_is_noticed(edit: str) -> None:
    apply, told = EDITS[edit]
    found = findings(DEV, apply(TEXT), PYPROJECT)
    assert any(one.startswith(told) or told in one for one in found), found
