"""Every ``sage ...`` that docs, templates, the console's pages and errors name is a command that
there is, with the options that it has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ptkstore.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("ptkstore/templates/**/*"),
    *ROOT.glob("ptkstore/console/templates/*"),
    *ROOT.glob("deploy/**/*.y*ml"),
]
SOURCES = [
    path
    for part in ("ptkstore", "ptklib", "profiler", "allocator", "examples")
    for path in ROOT.glob(f"{part}/**/*.py")
    if "/v1/" not in str(path)
]
FIRST = "|".join(main.list_commands(click.Context(main)))
# In code marks, in quotes, or at the beginning of a line or of a command after another.
NAMED = re.compile(
    r"(?:`|\"|'|<code>|^\s*(?:\$ )?|&& |\n\s*)"
    r"(sage (?:--[a-z]+ ?|[a-z][a-z-]*\b)[^`\"'<\n]*)",
    re.MULTILINE,
)
# Sentences about Sage that begin a line.
PROSE = re.compile(rf"sage (?!(?:{FIRST})\b|--)")


def fault_of(text: str) -> str:
    """Why this is no command; empty if it is."""
    words = re.sub(r"[\[\]()]|\\\|", " ", text.split("  ")[0]).split()[1:]
    command: click.Command = main
    while isinstance(command, click.Group) and words:
        head = words[0].rstrip(",.:;&")
        # Two or three of a group, as in `sage backup|restore`.
        if not re.fullmatch(r"[a-z][a-z-]*", head):
            break
        known = command.get_command(click.Context(command), head)
        if known is None:
            if command is main or not command.invoke_without_command:
                return f"{text!r}: there is no {head!r}"
            break
        command, words = known, words[1:]
    options = {name for parameter in command.params for name in parameter.opts}
    for word in words:
        if re.match(r"&&|\||;|>", word):
            break
        name = re.match(r"--?[a-zA-Z][a-z-]*", word)
        if name and name[0] not in {*options, "--help", "-h"}:
            return f"{text!r}: there is no option {name[0]}"
    return ""


def texts_of(path: Path) -> Iterator[str]:
    """What people are told by a file: all of a page, the texts of a source."""
    if path.suffix != ".py":
        yield path.read_text(encoding="utf-8")
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named_in(path: Path) -> list[str]:
    return [
        text
        for whole in texts_of(path)
        for text in NAMED.findall(whole)
        if not PROSE.match(text) or f"`{text}" in whole or f'"{text}"' in whole
    ]


WHERE = [path for path in [*PAGES, *SOURCES] if path.is_file()]
# Domains of digests, which are texts of the same form.
NO_COMMANDS = re.compile(r"sage [a-z ]+ v\d")


def test_every_command_that_is_named_is_there() -> None:
    named = [
        (path.relative_to(ROOT), text)
        for path in WHERE
        for text in named_in(path)
        if not NO_COMMANDS.match(text)
    ]
    assert len(named) > 250
    assert len({path for path, _ in named}) > 40
    assert [f"{path}: {fault_of(text)}" for path, text in named if fault_of(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "sage register",
        "sage ptk lust",
        "sage run --untill now",
        "sage budget rides",
        "sage --verson",
    ],
)
def test_a_command_that_is_not_there_is_noticed(text: str) -> None:
    assert fault_of(text)
    assert NAMED.findall(f"type `{text}` now") == [text]


@pytest.mark.parametrize("text", ["sage events", "sage run --until now", "sage --version"])
def test_a_command_that_is_there_is_none(text: str) -> None:
    assert fault_of(text) == ""
