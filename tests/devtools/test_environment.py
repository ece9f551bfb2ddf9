"""``make setup``, on a small project with real pip and real uv: what is locked is what is
installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.environment import NotInstalled, entry_of
from tests.devtools.toy_project import ROOT, ToyProject, make_uv_wheel


@pytest.fixture(scope="module")
def uv_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_uv_wheel(tmp_path_factory.mktemp("uv"))


@pytest.fixture
def project(tmp_path: Path) -> ToyProject:
    """Without a uv."""
    return ToyProject.make(tmp_path)


@pytest.fixture
def with_uv(project: ToyProject, uv_wheel: Path) -> ToyProject:
    project.lock(project.add_marble("1.0"), project.add_uv(uv_wheel))
    return project


def test_uv_installs_what_the_lock_names_through_what_pip_knows(with_uv: ToyProject) -> None:
    run = with_uv.set_up()
    assert (run.returncode, run.stderr) == (0, "")
    assert with_uv.marble() == "1.0"
    assert (with_uv.venv / "bin" / "uv").exists()


def test_it_follows_the_lock_and_removes_what_is_not_in_it(
    with_uv: ToyProject, uv_wheel: Path
) -> None:
    assert with_uv.set_up().returncode == 0
    (site,) = with_uv.venv.glob("lib/python*/site-packages")
    stray = site / "stray-1.dist-info"
    stray.mkdir()
    (site / "stray.py").touch()
    (stray / "METADATA").write_text("Metadata-Version: 2.1\nName: stray\nVersion: 1\n")
    (stray / "RECORD").write_text(
        "stray.py,,\nstray-1.dist-info/METADATA,,\nstray-1.dist-info/RECORD,,\n"
    )
    again = entry_of("uv", (with_uv.root / "requirements-dev.lock").read_text())[1]
    name, version, digest = with_uv.add_marble("2.0")
    (with_uv.root / "requirements-dev.lock").write_text(
        f"{name}=={version} --hash=sha256:{digest}\n{again}"
    )
    assert with_uv.set_up().returncode == 0
    assert with_uv.marble() == "2.0"
    assert not stray.exists()
    assert not (site / "stray.py").exists()


def test_without_uv_pip_does_it_by_the_same_digests_and_a_line_says_so(project: ToyProject) -> None:
    project.add_marble("1.0", remark="something else")
    refused = project.set_up()
    assert refused.returncode == 1
    assert_refused(project, refused.stderr)
    project.add_marble("1.0")
    run = project.set_up()
    assert run.returncode == 0, run.stderr
    assert project.marble() == "1.0"
    (line,) = run.stderr.splitlines()
    assert line.startswith("setup: uv cannot be used (ERROR: ")
    assert line.endswith("going on with pip and the same digests, which takes longer")
    # Who asks for it resolves anew.
    project.add_marble("1.5")
    anew = project.set_up(
        "--unlocked", environ={"PIP_UPGRADE": "1", "PIP_UPGRADE_STRATEGY": "eager"}
    )
    assert anew.returncode == 0, anew.stderr
    assert project.marble() == "1.5"
    assert "its digests are not looked at" in anew.stderr


def assert_refused(project: ToyProject, told: str) -> None:
    assert "DO NOT MATCH THE HASHES" in told
    assert told.splitlines()[-1].endswith("resolve anew: make setup UNLOCKED=1")
    assert "No module named" in project.marble()


def test_when_uv_cannot_reach_the_index_pip_does_it(with_uv: ToyProject) -> None:
    run = with_uv.set_up(environ={"UV_FIND_LINKS": str(with_uv.root / "nowhere")})
    assert run.returncode == 0, run.stderr
    assert with_uv.marble() == "1.0"
    assert "setup: uv cannot be used (error: " in run.stderr


def test_an_archive_with_another_digest_is_never_installed(with_uv: ToyProject) -> None:
    with_uv.add_marble("1.0", remark="something else")
    run = with_uv.set_up()
    assert run.returncode == 1
    assert_refused(with_uv, run.stderr)


def test_an_environment_of_another_python_is_made_again(with_uv: ToyProject) -> None:
    python = with_uv.venv / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho '(3, 1, 4) /elsewhere'\n")
    python.chmod(0o755)
    (with_uv.venv / "pyvenv.cfg").touch()
    (with_uv.venv / "of-the-other").touch()
    assert with_uv.set_up().returncode == 0
    assert with_uv.marble() == "1.0"
    assert not (with_uv.venv / "of-the-other").exists()


def test_a_folder_that_is_no_environment_is_not_emptied(with_uv: ToyProject) -> None:
    with_uv.venv.mkdir()
    (with_uv.venv / "letters.txt").write_text("dear")
    assert with_uv.set_up().returncode == 0
    assert (with_uv.venv / "letters.txt").read_text() == "dear"


def test_an_entry_is_found_with_all_its_digests() -> None:
    lock = "a==1 ; python_version < '3' \\\n    --hash=x \\\n    --hash=y\nab==2 \\\n    --hash=z\n"
    assert entry_of("a", lock) == (
        "1",
        "a==1 ; python_version < '3' \\\n    --hash=x \\\n    --hash=y\n",
    )
    assert entry_of("ab", lock) == ("2", "ab==2 \\\n    --hash=z\n")
    with pytest.raises(NotInstalled, match="names no b"):
        entry_of("b", lock)


def test_the_stamp_notices_a_new_lock() -> None:
    rule = next(
        line
        for line in (ROOT / "Makefile").read_text().splitlines()
        if line.startswith("$(STAMP):")
    )
    assert {"pyproject.toml", "requirements-dev.lock"} <= set(rule.split())
