"""The guide to other clients works word for word, in processes that cannot import Sage's code but
for ``ptklib`` at the end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig

import pytest

from tests.rpc.calling import ROOT
from tests.rpc.small import serving

GUIDE = (ROOT / "docs/guides/clients.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, flags=re.M | re.S)
MARK = "---- block ----"
# A Python without site: what is installed is on the path as a folder, and the project, which is
# only linked there, is not.
PYTHON = """#!/bin/sh
case "$1" in
features.py) export PYTHONPATH="{installed}:{library}" ;;
*) export PYTHONPATH="{installed}" ;;
esac
exec {python} -S -W error "$@"
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each ``sh`` block printed."""
    parts = tmp_path_factory.mktemp("guide")
    library = parts / "library"
    library.mkdir()
    (library / "ptklib").symlink_to(ROOT / "ptklib")
    commands = parts / "bin"
    commands.mkdir()
    installed = sysconfig.get_paths()["purelib"]
    python = commands / "python"
    python.write_text(PYTHON.format(installed=installed, library=library, python=sys.executable))
    python.chmod(0o755)
    script = f"\necho '{MARK}'\n".join(text for kind, text in BLOCKS if kind == "sh")
    with serving(parts / "store") as (server, _):
        variables = {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "SAGE": server.address,
            "SAGE_PROTO": str(ROOT / "proto"),
            "PYTHONUNBUFFERED": "1",
        }
        for module, works in (
            ("grpc", True),
            ("pyarrow", True),
            ("ptkstore.client", False),
            ("ptklib", False),
        ):
            tried = subprocess.run(
                ["python", "-c", f"import {module}"],
                cwd=parts,
                env=variables,
                capture_output=True,
                check=False,
            )
            assert (tried.returncode == 0) == works, module
        run = subprocess.run(
            ["/bin/sh", "-eu", "-c", script],
            cwd=parts,
            env=variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.split(f"{MARK}\n")


def test_every_block_prints_what_the_guide_shows(printed: list[str]) -> None:
    number, compared = -1, 0
    for kind, text in BLOCKS:
        number += kind == "sh"
        if kind == "text":
            # Two processes may print in either order.
            assert sorted(printed[number].splitlines()) == sorted(text.splitlines())
            compared += 1
    assert compared == 4


def test_the_guide_goes_all_the_way() -> None:
    words = (
        "RegisterPtk",
        "Append",
        "SubscribeToPtk",
        "NotifyNewPtkState",
        "CloseWindow",
        "GetState",
        "featurize(",
    )
    shell = "".join(text for kind, text in BLOCKS if kind == "sh")
    assert [word for word in words if word not in shell] == []
    assert "ptkstore.client" not in shell
    assert "from ptkstore import" not in shell
