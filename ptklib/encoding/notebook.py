"""Values as notebooks show them: small tables of HTML, everything in them escaped.

What is shown is what the value has: views, specifications and states are public or differentially
private already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["MOST_ROWS", "html_of", "html_rows"]

MOST_ROWS = 20
_MOST_TEXT = 300


def html_of(title: str, body: Mapping[str, Any], *more: str) -> str:
    """A value by its fields: lists of values below as tables; ``more`` is HTML that is shown
    last."""
    plain, tables = [], []
    for name, value in body.items():
        words = name.replace("_", " ")
        rows = value if isinstance(value, list | tuple) else ()
        if rows and all(isinstance(row, Mapping) for row in rows):
            tables.append(f"<p>{escape(words)}</p>" + html_rows(rows))
        elif value not in (None, "", (), [], {}):
            plain.append(f"<tr><th>{escape(words)}</th><td>{escape(_text(value))}</td></tr>")
    table = f"<table>{''.join(plain)}</table>" if plain else ""
    return (
        f"<div><p><strong>{escape(title)}</strong></p>{table}{''.join(tables)}{''.join(more)}</div>"
    )


def html_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows under the names of their fields; the first `MOST_ROWS`, and how many more there are."""
    names = list(dict.fromkeys(name for row in rows[:MOST_ROWS] for name in row))
    names = [name for name in names if any(row.get(name) is not None for row in rows[:MOST_ROWS])]
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(row.get(name)))}</td>' for name in names)}</tr>"
        for row in rows[:MOST_ROWS]
    )
    left = len(rows) - MOST_ROWS
    told = f"<p>and {left:,} more</p>" if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{told}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    plain = isinstance(value, str | int)
    text = str(value) if plain else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"
