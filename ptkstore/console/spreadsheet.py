"""Tables as CSV files. A cell that a spreadsheet would take for a formula is made a text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from starlette.responses import Response

__all__ = ["csv_file"]

_FORMULA = re.compile(r"^[=+\-@\t\r]")
_NUMBER = re.compile(r"^-?[0-9.]+([eE][+-]?[0-9]+)?$")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """A download."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(one) for one in row] for row in rows)
    headers = {"content-disposition": f'attachment; filename="{_UNSAFE.sub("-", name)}.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.match(text) else text
