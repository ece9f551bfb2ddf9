"""How commands speak: tables and lines for people, JSON for programs.

On a pipe a row is one line and nothing is coloured.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from ptklib.errors import InvalidInput, SageError
from ptkstore.api.moments import DAY_MS, day_text, utc_text

if TYPE_CHECKING:
    from ptkstore.api.views.remedies import Remedy
    from ptkstore.cli.session import Invocation

__all__ = [
    "RegistrationAnswer",
    "Table",
    "moment",
    "plain",
    "print_error",
    "rejection",
    "show",
    "window_begins",
    "write_bytes",
    "write_text",
]

# Words that are coloured on a terminal.
_GOOD = [
    "ACTIVE",
    "CREATED",
    "DONE",
    "FEASIBLE",
    "HOLDS",
    "OK",
    "OPTIMAL",
    "PUBLISHED",
    "REGISTERED",
    "UNCHANGED",
    "UPDATED",
]
_BAD = [
    "ERROR",
    "EXCEEDS",
    "FAILED",
    "INFEASIBLE",
    "NOT_PROFILED",
    "REJECTED",
    "SHORT",
    "SKIPPED",
    "TRAIN_FAILED",
    "TRAIN_LOST",
]
_FAIR = ["KEPT", "RETIRED", "WARNING", "WEAK"]
_STYLES = {
    **dict.fromkeys(_GOOD, "green"),
    **dict.fromkeys(_BAD, "bold red"),
    **dict.fromkeys(_FAIR, "yellow"),
}


class RegistrationAnswer(Protocol):
    """What `rejection` needs of a `Registration` and its like."""

    @property
    def name(self) -> str:
        """Of the PTK."""

    @property
    def status(self) -> str:
        """REJECTED or SKIPPED."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def nearest_target(self) -> float | None:
        """What would be accepted."""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What else would help."""

    @property
    def refining(self) -> bool:
        """The best answer so far."""


@dataclass(frozen=True)
class Table:
    """Rows under headings. None is shown as ``-``; numbers stand to the right."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]

    def texts(self) -> list[list[str]]:
        """The cells as text, without the headings."""
        return [[_cell(value) for value in row] for row in self.rows]

    def is_number(self, place: int) -> bool:
        """True when the column holds numbers only."""
        values = [row[place] for row in self.rows if row[place] is not None]
        return bool(values) and all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in values
        )


def show(session: Invocation, body: object, *parts: Table | str) -> None:
    """Print ``body`` under ``--json``, else the parts. Empty tables and texts are left out."""
    if session.as_json:
        click.echo(json.dumps(plain(body), indent=2, ensure_ascii=False, allow_nan=False))
        return
    for part in parts:
        if isinstance(part, str):
            if part:
                click.echo(part)
        elif not part.rows:
            continue
        elif sys.stdout.isatty():
            _print_rich(part)
        else:
            _print_aligned(part)


def print_error(error: SageError, *, as_json: bool) -> None:
    """One line on stderr, or one JSON object with reason, message and details."""
    if as_json:
        body = {"reason": error.reason, "message": error.message, "details": plain(error.details)}
        click.echo(json.dumps(body, ensure_ascii=False, allow_nan=False, default=str), err=True)
    else:
        click.echo(f"{error.message} [{error.reason}]", err=True)


def plain(body: Any) -> Any:
    """Values as JSON knows them: views and specifications by their ``as_json``, numbers that are
    not finite as null.
    """
    if hasattr(body, "as_json"):
        return plain(body.as_json())
    if isinstance(body, Mapping):
        return {str(name): plain(value) for name, value in body.items()}
    if isinstance(body, list | tuple | set | frozenset):
        return [plain(value) for value in body]
    if isinstance(body, float) and not math.isfinite(body):
        return None
    return body if body is None or isinstance(body, str | int | float) else str(body)


def rejection(answer: RegistrationAnswer) -> str:
    """Why, and what would be accepted, for people."""
    lines = [f"{answer.name} {answer.status}: {answer.reason}"]
    if answer.nearest_target is not None:
        lines.append(f"  nearest feasible target: {answer.nearest_target:g}")
    if answer.refining:
        lines.append(
            "  this is the best answer so far: the store is still looking (`sage ptk describe` shows what it finds)"
        )
    return "\n".join([*lines, *(f"  or: {remedy.text}" for remedy in answer.remedies)])


def moment(ms: int | None) -> str | None:
    """A time in UTC for people, to the second."""
    return None if ms is None else utc_text(ms, "second") + "Z"


def window_begins(window: int, window_seconds: int) -> str:
    """When a window begins, for people: its number counts windows since 1970."""
    begins_ms = window * window_seconds * 1000
    return day_text(begins_ms, "second") + ("" if begins_ms % DAY_MS == 0 else "Z")


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())


def _print_aligned(table: Table) -> None:
    lines = [list(table.columns), *table.texts()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [table.is_number(place) for place in range(len(widths))]
    for line in lines:
        cells = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, right, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def _print_rich(table: Table) -> None:
    """On a terminal: names stay whole, whatever its width. Columns of nothing are left out; those
    that do not fit beside the others stand below their row, by their headings.
    """
    import rich.console
    import rich.padding
    import rich.text

    console = rich.console.Console(highlight=False)
    texts = table.texts()
    lines = [list(table.columns), *texts]
    kept = [place for place in range(len(lines[0])) if any(row[place] != "-" for row in texts)]
    widths = {place: max(len(line[place]) for line in lines) for place in kept}
    beside = _beside(kept, widths, console.width)
    for number, line in enumerate(lines):
        row = rich.text.Text(style="bold" if number == 0 else "")
        for place in beside:
            fill = " " * (widths[place] - len(line[place]))
            right = table.is_number(place)
            style = _STYLES.get(line[place], "")
            row.append(fill * right).append(line[place], style).append(fill * (not right) + "  ")
        row.rstrip()
        console.print(row, soft_wrap=len(beside) > 1)
        for place in kept[len(beside) :] if number else ():
            if line[place] != "-":
                told = rich.text.Text(f"{lines[0][place]}: ", "dim").append(
                    line[place], f"not dim {_STYLES.get(line[place], '')}".strip()
                )
                console.print(rich.padding.Padding(told, (0, 0, 0, 4)))


def _beside(kept: Sequence[int], widths: Mapping[int, int], most: int) -> Sequence[int]:
    """As many columns from the left as fit on a line; the first in any case."""
    room, many = most, 0
    while many < len(kept) and widths[kept[many]] <= room:
        room -= widths[kept[many]] + 2
        many += 1
    return kept[: max(many, 1)]


def write_text(path: str, text: str) -> None:
    """Put a text into a file. Reason: FILE_UNWRITABLE."""
    write_bytes(path, text.encode())


def write_bytes(path: str, data: bytes) -> None:
    """Put bytes into a file. Reason: FILE_UNWRITABLE."""
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise InvalidInput("FILE_UNWRITABLE", f"{path}: {error.strerror}", file=path) from None
