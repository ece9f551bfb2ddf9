"""The walk of a record in docs/internals/engine.md is that of the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from devtools.layers.findings import part_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "internals" / "engine.md"
STEPS = (
    "append",
    "check",
    "tag",
    "encrypt",
    "acknowledge",
    "seal",
    "count",
    "profile",
    "plan",
    "charge",
    "train",
    "validate",
    "publish",
    "notify",
    "look up",
    "featurize",
    "expire",
)


def table() -> list[list[str]]:
    part = PAGE.read_text().partition("## The walk of a record")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def functions(path: Path) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inside = (one for one in node.body if isinstance(one, ast.FunctionDef))
            found |= {f"{node.name}.{one.name}" for one in inside}
    return found


@pytest.mark.parametrize("row", table(), ids=lambda row: row[1])
def test_every_step_is_where_the_table_says(row: list[str]) -> None:
    _, _, file, function, handed_on = row
    assert function in functions(ROOT / file)
    assert handed_on


def test_the_walk_is_whole_and_in_order() -> None:
    names = [row[1] for row in table()]
    assert [name for name in names if name in STEPS] == list(STEPS)


@pytest.mark.parametrize("who", ["producer", "engine", "reader"])
def test_no_call_leads_up_a_layer(who: str) -> None:
    """A producer's and a reader's calls go down step by step; the engine's cycle calls what lies in
    the engine or below.
    """
    ranks = []
    for caller, _, file, _, _ in table():
        if caller == who:
            part = part_of(file.removesuffix(".py").replace("/", "."))
            assert part is not None, file
            ranks.append(part[0])
    assert ranks
    if who == "engine":
        engine = part_of("ptkstore.engine.window.cycle")
        assert engine is not None
        assert max(ranks) <= engine[0]
    else:
        assert ranks == sorted(ranks, reverse=True)
