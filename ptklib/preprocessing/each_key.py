"""A frame with one record for each key of public domains: asked for its features, a PTK tells what
it knows of every key.

Reasons: none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptklib.columns.keys import Bins, Categories, IntegerRange, Key
from ptklib.errors import InvalidInput

__all__ = ["each_key"]

# 1970-01-05 was a Monday.
_MONDAY, _HOUR, _DAY = 4 * 86400, 3600, 86400


def each_key(keys: tuple[Key, ...]) -> pa.Table:
    """One record for each cell, the last key running fastest."""
    columns = [key.column for key in keys]
    if len(set(columns)) < len(columns):
        raise InvalidInput(
            "CONFIG_INVALID",
            f"keys must read a column each, got {columns}: copy the column under another name",
            field="keys",
        )
    places = np.indices([key.size for key in keys]).reshape(len(keys), -1)
    values = [_values(key).take(pa.array(codes)) for key, codes in zip(keys, places, strict=True)]
    return pa.table(values, names=columns)


def _values(key: Key) -> pa.Array:
    """A value of each cell of a domain, in the order of codes."""
    if isinstance(key, Categories):
        return pa.array(key.values)
    if isinstance(key, IntegerRange):
        return pa.array(range(key.first, key.last + 1), pa.int64())
    if isinstance(key, Bins):
        return pa.array(key.edges[:-1], pa.float64())
    step = _HOUR if key.part == "hour" else _DAY
    return pa.array([_MONDAY + step * place for place in range(key.size)], pa.timestamp("s"))
