"""Reach: how far apart and how far ahead the event times of one batch may lie.

Every block that is open costs files and keys, so there is a limit to those that a batch and a
stream can open. It is judged from the batch's own event times, the specification and the watermark,
which is public. Neither who was seen before nor which blocks exist has a say: a refusal is an
answer, and those are data. It is judged before anything is routed or changed.

- A batch may have event times of `MAX_BLOCKS` blocks; what is late counts as one. Refused:
  BATCH_TOO_WIDE.
- An event time must lie within ``horizon_blocks`` of the oldest open block, so a stream never has
  more open blocks than that. Refused: EVENT_TOO_FAR, until the watermark has moved. A batch that
  was within the horizon once stays within it.
"""

from __future__ import annotations

import numpy as np

from ptklib.errors import InvalidInput, Refused
from ptkstore.api.moments import iso
from ptkstore.api.stream_spec import MAX_BLOCKS
from ptkstore.streams.spans import Spans
from ptkstore.streams.tag_map import Numbers

__all__ = ["blocks_of", "check_reach"]


def check_reach(
    spans: Spans, numbers: Numbers | int, oldest_open: int, horizon_blocks: int
) -> None:
    """Refuse a batch whose records have these span numbers if it reaches too far."""
    last = numbers if isinstance(numbers, int) else int(numbers.max())
    end = oldest_open + horizon_blocks
    if last >= end:
        raise Refused(
            "EVENT_TOO_FAR",
            f"event times must lie before {iso(end * spans.span_ms)}, {horizon_blocks} blocks "
            "after the oldest open one: "
            "close the windows before them first, then send the batch again; if they are wrong, "
            "let the time column have an "
            "upper bound",
            before=iso(end * spans.span_ms),
        )
    if blocks_of(numbers, oldest_open) > MAX_BLOCKS:
        raise InvalidInput(
            "BATCH_TOO_WIDE",
            f"the event times of a batch may lie in {MAX_BLOCKS} blocks: send it in pieces",
        )


def blocks_of(numbers: Numbers | int, oldest_open: int) -> int:
    """In how many blocks span numbers lie, where all that are late count as one; an upper bound
    where that is few enough.
    """
    if isinstance(numbers, int):
        return 1
    first = max(int(numbers.min()), oldest_open - 1)
    apart = int(numbers.max()) - first + 1
    return apart if apart <= MAX_BLOCKS else len(np.unique(np.maximum(numbers, oldest_open - 1)))
