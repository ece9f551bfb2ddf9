"""The house: layers, rooms and front doors, and that the checks of them can fail."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from devtools.layers.findings import circles, findings
from devtools.layers.imports import ROOT, Import, Module, modules, transactions
from devtools.layers.picture import draw
from devtools.layers.rules import LAYERS, ONLY, PRODUCT


def module(name: str, *imports: str) -> Module:
    path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
    return Module(name, path, None, tuple(Import(one, "", 1) for one in imports), ())


def test_every_rule_holds() -> None:
    assert findings() == []


def test_an_import_that_points_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devtools.layers.findings.LAYERS", tuple(reversed(LAYERS)))
    assert len(findings()) > 20


def test_a_room_that_is_too_full_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devtools.layers.findings.MOST_MODULES", 10)
    assert any("at most 10 fit into one package" in line for line in findings())


def test_a_circle_of_packages_is_found() -> None:
    known = [
        module("allocator.a.x", "allocator.b.y"),
        module("allocator.b.y", "allocator.c.z"),
        module("allocator.c.z"),
    ]
    assert list(circles({one.name: one for one in known})) == []
    known[2] = module("allocator.c.z", "allocator.a.x")
    assert list(circles({one.name: one for one in known})) == [
        "packages import each other in a circle: allocator.a, allocator.b, allocator.c"
    ]


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("with parts.metadata.read() as tx:\n    pass", (1,)),
        ("with self._metadata.write() as tx:\n    pass", (1,)),
        ("with opened() as one, one.write() as tx:\n    pass", (1,)),
        ("pass\nheld = metadata.read()", (2,)),
        ("stack.enter_context(store.parts.metadata.write())", (1,)),
        ("with metadata.write_results(head) as tx:\n    pass", (1,)),
        ("text = file.read()\npath.write(text)", ()),
    ],
)
def test_a_transaction_is_noticed(code: str, lines: tuple[int, ...]) -> None:
    assert transactions(ast.parse(code)) == lines


def test_only_the_engine_opens_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [line for line in findings() if "transaction" in line]
    monkeypatch.setattr("devtools.layers.findings.TRANSACTORS", ())
    broken = [line for line in findings() if "must not open a transaction" in line]
    assert len(broken) > 50
    assert all(line.startswith(("ptkstore/engine/", "ptkstore/metadata/")) for line in broken)


@pytest.mark.parametrize("part", sorted(ONLY))
def test_what_a_part_may_import_is_checked(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ONLY, part, ())
    assert any(f"{part} must not import" in line for line in findings())


def test_no_rule_names_a_module_inside_a_package() -> None:
    named = [member for parts in LAYERS for part in parts for member in part.members]
    inside = [name for name in named if name.count(".") > 1]
    assert inside == []
    assert [
        name
        for name in named
        if name not in modules() and not (ROOT / name.replace(".", "/")).is_dir()
    ] == []


def test_the_picture_of_the_house_is_up_to_date() -> None:
    kept = (ROOT / "docs/internals/architecture.svg").read_text(encoding="utf-8")
    assert kept == draw(), "python -m devtools.layers --svg docs/internals/architecture.svg"


@pytest.mark.parametrize("package", ["ptklib", "ptkstore"])
def test_a_front_door_gives_what_it_names(package: str) -> None:
    door = import_module(package)
    assert door.__all__ == sorted(door.__all__)
    assert set(door.__all__) <= set(dir(door))
    for name in door.__all__:
        given = getattr(door, name)
        assert given.__name__ == name
        assert name in import_module(given.__module__).__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        door.nothing  # noqa: B018


def test_a_submodule_never_hides_a_name_of_a_front_door() -> None:
    """After ``import ptklib.x`` the attribute ``x`` of ``ptklib`` is that module."""
    for package in ("ptklib", "ptkstore"):
        hidden = [
            name for name in import_module(package).__all__ if f"{package}.{name}" in modules()
        ]
        assert hidden == []


def test_what_the_docs_import_from_a_front_door_is_there() -> None:
    used: dict[str, set[str]] = {"ptklib": set(), "ptkstore": set()}
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for package, names in re.findall(
            r"^from (ptklib|ptkstore) import ([\w, ]+)$", Path(page).read_text(), re.M
        ):
            used[package] |= {name.strip() for name in names.split(",")}
    for package, names in used.items():
        assert names
        assert names <= set(import_module(package).__all__)


# Who may read texts with patterns, and which texts: never those of errors or plans.
_PATTERNS = {
    "ptklib.encoding.state_digest": "digests",
    "ptklib.export.files": "names of Python modules",
    "ptklib.privacy.amounts": "numbers as people write them",
    "ptkstore.api.columns": "names and types of columns",
    "ptkstore.api.over": "choices of windows as people write them",
    "ptkstore.api.references": "references to states and addresses",
    "ptkstore.api.stream_spec": "names of streams",
    "ptkstore.bus.protocol": "patterns of subjects",
    "ptkstore.cli.project.inferring": "names of columns and streams",
    "ptkstore.console.page.downloading": "names of files to download",
    "ptkstore.console.page.page": "addresses within the console",
    "ptkstore.console.page.spreadsheet": "cells that a spreadsheet would take for formulas",
    "ptkstore.console.sessions.settings": "the prefix of addresses",
    "ptkstore.console.sessions.sources": "headers of a proxy",
    "ptkstore.lake.protocol": "digests",
    "ptkstore.lake.s3.bucket": "the prefix of keys",
    "ptkstore.metadata.access.requests": "ids of requests",
    "ptkstore.metadata.catalogue.states": "digests",
    "ptkstore.rpc.feeds.endpoints": "endpoints of subscribers",
    "ptkstore.rpc.gate.dispatch": "names of RPCs",
    "ptkstore.rpc.gate.identity": "tokens",
    "ptkstore.rpc.gate.strangers": "addresses of peers",
    "ptkstore.settings": "addresses to listen at",
    "ptkstore.streams.progress.senders": "names of sessions",
}


def test_facts_are_not_read_back_from_sentences() -> None:
    """A module that takes up patterns says here what for; errors and plans have data for it."""
    product = ("ptklib.", "ptkstore.", "allocator.", "profiler.")
    using = {
        name
        for name, known in modules().items()
        if name.startswith(product) and any(other == "re" for other, _ in known.others)
    }
    assert using == set(_PATTERNS)


@pytest.mark.parametrize("package", ["ptklib", "ptkstore", "allocator", "profiler"])
def test_no_code_looks_into_a_message(package: str) -> None:
    looking = re.compile(
        r"\.message\.(?:startswith|endswith|split|partition|find|index|lower)|in \w+\.message\b"
        r"|(?:match|search|fullmatch|findall|sub)\([^()]*\.message"
    )
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / package).rglob("*.py")
        if looking.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


# The protocol of every store, and the class that gives one of them: the same thing to a caller.
SAME_THING = {"Store"}


def namesakes(sources: dict[str, str]) -> dict[str, list[str]]:
    """Public classes of one name in several modules."""
    homes: dict[str, list[str]] = {}
    for name, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    return {name: where for name, where in homes.items() if len(where) > 1}


def test_a_public_class_has_a_name_of_its_own() -> None:
    product = {
        name: known.path.read_text(encoding="utf-8")
        for name, known in modules().items()
        if name.partition(".")[0] in PRODUCT and ".v1." not in name
    }
    assert len(product) > 300
    assert set(namesakes(product)) == SAME_THING


def test_a_namesake_is_found() -> None:
    sources = {"a": "class Plan: ...\nclass _Own: ...", "b": "class Plan: ...\nclass _Own: ..."}
    assert namesakes(sources) == {"Plan": ["a", "b"]}


# Words that stand for anything: a binding says what it is.
ANYTHING = {"one", "found"}
# How many PTKs a search found is ``found`` on the wire, and so in those who hand it on.
SEARCHES = {
    "ptkstore.api.views.ptks",
    "ptkstore.console.page.listing",
    "ptkstore.engine.catalogue.ptks",
}


def unnamed(source: str) -> list[tuple[int, str]]:
    """Lines of variables, parameters, fields and imports that are called one of `ANYTHING`."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.alias(asname=name)
                | ast.ExceptHandler(name=name)
                | ast.MatchAs(name=name)
                | ast.MatchStar(name=name)
                | ast.MatchMapping(rest=name)
            ) if name in ANYTHING:
                lines.append((node.lineno, name))
    return sorted(lines)


def test_a_binding_says_what_it_is() -> None:
    left = [
        f"{name}:{line} {word}"
        for name, known in modules().items()
        if name.partition(".")[0] in PRODUCT and ".v1." not in name
        for line, word in unnamed(known.path.read_text(encoding="utf-8"))
        if name not in SEARCHES or word != "found"
    ]
    assert left == []


@pytest.mark.parametrize(
    "code",
    [
        "one = 1",
        "found: int",
        "def f(one): pass",
        "f = lambda *, found: found",
        "def f(*one): pass",
        "a = [one for one in b]",
        "for a, (b, *found) in c: pass",
        "if (found := f()): pass",
        "with f() as one: pass",
        "self.found = {}",
        "import a as one",
        "try: pass\nexcept E as found: pass",
        "match a:\n    case [one, *_]: pass",
        "match a:\n    case [*found]: pass",
        "match a:\n    case {**found}: pass",
    ],
)
def test_a_binding_that_stands_for_anything_is_found(code: str) -> None:
    assert len(unnamed(code)) == 1


@pytest.mark.parametrize("code", ["a.one()", "f(found=1)", "'one'", "one_more = found_there = 1"])
def test_what_is_no_binding_is_left_alone(code: str) -> None:
    assert unnamed(code) == []
