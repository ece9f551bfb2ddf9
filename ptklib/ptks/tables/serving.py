"""Plans of PTKs whose features are tables by public keys: code each key, combine, look up.

The tables are what the PTK itself says: its `features` are asked once for every cell and for every
way in which keys can be unknown, so a plan follows its PTK to the last bit whatever it computes.
For that, keys of any kind are replaced by whole numbers from 0 in columns of their own, which have
the same cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Bins, Categories, IntegerRange, Key, TimePart
from ptklib.errors import InvalidInput
from ptklib.ptk import Arrays, Ptk
from ptklib.serving.plan import ServingPlan

__all__ = ["cells_of", "changed", "key_step", "stand_ins", "tabulated"]

_MAX_CELLS = 2**24


def tabulated(ptk: Ptk, arrays: Arrays, keys: Sequence[Key]) -> ServingPlan:
    """The plan of a PTK with a field ``keys`` whose features depend on the codes of all keys
    together, and on nothing else.
    """
    padded = [key.size + 1 for key in keys]
    if math.prod(padded) > _MAX_CELLS:
        raise InvalidInput(
            "EXPORT_UNSUPPORTED",
            f"keys must make at most {_MAX_CELLS} cells to be exported, got {math.prod(padded)}",
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
        steps.append(
            {"do": "combine", "from": names, "into": codes, "sizes": [key.size for key in keys]}
        )
    numbered = stand_ins(ptk, [key.size for key in keys])
    places = np.indices(padded).reshape(len(keys), -1)
    made = changed(ptk, keys=numbered).features(arrays, cells_of(numbered, list(places)))
    outputs = []
    for number, feature in enumerate(ptk.feature_names()):
        tables[f"table_{number}"] = made.column(number).to_numpy()
        steps.append(
            {"do": "look_up", "from": [codes], "into": f"out_{number}", "table": f"@table_{number}"}
        )
        outputs.append((feature, f"out_{number}"))
    return ServingPlan(
        inputs=tuple(dict.fromkeys(key.column for key in keys)),
        steps=tuple(steps),
        outputs=tuple(outputs),
        arrays=tables,
    )


def key_step(key: Any, into: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The step that codes a key, and its arrays."""
    step: dict[str, Any] = {"from": key.column, "into": into}
    if isinstance(key, Categories) and isinstance(key.values[0], str):
        return {"do": "categories", **step, "values": list(key.values)}, {}
    if isinstance(key, Categories):
        values = np.array(key.values, dtype=np.int64)
        order = np.argsort(values)
        arrays = {f"{into}_ordered": values[order], f"{into}_order": order}
        return {
            "do": "listed",
            **step,
            "ordered": f"@{into}_ordered",
            "order": f"@{into}_order",
        }, arrays
    if isinstance(key, IntegerRange):
        return {"do": "integers", **step, "first": key.first, "size": key.size}, {}
    if isinstance(key, Bins):
        return {"do": "bins", **step, "edges": f"@{into}_edges"}, {
            f"{into}_edges": np.array(key.edges)
        }
    if isinstance(key, TimePart):
        return {"do": "time_part", **step, "part": key.part}, {}
    if key.kind == "number":
        return {
            "do": "scaled",
            **step,
            "lower": key.lower,
            "upper": key.upper,
            "bins": key.bins,
        }, {}
    if key.kind == "hashed":
        return {"do": "hashed", **step, "width": key.width, "rows": key.rows, "salt": key.salt}, {}
    raise InvalidInput("EXPORT_UNSUPPORTED", f"keys of kind {key.kind!r} have no serving step")


def stand_ins(ptk: Ptk, sizes: Sequence[int]) -> tuple[IntegerRange, ...]:
    """Whole numbers from 0, as many as each key has cells, in columns that the PTK does not
    have.
    """
    mark = "key"
    while any(column.startswith(mark) for column in ptk.columns()):
        mark += "_"
    return tuple(
        IntegerRange(column=f"{mark}{number}", first=0, last=size - 1)
        for number, size in enumerate(sizes)
    )


def cells_of(keys: Sequence[IntegerRange], places: Sequence[NDArray[Any]]) -> pa.Table:
    """A row for each place, which is a code of each key; null from the size on: unknown."""
    columns = [
        pa.array(place, mask=place >= key.size) for key, place in zip(keys, places, strict=True)
    ]
    return pa.table(columns, names=[key.column for key in keys])


def changed(ptk: Ptk, **fields: Any) -> Any:
    """The PTK with other fields."""
    return replace(ptk, **fields)
