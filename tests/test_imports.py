"""What an import costs:

`ptklib` needs no service, no scikit-learn and no frame library, and says what an extra is for.
"""

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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "modules",
    [
        "ptklib",
        "ptklib.features",
        "ptklib.features, ptklib.export, ptklib.ptks.statistics",
        "ptklib.registry; ptklib.registry.kinds()",
    ],
)
def test_the_library_imports_no_service_no_frames_and_no_learning_library(modules: str) -> None:
    assert (
        run(f"import sys\nimport {modules}\nprint(*sorted({set(FOREIGN)} & set(sys.modules)))")
        == ""
    )


def test_the_check_notices_an_import() -> None:
    assert (
        run(f"import sys\nimport ptklib.sklearn\nprint(*sorted({set(FOREIGN)} & set(sys.modules)))")
        != ""
    )


def test_the_library_itself_imports_nothing_at_all() -> None:
    """``import ptklib`` is free: what is used is imported by its own name."""
    assert run(
        "import sys\nbefore = set(sys.modules)\nimport ptklib\nprint(*sorted(set(sys.modules) - "
        "before))"
    ) == ("ptklib")


def test_without_scikit_learn_the_transformer_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['sklearn'] = None\n"
        "from ptklib.errors import SageError\n"
        "try:\n    import ptklib.sklearn\nexcept SageError as error:\n    print(error.reason, "
        "error.message)"
    )
    told = run(code)
    assert told.startswith("PACKAGE_MISSING")
    assert "ptkstore[sklearn]" in told


SERVICE = ("allocator", "profiler", "ptkstore.engine", "ptkstore.local", "sqlalchemy")


HEAVY = ("numpy", "pandas", "pyarrow", "scipy")


@pytest.mark.parametrize(
    ("named", "most"),
    [
        ("import ptkstore", 60),
        ("import ptkstore.client", 60),
        # With gRPC, which a class that speaks it takes.
        ("from ptkstore.client.store import RemoteStore", 350),
    ],
)
def test_the_client_is_thin(named: str, most: int) -> None:
    """Naming the store of a server imports neither the engine nor anything heavy."""
    absent = {*SERVICE, *HEAVY}
    code = f"import sys\n{named}\nprint(len(sys.modules), *sorted({absent} & set(sys.modules)))"
    count, *heavy = run(code).split()
    assert heavy == []
    assert int(count) < most


def test_opening_a_server_imports_no_store_in_a_directory() -> None:
    """A connection takes gRPC; NumPy and Arrow come with the first frame or state."""
    absent = {*SERVICE, *HEAVY}
    code = (
        "import sys\nimport ptkstore\nptkstore.open('127.0.0.1:1').close()\n"
        f"print('grpc' in sys.modules, *sorted({absent} & set(sys.modules)))"
    )
    assert run(code) == "True"


def test_opening_a_directory_imports_no_client() -> None:
    code = (
        "import sys, tempfile\nimport ptkstore\n"
        "with tempfile.TemporaryDirectory() as place:\n    ptkstore.open(place, "
        "workers=0).close()\n"
        "print(*sorted({'grpc', 'ptkstore.client', 'ptkstore.local'} & set(sys.modules)))"
    )
    assert run(code) == "ptkstore.local"
