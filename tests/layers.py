"""Imports point down only. ``python -m tests.layers`` checks it; part of ``make lint``.

`LAYERS` lists the parts of the project from the lowest to the highest. A module may import from parts below its own and from
its own part, never from above or beside. `PURE` parts must not touch clocks, files, networks or randomness at all.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

LAYERS: tuple[tuple[str, ...], ...] = (
    ("ptklib.errors",),
    ("ptkstore.extras",),
    # Generated from proto/.
    ("ptkstore.v1",),
    ("ptklib.privacy.amounts",),
    ("ptklib.privacy.source", "ptklib.privacy.curves"),
    ("ptklib.privacy.sampler_slow", "ptklib.privacy.sampler_probit"),
    ("ptklib.privacy.sampler", "ptklib.privacy.costs"),
    ("ptklib.privacy.fixed_point", "ptklib.privacy.calibration", "ptklib.privacy.filters"),
    ("ptklib.privacy.mechanisms",),
    ("ptklib.ledger",),
    ("ptklib.config",),
    ("ptklib.serving ptklib.serving_columns ptklib.serving_steps",),
    ("ptklib.ptk",),
    ("ptklib.registry",),
    ("ptklib.state", "ptklib.frames"),
    ("ptklib.ptks", "ptklib.featurize"),
    ("ptklib.serving_plans",),
    ("ptklib.export", "ptklib.sklearn"),
    ("ptklib.testing",),
    ("ptklib.auditing",),
    ("profiler",),
    ("allocator",),
    ("ptkstore.private_files",),
    ("ptkstore.ledger",),
    ("ptkstore.streams",),
    ("ptkstore.metadata", "ptkstore.lake", "ptkstore.bus"),
    ("ptkstore.views", "ptkstore.workers", "ptkstore.public_time"),
    ("ptkstore.png", "ptkstore.pushing", "ptkstore.references", "ptkstore.tracing"),
    ("ptkstore.engine",),
    # What both ends of the wire share.
    (
        "ptkstore.rpc.faults ptkstore.rpc.happenings ptkstore.rpc.messages ptkstore.rpc.pages ptkstore.rpc.permissions"
        " ptkstore.rpc.wire",
    ),
    (
        "ptkstore.remote ptkstore.remote_channel ptkstore.remote_operations ptkstore.remote_push ptkstore.remote_requests"
        " ptkstore.remote_states ptkstore.remote_watch",
    ),
    ("ptkstore.client",),
    ("ptkstore.rpc",),
    ("ptkstore.settings",),
    # The composition root of the service.
    ("ptkstore.server",),
    # Projects to start from: copied, never imported.
    ("ptkstore.templates",),
    ("ptkstore.console",),
    ("ptkstore.cli",),
    ("examples",),
    # Tests show in small what benchmarks show in large, and share their pieces.
    ("tests benchmarks",),
)

PURE = (
    "ptklib.ledger",
    "ptklib.privacy.filters",
    "ptklib.privacy.costs",
    "ptklib.privacy.amounts",
    "profiler",
    "allocator",
)
IMPURE_MODULES = {"datetime", "os", "pathlib", "random", "secrets", "shutil", "socket", "sqlite3", "subprocess", "time"}

# Packages whose __init__ only says what is in them.
_ROOTS = {"ptklib", "ptklib.privacy", "ptkstore", "ptklib.testing"}


def _modules() -> Iterator[tuple[str, Path]]:
    for top in ("ptklib", "profiler", "allocator", "ptkstore", "examples", "tests", "benchmarks"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from package import module` imports the module where there is one.
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole if _exists(whole) else node.module), node.lineno


def _exists(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def _part(module: str) -> tuple[int, str] | None:
    """The rank and name of the part a module belongs to."""
    for rank, parts in enumerate(LAYERS):
        for part in parts:
            if any(module == name or module.startswith(name + ".") for name in part.split()):
                return rank, part
    return None


def violations() -> list[str]:
    """Every import that points up or sideways, and every impure import of a pure part."""
    found = []
    for module, path in _modules():
        if module in _ROOTS and module != "ptkstore.ledger":
            continue
        here = _part(module)
        where = path.relative_to(ROOT)
        if here is None:
            found.append(f"{where}: {module} belongs to no layer: add it to tests/layers.py")
            continue
        for name, line in _imports(path):
            there = _part(name)
            if there is not None and there[1] != here[1] and there[0] >= here[0]:
                found.append(f"{where}:{line}: {here[1]} must not import {name}: imports point down only")
            if name.split(".")[0] in IMPURE_MODULES and here[1].startswith(PURE):
                found.append(f"{where}:{line}: {here[1]} is pure and must not import {name}")
    return found


def main() -> int:
    """Print violations; 1 when there are any."""
    found = violations()
    for one in found:
        print(one)
    print(f"layers: {len(found)} violations in {sum(1 for _ in _modules())} modules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
