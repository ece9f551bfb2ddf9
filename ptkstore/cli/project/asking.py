"""From files and what somebody knows of them to the draft of a stream; on a terminal the rest is asked.

Reasons: FILE_UNREADABLE, VALUE_INVALID, and those of drafts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptklib.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from ptkstore.cli.project.inferring import ColumnDraft, StreamDraft

__all__ = ["drafted"]


def drafted(
    files: Sequence[str],
    *,
    name: str,
    time_column: str,
    bounds: Sequence[str],
    domains: Sequence[str],
) -> StreamDraft:
    """The draft, after the questions where there is somebody to ask."""
    from ptkstore.cli.project.inferring import Told, infer

    told = Told(
        time_column=time_column,
        bounds=dict(_bounds(text) for text in bounds),
        domains=dict(_domain(text) for text in domains),
    )
    paths = _paths(files)
    draft = infer(_table(paths), name or paths[0].stem, told)
    if sys.stdin.isatty() and sys.stderr.isatty():
        click.echo(
            "Bounds and domains are public, so they must not come from the data: say what you knew "
            "before.\nEnter takes the proposal, which was made by looking, and stays marked.",
            err=True,
        )
        draft = replace(draft, columns=tuple(map(_asked, draft.columns)))
    return draft


def _asked(column: ColumnDraft) -> ColumnDraft:
    for field in ("lower", "upper"):
        proposal = getattr(column, field)
        if field in column.looked and isinstance(proposal, int | float):
            given = click.prompt(
                f"{column.name}: public {field} bound", default=proposal, type=float, err=True
            )
            if given != proposal:
                whole = given.is_integer() and column.type.startswith(("int", "uint"))
                left = tuple(looked for looked in column.looked if looked != field)
                change: dict[str, Any] = {field: int(given) if whole else given, "looked": left}
                column = replace(column, **change)
    return column


def _paths(files: Sequence[str]) -> list[Path]:
    paths = [
        Path(path)
        for file in files
        for path in (sorted(glob(file)) if not Path(file).exists() else [file])
    ]
    if not paths:
        raise InvalidInput(
            "FILE_UNREADABLE", f"there is no file {', '.join(files)}", file=", ".join(files)
        )
    return paths


def _table(paths: Sequence[Path]) -> pa.Table:
    import pyarrow as pa

    from ptkstore.cli.files import read_table

    tables = [read_table(path) for path in paths]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        raise InvalidInput(
            "FILE_UNREADABLE", "the files must have the same columns with the same types"
        ) from None


def _bounds(text: str) -> tuple[str, tuple[Any, Any]]:
    column, equals, both = text.partition("=")
    lower, colon, upper = both.partition(":")
    if not (column and equals and colon):
        raise InvalidInput("VALUE_INVALID", f"--bounds must be COLUMN=LOW:HIGH, got {text!r:.60}")
    return column, (_value(lower), _value(upper))


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    from datetime import date

    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidInput(
            "VALUE_INVALID",
            f"a bound must be a number or a day such as 2026-01-31, got {text!r:.60}",
        ) from None


def _domain(text: str) -> tuple[str, Sequence[str]]:
    column, equals, values = text.partition("=")
    if not (column and equals and values):
        raise InvalidInput("VALUE_INVALID", f"--domain must be COLUMN=A,B,C, got {text!r:.60}")
    return column, [value.strip() for value in values.split(",")]
