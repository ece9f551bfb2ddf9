"""Records in bins: read once into small codes, and counted exactly.

Raw: for mechanisms only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.ptk import Batches, batches_of
from ptklib.ptks.binned.codes import Feature, feature_codes
from ptklib.ptks.binned.target import Labels, Target, Wide

__all__ = ["count_tables", "pieces", "read"]

_ROWS_AT_ONCE = 1 << 16


def pieces(batches: Batches | pa.Table, rows: int = _ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
    """The batches in pieces that fit a cache."""
    for batch in batches_of(batches):
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def read(
    inputs: tuple[Feature, ...], target: Target, batches: Batches
) -> tuple[NDArray[Any], Labels]:
    """Codes [inputs, records] and labels of the records that have one."""
    codes = [np.zeros((len(inputs), 0), dtype=np.uint8)]
    labels = [np.zeros(0, dtype=np.int32)]
    for piece in pieces(batches):
        label, bad = target.read(piece)
        code = feature_codes(inputs, piece)
        if bad.any():
            code, label = code[:, ~bad], label[~bad]
        codes.append(code)
        labels.append(label)
    return np.concatenate(codes, axis=1), np.concatenate(labels)


def count_tables(
    target: Target, sizes: tuple[int, ...], codes: NDArray[Any], label: Labels
) -> Wide:
    """The exact weights of all bins of all inputs: [all bins, channels]."""
    made = [
        target.count(codes[place].astype(np.intp), size, label) for place, size in enumerate(sizes)
    ]
    return target.corners(np.concatenate(made))
