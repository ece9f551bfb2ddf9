"""What an import costs: `ptklib` needs no service, no scikit-learn and no frame library, and says what an extra is for."""

from __future__ import annotations

import subprocess
import sys

import pytest

FOREIGN = (
    "allocator",
    "alembic",
    "click",
    "dp_accounting",
    "google",
    "grpc",
    "opendp",
    "pandas",
    "polars",
    "profiler",
    "ptkstore",
    "pulp",
    "rich",
    "sklearn",
    "sqlalchemy",
    "yaml",
)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "modules",
    [
        "ptklib",
        "ptklib.featurize",
        "ptklib.featurize, ptklib.export, ptklib.ptks.statistics",
        "ptklib.registry; ptklib.registry.kinds()",
    ],
)
def test_the_library_imports_no_service_no_frames_and_no_learning_library(modules: str) -> None:
    assert run(f"import sys\nimport {modules}\nprint(*sorted({set(FOREIGN)} & set(sys.modules)))") == ""


def test_the_check_notices_an_import() -> None:
    assert run(f"import sys\nimport ptklib.sklearn\nprint(*sorted({set(FOREIGN)} & set(sys.modules)))") != ""


def test_the_library_itself_imports_nothing_at_all() -> None:
    """``import ptklib`` is free: what is used is imported by its own name."""
    assert run("import sys\nbefore = set(sys.modules)\nimport ptklib\nprint(*sorted(set(sys.modules) - before))") == (
        "ptklib"
    )


def test_without_scikit_learn_the_transformer_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['sklearn'] = None\n"
        "from ptklib.errors import SageError\n"
        "try:\n    import ptklib.sklearn\nexcept SageError as error:\n    print(error.reason, error.message)"
    )
    told = run(code)
    assert told.startswith("PACKAGE_MISSING")
    assert "ptkstore[sklearn]" in told
