"""Bytes that a PTK holds while it works, as several kinds count them: `Ptk.working_bytes` is made
of these.

All of them are bounds from the configuration alone, with room to spare; `check_ptk` and
tests/ptks/test_records_alone.py measure what is really held. Temporaries are those of one batch of
at most `BATCH_RECORDS` records.

**Proof note.** *Unit:* none; nothing here depends on data. *Cost:* none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptklib.columns.keys import Bins, Categories

__all__ = ["BATCH_RECORDS", "LOSS_BYTES", "PIECE_BYTES", "domain_bytes"]

# What a reader gives at once.
BATCH_RECORDS = 1 << 16
# Codes, values and masks of one batch, several times over.
PIECE_BYTES = 32 << 20
# Of each record whose loss is asked for: in pieces, joined, clipped.
LOSS_BYTES = 64
# Of one listed value: in Arrow, and in the table that finds it.
_VALUE_BYTES = 256


def domain_bytes(keys: Iterable[Any]) -> int:
    """What it takes to find a value among those that keys list."""
    total = 0
    for key in keys:
        if isinstance(key, Bins):
            total += _VALUE_BYTES * key.size
        elif isinstance(key, Categories):
            texts = sum(len(value) for value in key.values if isinstance(value, str))
            # A character has 4 bytes at most.
            total += _VALUE_BYTES * key.size + 2 * 4 * texts
    return total
