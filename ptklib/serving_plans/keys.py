"""Plans of PTKs whose features are a table by public keys: code each key, combine, look up.

The tables are what the PTK itself says: `tabulated` asks `features` once for every cell of the keys and for every way in
which keys can be unknown, so a plan follows its PTK to the last bit whatever it computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.ptk import Arrays, Ptk
from ptklib.ptks.keys import Bins, Categories, IntegerRange, Key, TimePart
from ptklib.serving_plans import ServingPlan

__all__ = ["key_step", "tabulated"]

_MAX_CELLS = 2**24


def tabulated(ptk: Ptk, arrays: Arrays, keys: Sequence[Key]) -> ServingPlan:
    """The plan of a PTK with a field ``keys`` whose features depend on the codes of the keys alone."""
    padded = [key.size + 1 for key in keys]
    if math.prod(padded) > _MAX_CELLS:
        raise InvalidInput(
            "EXPORT_UNSUPPORTED", f"keys must make at most {_MAX_CELLS} cells to be exported, got {math.prod(padded)}"
        )
    steps: list[dict[str, Any]] = []
    tables: dict[str, NDArray[Any]] = {}
    for number, key in enumerate(keys):
        step, more = key_step(key, f"key_{number}")
        steps.append(step)
        tables |= more
    codes = "key_0"
    if len(keys) > 1:
        codes = "cell"
        names = [f"key_{number}" for number in range(len(keys))]
        steps.append({"do": "combine", "from": names, "into": codes, "sizes": [key.size for key in keys]})
    outputs = []
    for number, (feature, table) in enumerate(zip(ptk.feature_names(), _tables(ptk, arrays, keys), strict=True)):
        tables[f"table_{number}"] = table
        steps.append({"do": "look_up", "from": [codes], "into": f"out_{number}", "table": f"@table_{number}"})
        outputs.append((feature, f"out_{number}"))
    return ServingPlan(
        inputs=tuple(dict.fromkeys(key.column for key in keys)),
        steps=tuple(steps),
        outputs=tuple(outputs),
        arrays=tables,
    )


def key_step(key: Key, into: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The step that codes a key, and its arrays."""
    step: dict[str, Any] = {"from": key.column, "into": into}
    if isinstance(key, Categories) and isinstance(key.values[0], str):
        return {"do": "categories", **step, "values": list(key.values)}, {}
    if isinstance(key, Categories):
        values = np.array(key.values, dtype=np.int64)
        order = np.argsort(values)
        arrays = {f"{into}_ordered": values[order], f"{into}_order": order}
        return {"do": "listed", **step, "ordered": f"@{into}_ordered", "order": f"@{into}_order"}, arrays
    if isinstance(key, IntegerRange):
        return {"do": "integers", **step, "first": key.first, "size": key.size}, {}
    if isinstance(key, Bins):
        return {"do": "bins", **step, "edges": f"@{into}_edges"}, {f"{into}_edges": np.array(key.edges)}
    if isinstance(key, TimePart):
        return {"do": "time_part", **step, "part": key.part}, {}
    raise InvalidInput("EXPORT_UNSUPPORTED", f"keys of kind {key.kind!r} have no serving step")


def _tables(ptk: Ptk, arrays: Arrays, keys: Sequence[Key]) -> list[NDArray[Any]]:
    """The features of every padded cell, in the order of the combined codes."""
    # Keys of one column could not take all values side by side: here each has a column of its own.
    columns = [f"key {number}" for number in range(len(keys))]
    apart: Any = replace(ptk, keys=tuple(replace(key, column=one) for key, one in zip(keys, columns, strict=True)))  # type: ignore[call-arg]
    places = np.indices([key.size + 1 for key in keys]).reshape(len(keys), -1)
    entries = [_entries(key).take(pa.array(place)) for key, place in zip(keys, places, strict=True)]
    made = apart.features(arrays, pa.table(entries, names=columns))
    return [made.column(number).to_numpy() for number in range(made.num_columns)]


def _entries(key: Key) -> pa.Array:
    """A value of the key for each code, and a null for unknown."""
    if isinstance(key, Categories):
        return pa.array([*key.values, None])
    if isinstance(key, IntegerRange):
        return pa.array([*range(key.first, key.last + 1), None], pa.int64())
    if isinstance(key, Bins):
        return pa.array([*key.edges[:-1], None], pa.float64())
    if isinstance(key, TimePart):
        # From 1970-01-05, a Monday.
        length = 3600 if key.part == "hour" else 86400
        seconds = [4 * 86400 + length * place for place in range(key.size)]
        return pa.array([*seconds, None], pa.int64()).cast(pa.timestamp("s"))
    raise InvalidInput("EXPORT_UNSUPPORTED", f"keys of kind {key.kind!r} have no serving step")
