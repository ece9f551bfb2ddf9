"""``make setup``: a virtual environment with exactly what the lock names, by version and digest.

``python -m devtools.environment .venv``, in the root of the project:

1. make the environment, or use the one that is there if it has the same Python;
2. install the uv that the lock names, with pip, by its digest;
3. let uv install what the lock names and remove what it does not name, then the project itself, as
   a link to its sources. Nothing is resolved, and nothing is fetched that has no digest: the build
   backend is in the lock, too.

Where uv cannot be had or cannot do it, a line says so and pip does the same with the same digests.
Where pip cannot either, nothing is tried without digests: an archive that is not the locked one is
a reason to stop. ``--unlocked`` resolves pyproject.toml anew, for a mirror that lacks what is
locked.

Only the standard library is imported: this runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from devtools.pip_settings import UvSettings, for_uv

__all__ = ["LOCK", "NotInstalled", "entry_of", "make", "uv_settings"]

LOCK = Path("requirements-dev.lock")
_EXTRA = "dev"
# What is imported is compiled when it is: most of it never is.
_INSTALL = ("install", "--quiet", "--disable-pip-version-check", "--no-compile")


class NotInstalled(Exception):
    """A step ended with an error; the message is what it said."""


def make(venv: Path, *, unlocked: bool = False) -> None:
    """Make the environment. Raises `NotInstalled`."""
    python = venv / "bin" / "python"
    if not _is_usable(python):
        # Only what is an environment is emptied. Its pip comes with the lock: compiling one first
        # takes longer than uv takes.
        clear = ("--clear",) if (venv / "pyvenv.cfg").exists() else ()
        _run(sys.executable, "-m", "venv", "--without-pip", *clear, str(venv))
    if unlocked:
        _say(f"resolving pyproject.toml anew: {LOCK} and its digests are not looked at")
        _run(*_own_pip(python), *_INSTALL, "--editable", f".[{_EXTRA}]")
        return
    try:
        _install_uv(venv)
        _sync(venv)
    except NotInstalled as error:
        _say(
            f"uv cannot be used ({_gist(error)}): going on with pip and the same digests, which "
            "takes longer"
        )
        # All but uv, which is there already or cannot be had.
        text, rest = LOCK.read_text(encoding="utf-8"), venv / "pip.lock"
        rest.write_text(text.replace(entry_of("uv", text)[1], ""), encoding="utf-8")
        pip = (*_own_pip(python), *_INSTALL, "--no-deps")
        _run(*pip, "--require-hashes", "--requirement", str(rest))
        _run(*pip, "--no-build-isolation", "--editable", ".")


def entry_of(name: str, lock: str) -> tuple[str, str]:
    """The version of a package in the text of a lock, and its whole entry with the digests."""
    match = re.search(rf"^{re.escape(name)}==(\S+)(?:[^\n]*\\\n)*[^\n]*$", lock, flags=re.MULTILINE)
    if match is None:
        raise NotInstalled(f"{LOCK} names no {name}")
    return match[1], match[0] + "\n"


def uv_settings(*pythons: str) -> UvSettings:
    """What uv must be told so that it reaches the index that pip reaches: that of the first of
    these Pythons that has one.
    """
    for python in pythons:
        try:
            return for_uv(_run(python, "-m", "pip", "config", "list"), os.environ)
        except NotInstalled:
            continue
    return UvSettings()


def _install_uv(venv: Path) -> None:
    version, entry = entry_of("uv", LOCK.read_text(encoding="utf-8"))
    try:
        if _run(str(venv / "bin" / "uv"), "--version").split()[1] == version:
            return
    except NotInstalled:
        pass
    only, python = venv / "uv.lock", venv / "bin" / "python"
    only.write_text(entry, encoding="utf-8")
    arguments = (*_INSTALL, "--no-deps", "--require-hashes", "--requirement", str(only))
    try:
        _run(sys.executable, "-m", "pip", "--python", str(python), *arguments)
    except NotInstalled:  # no pip beside this Python, or one from before 2022
        _run(*_own_pip(python), *arguments)


def _own_pip(python: Path) -> tuple[str, ...]:
    """The pip of an environment, which is put there if there is none."""
    pip = (str(python), "-m", "pip")
    try:
        _run(*pip, "--version")
    except NotInstalled:
        _run(str(python), "-m", "ensurepip", "--default-pip")
    return pip


def _sync(venv: Path) -> None:
    python = str(venv / "bin" / "python")
    settings = uv_settings(sys.executable, python)
    uv = (str(venv / "bin" / "uv"), "pip")
    options = ("--quiet", "--python", python, *settings.options)
    environ = {**os.environ, **settings.variables}
    _run(*uv, "sync", *options, "--require-hashes", str(LOCK), environ=environ)
    _run(
        *uv,
        "install",
        *options,
        "--no-deps",
        "--no-build-isolation",
        "--editable",
        ".",
        environ=environ,
    )


def _is_usable(python: Path) -> bool:
    """True for an environment of the Python that runs this."""
    question = "import sys; print(sys.version_info[:3], sys.base_prefix)"
    try:
        return (
            _run(str(python), "-c", question).strip() == f"{sys.version_info[:3]} {sys.base_prefix}"
        )
    except NotInstalled:
        return False


def _run(*command: str, environ: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        raise NotInstalled(
            done.stderr.strip()
            or done.stdout.strip()
            or f"{command[0]} ended with {done.returncode}"
        )
    return done.stdout


def _gist(error: NotInstalled) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line.lower().startswith("error: ")]
    return textwrap.shorten((told or lines)[-1], 160)


def _say(line: str) -> None:
    print(f"setup: {line}", file=sys.stderr, flush=True)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools.environment", description=(__doc__ or "").split(":")[0]
    )
    parser.add_argument("venv", type=Path, help="the directory of the environment")
    parser.add_argument(
        "--unlocked",
        action="store_true",
        help="resolve pyproject.toml anew, without the lock's digests",
    )
    given = parser.parse_args()
    try:
        make(given.venv, unlocked=given.unlocked)
    except NotInstalled as error:
        print(error, file=sys.stderr)
        if not given.unlocked:
            _say(
                f"what {LOCK} names could not be installed; if the index lacks it, resolve anew: "
                "make setup UNLOCKED=1"
            )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
