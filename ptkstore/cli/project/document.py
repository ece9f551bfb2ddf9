"""A YAML file whose values know their lines, so that an error can say where to look.

The safe subset only: plain values, no tags that make objects. A key that is given twice is an
error, as YAML itself says and most readers forget. JSON is YAML, and works too. Reasons:
FILE_UNREADABLE, PROJECT_UNREADABLE, PROJECT_KEY_UNKNOWN.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ptklib.errors import InvalidInput
from ptkstore.cli.project.faults import Faults

__all__ = ["MAX_VALUES", "Document", "Place"]

# More is no configuration: an alias that multiplies itself, or the wrong file.
MAX_VALUES = 200_000
_MAX_DEPTH = 40

# Keys and positions that lead to a value: ("streams", 0, "columns", 2, "upper").
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """The values of a file as plain Python, and the line of every place in it."""

    name: str
    body: Any
    lines: Mapping[Place, int]

    @classmethod
    def read(cls, path: str | Path) -> Document:
        """Read a file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(
                "FILE_UNREADABLE", f"{path} is not UTF-8 text", file=str(path)
            ) from None
        except OSError as error:
            raise InvalidInput(
                "FILE_UNREADABLE", f"{path}: {error.strerror}", file=str(path)
            ) from None
        return cls.parse(text, name=str(path))

    @classmethod
    def parse(cls, text: str, *, name: str) -> Document:
        """Read a text; ``name`` is what errors call it."""
        lines: dict[Place, int] = {}
        try:
            # The safe loader makes nodes and plain values only.
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            body = None if node is None else _value(loader, node, (), lines)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{name} line {mark.line + 1}" if mark else name
            raise _unreadable(where, error.problem or "it is not YAML") from None
        except RecursionError:
            raise _unreadable(name, "too deep for a configuration") from None
        except (yaml.YAMLError, ValueError):
            raise _unreadable(name, "it is not YAML") from None
        return cls(name, body, lines)

    def where(self, place: Place = ()) -> str:
        """``sage.yaml line 12`` for the nearest place that has a line."""
        return f"{self.name} line {self.line(place)}"

    def line(self, place: Place) -> int:
        """The line of the place, or of what it would be in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def at(self, place: Place) -> Any:
        """The value there."""
        value = self.body
        for key in place:
            value = value[key]
        return value

    def only(self, place: Place, known: Iterable[str], what: str, faults: Faults) -> bool:
        """True where all keys at ``place`` are known; each that is not is a fault."""
        allowed, all_known = list(known), True
        for key in self.at(place):
            if key in allowed:
                continue
            all_known = False
            near = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(allowed))}"
            with faults.kept():
                raise InvalidInput(
                    "PROJECT_KEY_UNKNOWN",
                    f"{self.where((*place, key))}: {what} has no {key!r:.60}; {hint}",
                    file=self.name,
                    line=self.line((*place, key)),
                    key=str(key)[:60],
                )
        return all_known


def _value(loader: yaml.SafeLoader, node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
    """The plain value of a node; notes the lines of all that is in it."""
    lines.setdefault(place, node.start_mark.line + 1)
    if len(place) > _MAX_DEPTH or len(lines) > MAX_VALUES:
        raise yaml.MarkedYAMLError(
            problem="too deep or too long for a configuration", problem_mark=node.start_mark
        )
    if isinstance(node, yaml.SequenceNode):
        return [
            _value(loader, item_node, (*place, number), lines)
            for number, item_node in enumerate(node.value)
        ]
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node)
    value: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node) if isinstance(key_node, yaml.ScalarNode) else None
        if not isinstance(key, str) or key in value:
            twice = f"the key {key!r:.60} is given twice" if key in value else "a key must be text"
            raise yaml.MarkedYAMLError(problem=twice, problem_mark=key_node.start_mark)
        lines[(*place, key)] = key_node.start_mark.line + 1
        value[key] = _value(loader, value_node, (*place, key), lines)
    return value


def _unreadable(where: str, problem: str) -> InvalidInput:
    return InvalidInput("PROJECT_UNREADABLE", f"{where}: {problem}", where=where)
