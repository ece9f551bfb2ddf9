"""Bytes that a forest holds while it is trained or looked at: a bound from its sizes alone.

See `Ptk.working_bytes`.
"""

from __future__ import annotations

from ptklib.columns.working import BATCH_RECORDS, PIECE_BYTES

__all__ = ["forest_bytes"]

# Beyond the codes of a record: its label, tree, node and leaf, and its loss.
_RECORD_BYTES = 160
# Codes as they are read, joined, and put in the order of the splits.
_COPIES = 3
# Bins that fit a byte, with the unknown one.
_FEW = 256
# Of a leaf, of a feature at a node, of a candidate for a split, of a bin in a table.
_LEAF_BYTES, _NODE_BYTES, _CANDIDATE_BYTES, _BIN_BYTES = 192, 96, 32, 96
# Answers that are made at once, and what is made to find the best splits of some nodes.
_MOST_ANSWERS, _ANSWER_BYTES = 1 << 22, 48
_SPLIT_BYTES = 128 << 20


def forest_bytes(
    method: str,
    sizes: tuple[int, ...],
    *,
    channels: int,
    trees: int,
    depth: int,
    tried: int,
    records: int,
) -> int:
    """For ``sizes`` bins of the inputs, the unknown one included, and so many records."""
    width, inputs = max(sizes), len(sizes)
    record = _COPIES * inputs * (1 if width <= _FEW else 2) + _RECORD_BYTES
    nodes = trees << (depth - 1)
    total = PIECE_BYTES + BATCH_RECORDS * record + _NODE_BYTES * nodes * inputs
    total += _LEAF_BYTES * (trees << depth) * channels
    total += _ANSWER_BYTES * min(_MOST_ANSWERS, BATCH_RECORDS * channels)
    if method == "guided":
        total += (
            _SPLIT_BYTES
            + _CANDIDATE_BYTES * nodes * tried * width
            + _BIN_BYTES * inputs * (width + 1) * channels
        )
    elif method != "random":
        total += _CANDIDATE_BYTES * nodes * tried * width + _BIN_BYTES * nodes * width * channels
    return total + record * records
