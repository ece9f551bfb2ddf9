"""What of the rules does not hold: one line for each finding, with the file and the line to look
at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from devtools.layers.imports import ROOT, Module, modules, package_of
from devtools.layers.rules import (
    IMPURE,
    LAYERS,
    MOST_MODULES,
    ONLY,
    PRODUCT,
    PURE,
    ROOTS,
    TRANSACTORS,
    Part,
)

__all__ = ["circles", "findings", "part_of"]


def part_of(module: str) -> tuple[int, Part] | None:
    """The rank and the part a module belongs to."""
    for rank, parts in enumerate(LAYERS):
        for part in parts:
            if part.holds(module):
                return rank, part
    return None


def findings() -> list[str]:
    """Everything that breaks a rule."""
    known = modules()
    return [
        *_directions(known),
        *_rooms(known),
        *_names(known),
        *_transactions(known),
        *circles(known),
    ]


def _directions(known: Mapping[str, Module]) -> Iterator[str]:
    for module in known.values():
        if module.name in ROOTS:
            continue
        here = part_of(module.name)
        where = module.path.relative_to(ROOT)
        if here is None:
            yield f"{where}: {module.name} belongs to no part: add it to devtools/layers/rules.py"
            continue
        rank, part = here
        for used in module.ours:
            there = part_of(used.module)
            if used.module in ROOTS or there is None or there[1] == part:
                continue
            if there[0] >= rank:
                yield f"{where}:{used.line}: {part.name} must not import {used.module}: imports point down only"
            elif part.name in ONLY and there[1].name not in ONLY[part.name]:
                yield f"{where}:{used.line}: {part.name} must not import {used.module}: see ONLY in the rules"
        if part.name in PURE:
            for name, line in module.others:
                if name.split(".")[0] in IMPURE:
                    yield f"{where}:{line}: {part.name} is pure and must not import {name}"


def _rooms(known: Mapping[str, Module]) -> Iterator[str]:
    sizes = Counter(
        package_of(module)
        for module in known.values()
        if not module.is_door and not module.generated and module.name.split(".")[0] in PRODUCT
    )
    for package, size in sorted(sizes.items()):
        if size > MOST_MODULES:
            yield f"{package.replace('.', '/')}: {size} modules, at most {MOST_MODULES} fit into one package"


def _names(known: Mapping[str, Module]) -> Iterator[str]:
    for module in known.values():
        if module.name.split(".")[0] not in PRODUCT:
            continue
        for used in module.ours:
            source = known[used.module]
            if (
                not used.name
                or source.generated
                or source.name in ROOTS
                or used.module.startswith("ptkstore.v1")
            ):
                continue
            if source.exports is None or used.name not in source.exports:
                where = f"{module.path.relative_to(ROOT)}:{used.line}"
                yield f"{where}: {used.name} is not in the __all__ of {used.module}"


def _transactions(known: Mapping[str, Module]) -> Iterator[str]:
    for module in known.values():
        part = part_of(module.name)
        if part is None or module.name.split(".")[0] not in PRODUCT:
            continue
        if part[1].name in TRANSACTORS:
            continue
        where = module.path.relative_to(ROOT)
        for line in module.transactions:
            yield f"{where}:{line}: {part[1].name} must not open a transaction: call the engine"


def circles(known: Mapping[str, Module]) -> Iterator[str]:
    """Packages of the product that import each other in a circle.

    In ``ptklib`` and ``ptkstore`` a module is a package.
    """
    edges: dict[str, set[str]] = defaultdict(set)
    for module in known.values():
        if module.generated or module.name in ROOTS or module.name.split(".")[0] not in PRODUCT:
            continue
        for used in module.ours:
            here, there = _node(module), _node(known[used.module])
            if here != there and used.module not in ROOTS:
                edges[here].add(there)
    for circle in _components(edges):
        yield f"packages import each other in a circle: {', '.join(sorted(circle))}"


def _node(module: Module) -> str:
    package = package_of(module)
    return module.name if package in ROOTS else package


def _components(edges: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Strongly connected sets of more than one package: mutual reach, which is fast enough for some
    hundred packages.
    """
    reach = {node: _reached(node, edges) for node in list(edges)}
    seen: set[str] = set()
    for node, reached in reach.items():
        circle = {other for other in reached if node in reach.get(other, ())}
        if len(circle) > 1 and node not in seen:
            seen |= circle
            yield circle


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        for node in edges.get(ahead.pop(), ()):
            if node not in reached:
                reached.add(node)
                ahead.append(node)
    return reached
