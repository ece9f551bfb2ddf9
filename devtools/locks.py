"""The locks: what is installed to work on the project and what goes into the image, by digest.

``python -m devtools.locks write`` resolves them with uv (``--upgrade``: to the newest versions,
which is ``make lock``; otherwise versions that still fit are kept). ``python -m devtools.locks
check``, part of ``make lint``, finds without a network what is stale. A lock is up to date when

- its first line has the digest of what it was made from: every requirement that pyproject.toml has
  for it, and the Pythons and options it was resolved with;
- for each of these Pythons, every such requirement is met by one version that it names;
- it is nothing but archives with SHA-256 digests, and names no index.

The first notices what was taken out of pyproject.toml or changed in form, the second a first line
that was mended by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from devtools.environment import NotInstalled, uv_settings

__all__ = [
    "IMAGE_PYTHON",
    "LOCKS",
    "PYTHONS",
    "Lock",
    "LockedPackage",
    "asked_for",
    "entries",
    "findings",
    "write",
]

ROOT = Path(__file__).parents[1]
# The Pythons that the project is tried with; the least is that of `requires-python`.
PYTHONS = ("3.11", "3.12", "3.13")
# That of deploy/Dockerfile.
IMAGE_PYTHON = "3.12.11"

# Findings that are told for each; one `make lock` mends all of them.
_MOST = 5
_FIRST = "# Made by `make lock` from sha256:"
_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9._-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?: \\\n +--hash=sha256:[0-9a-f]{64})+$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Lock:
    """One file: the requirements it answers and the Pythons it answers them for. Without ``extras``
    the project's own are left out; with ``builds`` what it is built with is in it, and ``also``."""

    path: str
    pythons: tuple[str, ...]
    options: tuple[str, ...]
    extras: tuple[str, ...] = ()
    builds: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class LockedPackage:
    """A version of a package, and where it is for."""

    name: str
    version: str
    marker: Marker | None

    def is_for(self, python: str) -> bool:
        """True when this is what a Python on Linux installs."""
        return self.marker is None or self.marker.evaluate(_machine(python))


_FOR_IMAGE = ("--python-version", IMAGE_PYTHON, "--python-platform", "linux")
LOCKS = (
    Lock(
        "requirements-dev.lock",
        PYTHONS,
        ("--universal", "--python-version", PYTHONS[0]),
        extras=("dev",),
        builds=True,
        also=("editables", "pip"),  # hatchling links a project to its sources with the first
    ),
    Lock("deploy/requirements.lock", (IMAGE_PYTHON,), _FOR_IMAGE, extras=("server", "servers")),
    Lock("deploy/build.lock", (IMAGE_PYTHON,), _FOR_IMAGE, builds=True),
)


def asked_for(lock: Lock, pyproject: Mapping[str, Any]) -> tuple[str, ...]:
    """Every requirement that pyproject.toml has for a lock, sorted; extras of the project are
    followed.
    """
    project, build = pyproject["project"], pyproject["build-system"]
    texts = {*lock.also, *(build["requires"] if lock.builds else ())}
    if lock.extras:
        texts |= set(project["dependencies"])
    waiting, seen = list(lock.extras), set()
    while waiting:
        extra = waiting.pop()
        seen.add(extra)
        for text in project["optional-dependencies"][extra]:
            requirement = Requirement(text)
            if requirement.name == project["name"]:
                waiting += requirement.extras - seen
            else:
                texts.add(text)
    return tuple(sorted(texts))


def entries(text: str) -> list[LockedPackage]:
    """What the text of a lock names."""
    return [
        LockedPackage(
            canonicalize_name(match["name"]),
            match["version"],
            Marker(match["marker"]) if match["marker"] else None,
        )
        for match in _ENTRY.finditer(text)
    ]


