"""The project keeps its own rules: layers, sorted public names, documented reasons, commands that
work.
"""

from __future__ import annotations

import ast
import importlib
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import allocator
import profiler
import ptklib
import ptkstore
from ptklib import errors

ROOT = Path(__file__).parents[1]
PACKAGES = (ptklib, profiler, allocator, ptkstore)
MODULES = sorted(
    module.name
    for package in PACKAGES
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if not module.name.startswith("ptkstore.v1.")  # generated
)


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_listed_sorted_and_there(name: str) -> None:
    module = importlib.import_module(name)
    public = getattr(module, "__all__", None)
    if public is None:
        # A package that only says what is in it.
        assert Path(str(module.__file__)).name == "__init__.py"
        assert len(ast.parse(Path(str(module.__file__)).read_text()).body) == 1
        return
    assert public == sorted(
        public, key=lambda one: (not one.isupper(), not one[0].isupper(), one)
    ), f"{name}: {public}"
    assert all(hasattr(module, one) for one in public)


def reasons_in_source() -> set[str]:
    """Every UPPER_SNAKE text that is the first argument of something named like an error of
    ours.
    """
    found = set()
    for path in [path for package in PACKAGES for path in ROOT.glob(f"{package.__name__}/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            texts = (
                [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                if isinstance(node, ast.Call)
                else []
            )
            found |= {
                one
                for one in texts
                if isinstance(one, str) and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", one)
            }
    return found - {"PYTEST_CURRENT_TEST", "BEGIN_IMMEDIATE", "SC_PAGE_SIZE", "SC_PHYS_PAGES"}


def named_in_source() -> set[str]:
    """Every UPPER_SNAKE text, and what findings begin with: reasons that are raised in several
    places have a name.
    """
    found = set()
    for path in [path for package in PACKAGES for path in ROOT.glob(f"{package.__name__}/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            text = (
                node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            )
            found |= set(re.findall(r"^([A-Z]+(?:_[A-Z]+)+)(?:$|: )", text))
    return found


def test_every_reason_is_documented_and_every_documented_reason_exists() -> None:
    text = (ROOT / "docs/reference/errors.md").read_text()
    documented = set(re.findall(r"^\| `([A-Z_]+)`", text, flags=re.M))
    raised = reasons_in_source()
    assert raised <= documented
    assert documented <= raised | named_in_source()


def test_errors_survive_travel_between_processes() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    for kind in kinds:
        error = kind("SOME_REASON", "what happened", blocks=["a"], left=3)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind
        assert (again.reason, again.message, dict(again.details)) == (
            "SOME_REASON",
            "what happened",
            {"blocks": ["a"], "left": 3},
        )
        assert str(again) == "what happened [SOME_REASON]"


def test_the_demo_ends_by_itself_and_outlives_one_budget() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "examples.endless_stream", "--days", "20"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert re.search(r"20 days, \d+ charges on \d+ blocks", run.stdout)
    ended = re.search(r"one budget for the whole stream:\s+ended on day (\d+)", run.stdout)
    assert ended
    assert int(ended[1]) < 10
    assert "the same state" in run.stdout.replace("\n", " ")


def test_no_file_speaks_of_a_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.split("\n"):
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ""}:
            assert not re.search(r"/(root|home)/\w", path.read_text()), name
