"""A draft of a stream as sage.yaml, with a comment wherever somebody must think.

What comes from values of the file carries the mark ``LOOKED AT``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

from ptkstore.cli.project.inferring import ColumnDraft, StreamDraft

__all__ = ["MARK", "looked_at", "project_text"]

MARK = "LOOKED AT"
_HEAD = f"""\
# A draft from a file. `sage apply` makes a store of it; a stream that has records never changes.
#
# Lines marked {MARK} were proposed by looking at the values of the file. Replace what they say by what
# you knew before you looked: the range of a form, a speed limit, the list of places on a map. Bounds
# and domains are public, and everybody who sees a state sees them: the largest value of a file is
# somebody's value, and a place with one visitor names the visitor. Where the proposal is what you
# would have said anyway, keep it and delete the mark.
"""


def looked_at(draft: StreamDraft) -> list[str]:
    """What of a draft comes from values, such as ``fare: lower, upper``."""
    return [
        f"{column.name}: {', '.join(column.looked)}" for column in draft.columns if column.looked
    ]


def project_text(draft: StreamDraft, *, with_ptks: bool) -> str:
    """The text of sage.yaml."""
    lines = [
        _HEAD,
        "streams:",
        f"  - name: {draft.name}",
        f"    time_column: {draft.time_column}",
        "    # All that ever leaves the stream about one record is (1, 1e-6)-differentially private together.",
        '    policy: {unit: event, epsilon: 1, delta: "1e-6"}',
        f"    window_seconds: {draft.window_days * 86_400} # {_days(draft.window_days)}: PTKs train, then the "
        f"raw data is destroyed. {MARK}: by how many rows the file has",
        f"    block_seconds: {86_400}",
        "    out_of_bounds: clip # beyond its bounds: the nearest bound; outside its domain: the first "
        "value. refuse: left out",
        "    columns:",
        *(line for column in draft.columns for line in _column_lines(column)),
    ]
    lines += [f"      # not taken: {json.dumps(name)}, {why}" for name, why in draft.skipped]
    if with_ptks:
        lines += ["", *_ptks(draft)]
    return "\n".join(lines) + "\n"


def _days(count: int) -> str:
    return "a day" if count == 1 else f"{count} days"


def _column_lines(column: ColumnDraft) -> Iterator[str]:
    parts = [f"name: {_scalar(column.name)}", f"type: {_scalar(column.type)}"]
    parts += [
        f"{name}: {_scalar(value)}"
        for name, value in (("lower", column.lower), ("upper", column.upper))
        if value is not None
    ]
    if column.domain is not None:
        parts.append(f"domain: [{', '.join(map(_scalar, column.domain))}]")
    if column.nullable:
        parts.append("nullable: true")
    if column.looked:
        yield f"      # {MARK}: {', '.join(column.looked)} of {column.name}. What did you know before?"
    yield f"      - {{{', '.join(parts)}}}"


def _scalar(value: Any) -> str:
    """As YAML reads it back: texts in quotes."""
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _ptks(draft: StreamDraft) -> Iterator[str]:
    values = [column for column in draft.columns if column.is_number and not column.is_key] or [
        column for column in draft.columns if column.is_number
    ]
    keys = [column for column in draft.columns if column.is_key and column not in values[:1]]
    part = "weekday" if draft.of_days else "hour"
    yield "# Two to begin with. Kinds: sage ptk kinds. Keys, domains and bounds come from the columns above."
    yield "ptks:"
    told = [(keys[0].name, keys[0].name)] if keys else []
    for name, key in [*told, (part, f"{part}({draft.time_column})")]:
        value = values[0].name if values else ""
        yield f"  - name: {_ptk_name(f'{value or draft.name}-by-{name}')}"
        yield f"    stream: {draft.name}"
        yield "    kind: statistics"
        yield "    target: 0.1 # of the range of the bounds, with 95% probability; smaller costs more"
        measured = "mean, count" if value else "count"
        column = f", value: {_scalar(value)}" if value else ""
        yield f"    config: {{keys: [{_scalar(key)}], statistics: [{measured}]{column}}}"


def _ptk_name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in text)
