"""The wire contract: linted, and generated code that is what the contract gives."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    find_spec("grpc_tools") is None, reason="grpcio-tools is not installed (extra dev)"
)
def test_generating_again_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "ptkstore/v1").mkdir(parents=True)
    subprocess.run([sys.executable, ROOT / "proto/generate.py", tmp_path], check=True, timeout=120)
    made = {one.name: one.read_bytes() for one in (tmp_path / "ptkstore/v1").iterdir()}
    kept = {one.name: one.read_bytes() for one in (ROOT / "ptkstore/v1").iterdir() if one.is_file()}
    assert sorted(made) == sorted(kept)
    assert [name for name in made if made[name] != kept[name]] == []


def test_the_contract_passes_the_linter() -> None:
    buf = shutil.which("buf") or shutil.which("buf", path=str(Path(sys.executable).parent))
    if buf is None:
        pytest.skip("buf is not installed (extra dev: buf-bin)")
    run = subprocess.run(
        [buf, "lint"], cwd=ROOT / "proto", capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("proto/ptkstore/v1/*.proto")), ids=lambda path: path.stem
)
def test_every_rpc_says_what_it_does(path: Path) -> None:
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if re.match(r"\s+rpc ", line):
            assert lines[number - 1].lstrip().startswith("//"), line
