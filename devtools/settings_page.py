"""``docs/reference/settings.md``, made from the classes of the settings and nothing else.

``python -m devtools.settings_page --write`` writes it; a test holds page and classes equal. What a
setting is for is in the comment above its field, or in the docstring of its section where one
sentence is about several.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import annotated_types
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from ptkstore.console.sessions.settings import ConsoleSettings
from ptkstore.settings import DECLARATIONS, PREFIX, Settings

__all__ = ["PAGE", "Setting", "all_settings", "page"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/settings.md"

_INTRO = f"""# Settings

One file, `sage.yaml`, has the sections below. `sage serve` reads it, and so do the commands that must
know where a server's parts are, such as `backup`, `token` and `health`. A variable goes before the file:
`{PREFIX}SERVER__ADDRESS` is `server.address`, with two underscores for each dot. Unknown keys are errors,
with the nearest that exists; messages name keys and never repeat values. The sections
{" and ".join(f"`{key}`" for key in DECLARATIONS)} of the same file are what [`sage apply`](cli.md) declares. With
no settings at all a store is a directory and the server listens on loopback.

This page is made from `ptkstore/settings.py` and `ptkstore/console/sessions/settings.py` by
`python -m devtools.settings_page --write`.
"""
_CONSOLE = """
`sage ui` sets `hosts`, `root_path` and `trust_proxy` from its [options](cli.md); the others are for whoever
serves the console from an application of their own (`ptkstore.console.app.make_app`).
"""
_NAMES: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Path: "file",
    SecretStr: "text, secret",
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """A row: the key with dots, what it takes, what it is if left out, and what it is for."""

    key: str
    takes: str
    default: str
    words: str

    def row(self) -> str:
        """As a line of a table."""
        return f"| `{self.key}` | {self.takes} | {self.default} | {self.words} |"


def all_settings() -> dict[str, tuple[str, list[Setting]]]:
    """For each section of sage.yaml, and for the console, its docstring and its settings."""
    sections = {}
    for name, field in Settings.model_fields.items():
        section = field.annotation
        assert isinstance(section, type)
        sections[name] = _doc(section), list(_of_model(section, name))
    sections["The console"] = _doc(ConsoleSettings), list(_of_dataclass(ConsoleSettings))
    return sections


def page() -> str:
    """The whole page."""
    parts = [_INTRO]
    for name, (doc, settings) in all_settings().items():
        extra = _CONSOLE if name not in Settings.model_fields else ""
        table = "\n".join(
            [
                "| key | takes | if left out | what for |",
                "|---|---|---|---|",
                *(setting.row() for setting in settings),
            ]
        )
        parts.append(f"## {name}\n{doc}\n{extra}\n{table}\n")
    return "\n".join(parts)


def _of_model(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    words = _comments(model)
    for name, field in model.model_fields.items():
        key = f"{prefix}.{name}"
        section, by_name = _section_of(field.annotation)
        default = (
            "required"
            if field.is_required()
            else _shown(field.get_default(call_default_factory=True))
        )
        if section is None:
            yield Setting(
                key, _takes(field.annotation) + _limits(field), default, words.get(name, "")
            )
            continue
        inner = f"{key}.NAME" if by_name else key
        told = f"{words.get(name, '')} {_doc(section)}".strip().replace("\n", " ")
        yield Setting(inner, "a section", default, told)
        yield from _of_model(section, inner)


def _of_dataclass(kind: type) -> Iterator[Setting]:
    words, hints = _comments(kind), typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        yield Setting(
            field.name, _takes(hints[field.name]), _shown(field.default), words.get(field.name, "")
        )


def _section_of(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The section that a field is, and whether there are several by name."""
    for kind in (annotation, *typing.get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind, typing.get_origin(annotation) is dict
    return None, False


def _takes(annotation: Any) -> str:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        (annotation,) = (member for member in inner if member is not type(None))
        return _takes(annotation)
    if origin is tuple:
        return f"list of {_takes(inner[0])}"
    if origin is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in inner)
    return _NAMES[annotation]


def _limits(field: FieldInfo) -> str:
    told = []
    for limit in field.metadata:
        if isinstance(limit, annotated_types.Ge):
            told.append(f"at least {limit.ge}")
        elif isinstance(limit, annotated_types.Le):
            told.append(f"at most {limit.le}")
        elif isinstance(limit, annotated_types.MinLen):
            told.append(f"at least {limit.min_length} of them")
        else:
            raise TypeError(f"a limit that the page has no words for: {limit}")
    return "".join(f", {limit}" for limit in told)


def _shown(value: Any) -> str:
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, BaseModel):
        return "as below"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _doc(kind: type) -> str:
    return (inspect.getdoc(kind) or "").replace("``", "`")


def _comments(kind: type) -> dict[str, str]:
    """The comment above each field of a class."""
    source = textwrap.dedent(inspect.getsource(kind))
    lines, (tree,) = source.splitlines(), ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    comments = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = node.lineno - 2
            told: list[str] = []
            while lines[above].strip().startswith("#"):
                told.insert(0, lines[above].strip().lstrip("# "))
                above -= 1
            comments[node.target.id] = " ".join(told)
    return comments


def main() -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools.settings_page", description="the page of the settings"
    )
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
