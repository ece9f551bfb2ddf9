"""Write requirements.lock: what goes into the image, by version and by the SHA-256 of every archive.

    python deploy/lock.py            make it anew: the newest versions that pyproject.toml allows
    python deploy/lock.py --check    exit code 1 where it does not satisfy pyproject.toml any more (needs no network)

The image is for `PYTHON` on the `MACHINES` below. pip resolves, and says which archive it would take; names, versions and
digests are kept, and where an archive came from is not. The Dockerfile installs from nothing else (``--require-hashes``).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = Path(__file__).with_name("requirements.lock")
PYTHON = "3.12.11"
MACHINES = ("x86_64", "aarch64")
EXTRAS = ("server", "servers")
_HEAD = f"# Made by deploy/lock.py for Python {PYTHON} on {' and '.join(MACHINES)}: do not edit.\n"
# pip judges markers by the Python that runs it; the image has another one.
_PIP = """
import json, sys
from pip._vendor.packaging import markers
found, asked = markers.default_environment, json.loads(sys.argv.pop(1))
markers.default_environment = lambda: {**found(), **asked}
from pip._internal.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def environment(machine: str) -> dict[str, str]:
    """The markers of the image."""
    short = PYTHON.rpartition(".")[0]
    return {
        "python_version": short,
        "python_full_version": PYTHON,
        "implementation_version": PYTHON,
        "platform_machine": machine,
        "sys_platform": "linux",
    }


def asked_for(extras: tuple[str, ...] = EXTRAS) -> list[Requirement]:
    """What pyproject.toml asks for in the image, extras of its own resolved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = list(project["dependencies"])
    waiting = list(extras)
    while waiting:
        for text in project["optional-dependencies"][waiting.pop()]:
            one = Requirement(text)
            if one.name == project["name"]:
                waiting += one.extras
            else:
                texts.append(text)
    found = [Requirement(text) for text in dict.fromkeys(texts)]
    marked = environment(MACHINES[0])
    return [one for one in found if one.marker is None or one.marker.evaluate(marked)]


def resolved(machine: str) -> dict[str, tuple[str, str]]:
    """Version and digest by name, for one machine."""
    plain = [
        f"{one.name}[{','.join(one.extras)}]{one.specifier}" if one.extras else f"{one.name}{one.specifier}"
        for one in asked_for()
    ]
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in (36, 35, 34, 31, 28, 27, 26, 17)] + [
        f"manylinux2014_{machine}"
    ]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-c", _PIP, json.dumps(environment(machine)), "install", "--dry-run", "--quiet"]
        command += ["--ignore-installed", "--only-binary=:all:", "--implementation=cp", "--report", str(report)]
        command += [f"--python-version={PYTHON}", f"--target={folder}", *(f"--platform={one}" for one in platforms)]
        subprocess.run([*command, *plain], check=True)  # noqa: S603
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {
        canonicalize_name(one["metadata"]["name"]): (
            one["metadata"]["version"],
            one["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for one in found
    }


def written() -> dict[str, str]:
    """Versions by name in the lock."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE))


def faults() -> list[str]:
    """What the lock lacks of what pyproject.toml asks for."""
    versions, found = written(), []
    for one in asked_for():
        version = versions.get(canonicalize_name(one.name))
        if version is None or not one.specifier.contains(version, prereleases=True):
            found.append(f"{one.name}{one.specifier}: the lock has {version or 'none'}")
    return found


def main() -> int:
    """Write the lock, or check it."""
    if sys.argv[1:] == ["--check"]:
        found = faults()
        print("\n".join(found) or "the lock satisfies pyproject.toml")
        return 1 if found else 0
    by_machine = [resolved(machine) for machine in MACHINES]
    lines = []
    for name in sorted(set().union(*by_machine)):
        versions = {one[name][0] for one in by_machine if name in one}
        if len(versions) != 1:
            raise SystemExit(f"{name} has no version that all machines have: {', '.join(sorted(versions))}")
        digests = dict.fromkeys(one[name][1] for one in by_machine if name in one)
        hashes = " \\\n    ".join(f"--hash=sha256:{one}" for one in digests)
        lines.append(f"{name}=={versions.pop()} \\\n    {hashes}\n")
    LOCK.write_text(_HEAD + "".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
