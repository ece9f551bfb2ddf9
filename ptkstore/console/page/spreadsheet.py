"""Tables as CSV files. A cell that a spreadsheet would take for a formula is made a text.

Names and reasons in them are the words of whoever called. Every cell is in quotation marks: where a
spreadsheet separates cells by semicolons, or by tabs, one that is not would end at the first of
these, and the next could be a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from starlette.responses import Response, StreamingResponse

from ptkstore.console.page.downloading import attachment

__all__ = ["csv_file", "csv_stream"]

_AT_ONCE = 500
# Also after spaces, which some programs take away, and the wide forms that some take for the narrow
# ones.
_FORMULA = re.compile(r"^\s*[=+\-@＝＋－＠]|^[\t\r\n]")
_NUMBER = re.compile(r"-?[0-9.]+([eE][+-]?[0-9]+)?")


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """A download."""
    text = _lines([columns, *([_cell(value) for value in row] for row in rows)])
    return Response(text, media_type="text/csv; charset=utf-8", headers=attachment(f"{name}.csv"))


def csv_stream(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """A download of many rows, sent as they come: they are never all in memory.

    ``rows`` may block.
    """

    def lines() -> Iterator[str]:
        source = iter(rows)
        yield _lines([columns])
        while some := [[_cell(value) for value in row] for row in islice(source, _AT_ONCE)]:
            yield _lines(some)

    return StreamingResponse(
        lines(), media_type="text/csv; charset=utf-8", headers=attachment(f"{name}.csv")
    )


def _lines(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