def findings(lock: Lock, text: str, pyproject: Mapping[str, Any]) -> list[str]:
    """Why a lock with this text is not up to date; empty if it is."""
    first, _, body = text.partition("\n")
    faults = []
    if first != _FIRST + _digest(lock, pyproject):
        faults.append("it was made from other requirements")
    faults += [
        f"no archive with a digest: {line.strip()}"
        for line in _ENTRY.sub("", body).splitlines()
        if line.strip()
    ]
    if "://" in text:
        faults.append("it names a place to fetch from")
    lacks: dict[str, list[str]] = {}
    for python in lock.pythons:
        for lack in _lacks(lock, entries(body), python, pyproject):
            lacks.setdefault(lack, []).append(python)
    return faults + [f"{lack} (Python {', '.join(pythons)})" for lack, pythons in lacks.items()]


def _lacks(
    lock: Lock, locked: Sequence[LockedPackage], python: str, pyproject: Mapping[str, Any]
) -> Iterator[str]:
    versions: dict[str, set[str]] = {}
    for entry in locked:
        if entry.is_for(python):
            versions.setdefault(entry.name, set()).add(entry.version)
    yield from (f"{name} has several versions" for name, of in versions.items() if len(of) > 1)
    for requirement in map(Requirement, asked_for(lock, pyproject)):
        if requirement.marker is not None and not requirement.marker.evaluate(_machine(python)):
            continue
        of = versions.get(canonicalize_name(requirement.name), set())
        if not any(requirement.specifier.contains(version, prereleases=True) for version in of):
            yield f"pyproject.toml asks for {requirement} and it has {' and '.join(sorted(of)) or 'none'}"


def write(lock: Lock, pyproject: Mapping[str, Any], *, upgrade: bool) -> None:
    """Resolve a lock again, with the uv and through the index of this environment.

    Raises `NotInstalled`.
    """
    path, settings = ROOT / lock.path, uv_settings(sys.executable)
    command = [
        str(Path(sys.executable).parent / "uv"),
        "pip",
        "compile",
        "-",
        "--quiet",
        "--generate-hashes",
    ]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    command += [*lock.options, *settings.options, "--output-file", str(path)]
    if not Path(command[0]).exists():
        raise NotInstalled("there is no uv in this environment: make setup says why")
    done = subprocess.run(
        [*command, "--upgrade"] if upgrade else command,
        input="\n".join(asked_for(lock, pyproject)),
        env={**os.environ, **settings.variables},
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotInstalled(f"{lock.path}: uv ended with {done.returncode}")
    path.write_text(
        f"{_FIRST}{_digest(lock, pyproject)}\n{path.read_text(encoding='utf-8')}", encoding="utf-8"
    )


def _digest(lock: Lock, pyproject: Mapping[str, Any]) -> str:
    lines = (
        "pythons",
        *lock.pythons,
        "options",
        *lock.options,
        "requirements",
        *asked_for(lock, pyproject),
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _machine(python: str) -> dict[str, str]:
    whole = python if python.count(".") > 1 else f"{python}.0"
    linux = {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
    }
    cpython = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
    return {
        "python_version": whole.rpartition(".")[0],
        "python_full_version": whole,
        **linux,
        **cpython,
    }


def main() -> int:
    """The command; 1 when a lock is stale or cannot be written."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools.locks", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("what", choices=("check", "write"))
    parser.add_argument("--upgrade", action="store_true", help="write: to the newest versions")
    given = parser.parse_args()
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    stale = 0
    for lock in LOCKS:
        if given.what == "write":
            try:
                write(lock, pyproject, upgrade=given.upgrade)
            except NotInstalled as error:
                print(error, file=sys.stderr)
                return 1
        path = ROOT / lock.path
        faults = (
            findings(lock, path.read_text(encoding="utf-8"), pyproject)
            if path.exists()
            else ["there is none"]
        )
        for finding in faults[:_MOST]:
            print(f"{lock.path}: {finding}: make lock")
        stale += bool(faults)
    print(f"locks: {stale} of {len(LOCKS)} stale")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
