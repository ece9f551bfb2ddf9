"""Records that a stream refuses one by one: what the producer who sent them is told, and nobody
else.

A record with a null where there must be none, or with a value beyond its bounds where the stream
refuses those, is left out by itself; the rest of its batch is taken. So no record decides over
another one. The producer is told how many of its own records were left out, for which column and
where the first of them is: it depends on that batch alone. A record that is wrong in several
columns counts for the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptklib.errors import Refused

__all__ = ["RefusedRecords", "RefusedTally"]


class RefusedRecords(NamedTuple):
    """``records`` of a batch were left out for one reason; ``first_row`` is the place of the first
    in the batch, from 0.
    """

    column: str
    reason: str
    records: int
    first_row: int


class RefusedTally:
    """What was left out of a frame that was sent in several batches, in their order."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._found: dict[tuple[str, str], RefusedRecords] = {}

    def add(self, refused: Iterable[RefusedRecords], first_row: int) -> None:
        """Of a batch that begins at ``first_row`` of the frame."""
        for refused_records in refused:
            before = self._found.get((refused_records.column, refused_records.reason))
            here = refused_records._replace(first_row=refused_records.first_row + first_row)
            self._found[refused_records.column, refused_records.reason] = (
                here
                if before is None
                else before._replace(records=before.records + refused_records.records)
            )

    def check(self) -> None:
        """Tell who pushed the frame.

        Refused: RECORDS_REFUSED; all other records are durable by then.
        """
        if not self._found:
            return
        refusals = sorted(self._found.values(), key=lambda refusal: refusal.first_row)
        told = "; ".join(
            f"{refusal.records} for column {refusal.column!r} ({refusal.reason}), the first in row "
            f"{refusal.first_row}"
            for refusal in refusals
        )
        raise Refused(
            "RECORDS_REFUSED",
            f"{sum(refusal.records for refusal in refusals)} records were refused and are not in "
            f"the stream: {told}. All others of the "
            "push are durable: mend the refused ones and push them by themselves",
            refused=[refused_records._asdict() for refused_records in refusals],
        )
