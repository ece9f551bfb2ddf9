"""Spans: which block a moment belongs to, and what it is called. Public arithmetic, no data.

Event level: ``2026-01-01T00:00Z`` is the block of the span that starts then. User level:
``users-2026-01-01T00:00Z`` is the cohort first seen in that span. ``quarantine-…`` holds late
records that arrived while that span was the oldest open one; it is no block: it is never sealed
into the ledger and nothing reads it. Reason: BLOCK_UNKNOWN.
"""

from __future__ import annotations

from ptkstore.api.moments import iso, millis
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.streams.faults import BlockRefused

__all__ = ["QUARANTINE", "Spans"]

QUARANTINE = "quarantine-"


class Spans:
    """The numbered spans of one stream: number k is ``[k, k + 1) * span_ms`` since 1970."""

    def __init__(self, spec: StreamSpec) -> None:
        """Take the length, the first span and the prefix of names from the specification."""
        self.span_ms = spec.span_ms
        self.first = spec.begins_ms // spec.span_ms
        self._prefix = "users-" if spec.unit == "user" else ""

    def name(self, number: int) -> str:
        """The block of span ``number``."""
        return self._prefix + iso(number * self.span_ms)

    def quarantine(self, number: int) -> str:
        """Where late records go while span ``number`` is the oldest open one."""
        return QUARANTINE + iso(number * self.span_ms)

    def number(self, name: str) -> int:
        """The span of a block or quarantine name; refuses every other text."""
        try:
            number = (
                millis(name.removeprefix(QUARANTINE).removeprefix(self._prefix)) // self.span_ms
            )
        except ValueError:
            number = self.first - 1
        if number < self.first or name not in (self.name(number), self.quarantine(number)):
            raise BlockRefused(
                "BLOCK_UNKNOWN", f"the stream has no block {name!r:.60}", block=name[:60]
            )
        return number

    def block_number(self, name: str) -> int:
        """`number`, and quarantine is unknown too."""
        number = self.number(name)
        if name.startswith(QUARANTINE):
            raise BlockRefused(
                "BLOCK_UNKNOWN", f"the stream has no block {name!r:.60}", block=name[:60]
            )
        return number
