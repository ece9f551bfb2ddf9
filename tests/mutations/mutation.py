"""One mistake, and whether it can still be made: code moves, and a mutation that no longer fits
tests nothing.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["Mutation", "misfits", "within"]


@dataclass(frozen=True)
class Mutation:
    """One mistake:

    ``old`` becomes ``new`` in ``path``, and ``test``, as pytest names it, must fail.
    """

    name: str
    path: str
    old: str
    new: str
    test: str

    def applied(self, text: str) -> str:
        """The file's text with the mistake."""
        return self.pattern.sub(lambda _: self.new, text)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """``old``, wherever lines are broken: how code is laid out is the formatter's choice."""
        pieces: list[str] = []
        for piece in re.findall(r"\s+|\w+|[^\w\s]", self.old):
            if piece.isspace():
                # A new line is the end of a statement, and what a text begins with its place in it.
                exact = "\n" in piece or not pieces
                pieces.append(re.escape(piece) if exact else r"\s+")
            elif piece in ")]}":
                pieces.append(r"(?:\s*,)?\s*" + re.escape(piece))
            elif piece in "([{":
                pieces.append(re.escape(piece) + r"\s*")
            else:
                pieces.append(re.escape(piece))
        return re.compile("".join(pieces).replace(r"\s*\s+", r"\s*"))


def within(path: str, tests: str, *rows: tuple[str, str, str, str]) -> list[Mutation]:
    """Mistakes in one file that tests of one file notice: rows of name, old, new and the test."""
    return [Mutation(name, path, old, new, f"{tests}::{test}") for name, old, new, test in rows]


def misfits(root: Path, mutations: Sequence[Mutation]) -> list[str]:
    """What is wrong with the table itself, in words; seconds, where running it takes minutes."""
    names = Counter(one.name for one in mutations)
    return [
        *(f"{name}: there are {count} of this name" for name, count in names.items() if count > 1),
        *(f"{one.name}: {fault}" for one in mutations for fault in _faults(root, one)),
    ]


def _faults(root: Path, mutation: Mutation) -> Iterable[str]:
    text = (root / mutation.path).read_text(encoding="utf-8")
    found = len(mutation.pattern.findall(text))
    if found != 1:
        yield f"the old text is found {found} times in {mutation.path}"
        return
    try:
        changed = ast.dump(ast.parse(mutation.applied(text)))
    except SyntaxError:
        yield f"{mutation.path} would be no Python"
        return
    if changed == ast.dump(ast.parse(text)):
        yield "nothing would change"
    file, _, test = mutation.test.partition("::")
    name = test.rpartition("::")[2].partition("[")[0]
    # A class may inherit its tests from a suite in another file: whether those are there, pytest
    # says.
    if "::" not in test and f"def {name}(" not in (root / file).read_text(encoding="utf-8"):
        yield f"there is no test {mutation.test}"
