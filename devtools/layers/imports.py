"""The modules of the project and what they import, read from their source: nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Import", "Module", "modules", "package_of", "transactions"]

ROOT = Path(__file__).resolve().parents[2]
TOPS = (
    "ptklib",
    "profiler",
    "allocator",
    "ptkstore",
    "devtools",
    "examples",
    "tests",
    "benchmarks",
)


@dataclass(frozen=True)
class Import:
    """A name of one of our modules, imported by another.

    ``name`` is "" where the module itself is meant.
    """

    module: str
    name: str
    line: int


@dataclass(frozen=True)
class Module:
    """One module: its dotted name, where it lies, its ``__all__`` and its imports, those of others
    included.
    """

    name: str
    path: Path
    exports: frozenset[str] | None
    ours: tuple[Import, ...]
    others: tuple[tuple[str, int], ...]
    # The lines in which a transaction of the metadata is opened.
    transactions: tuple[int, ...] = ()

    @property
    def is_door(self) -> bool:
        """Whether it is the ``__init__`` of a package."""
        return self.path.name == "__init__.py"

    @property
    def generated(self) -> bool:
        """Whether nobody wrote it."""
        return ".v1." in self.name or ".versions." in self.name


def package_of(module: Module) -> str:
    """The package that a module lies in.

    A door is a part of its own, above everything in the package.
    """
    return f"{module.name}:door" if module.is_door else module.name.rpartition(".")[0]


@cache
def modules() -> dict[str, Module]:
    """Every module of the project by its name."""
    paths = {_name(path): path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))}
    return {name: _read(name, path, frozenset(paths)) for name, path in paths.items()}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(name: str, path: Path, known: frozenset[str]) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    ours: list[Import] = []
    others: list[tuple[str, int]] = []
    for module, imported, line in _imports(tree):
        inner = f"{module}.{imported}"
        if imported and inner in known:
            ours.append(Import(inner, "", line))
        elif module in known:
            ours.append(Import(module, imported, line))
        else:
            others.append((module, line))
    return Module(name, path, _exports(tree), tuple(ours), tuple(others), transactions(tree))


def _imports(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name, node.lineno) for alias in node.names)


def transactions(tree: ast.Module) -> tuple[int, ...]:
    """The lines in which ``read()`` or ``write()`` of something is entered as a transaction, or
    called of something that is named metadata.
    """
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and _begins(node.context_expr):
            lines.add(node.context_expr.lineno)
        elif isinstance(node, ast.Call) and _begins(node) and _of_metadata(node):
            lines.add(node.lineno)
    return tuple(sorted(lines))


def _begins(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("read", "write", "write_results")
        and (node.func.attr == "write_results" or not node.args)
    )


def _of_metadata(node: ast.Call) -> bool:
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    name = (
        owner.id
        if isinstance(owner, ast.Name)
        else owner.attr
        if isinstance(owner, ast.Attribute)
        else ""
    )
    return name.endswith("metadata")


def _exports(tree: ast.Module) -> frozenset[str] | None:
    for node in tree.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value = getattr(node, "value", None)
            if isinstance(value, ast.List | ast.Tuple):
                return frozenset(
                    str(item.value) for item in value.elts if isinstance(item, ast.Constant)
                )
    return None
