"""What goes into the image is fixed by version and digest, and is what the project asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ("build.lock", "requirements.lock")
EXTRAS = ("server", "servers")
_ENTRY = re.compile(r"^([a-z0-9._-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def entries(name: str) -> dict[str, str]:
    text = (ROOT / "deploy" / name).read_text()
    found: dict[str, str] = {canonicalize_name(one[1]): one[2] for one in _ENTRY.finditer(text)}
    left = [line for line in _ENTRY.sub("", text).splitlines() if line.strip()]
    assert left == [], f"{name}: lines that are no archive with a digest"
    return found


def asked_for() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts, waiting = list(project["dependencies"]), list(EXTRAS)
    while waiting:
        for text in project["optional-dependencies"][waiting.pop()]:
            one = Requirement(text)
            waiting += one.extras if one.name == project["name"] else ()
            texts += [] if one.name == project["name"] else [text]
    image = {"python_version": "3.12", "python_full_version": "3.12.11", "sys_platform": "linux"}
    found = [Requirement(text) for text in texts]
    return [one for one in found if one.marker is None or one.marker.evaluate(image)]


def test_the_lock_satisfies_what_the_project_asks_for() -> None:
    locked = entries("requirements.lock")
    assert len(asked_for()) > 10
    for one in asked_for():
        version = locked.get(canonicalize_name(one.name))
        assert version is not None, f"{one} is not locked: make lock"
        assert one.specifier.contains(version, prereleases=True), f"{one}, and the lock has {version}: make lock"


def test_the_image_takes_nothing_but_what_is_locked() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", "")
    installs = re.findall(r"pip install [^&\n]*", text)
    assert len(installs) == 3
    for one in installs:
        assert "--require-hashes" in one or "--no-deps /wheels/" in one, one
    assert "--no-build-isolation" in text, "a build that is isolated fetches what it likes"
    python = re.search(r"FROM python:([0-9.]+)", text)
    assert python is not None
    assert f"--python-version {python[1]} " in (ROOT / "Makefile").read_text(), "resolved for another Python"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_place(name: str) -> None:
    assert "://" not in (ROOT / "deploy" / name).read_text()
    assert entries(name)
