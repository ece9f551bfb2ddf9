"""Embeddings: vectors of users and items looked up, their products, and the predicted value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.ptk import Arrays
from ptklib.ptks.embeddings.ptk import Embeddings
from ptklib.ptks.tables.serving import cells_of, changed, key_step, stand_ins
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Embeddings, arrays: Arrays) -> ServingPlan:
    """Code the keys; look up vectors; multiply.

    Where only items are published, everything follows from the item.
    """
    both = ptk.publish == "both"
    given = ptk._given
    steps: list[dict[str, Any]] = []
    kept: dict[str, NDArray[Any]] = {}
    for name, key in (("user", ptk.users), ("item", ptk.items)):
        if name == "item" or both:
            step, more = key_step(key, f"{name}_code")
            steps.append(step)
            kept |= more
    wanted: tuple[str, ...] = ("user", "item") if both else given
    for name, table in _tables(ptk, arrays, wanted).items():
        kept[name] = table
        code = "user_code" if name == "user" else "item_code"
        steps.append({"do": "look_up", "from": [code], "into": name, "table": f"@{name}"})
    if both:
        pair = ["user", "item"]
        steps.append({"do": "times", "from": pair, "into": "product"})
        bounds = {"lower": ptk.lower, "upper": ptk.upper}
        steps.append({"do": "row_product", "from": pair, "into": "rate", **bounds})
    outputs: list[tuple[str, str]] = []
    names = iter(ptk.feature_names())
    for block in given:
        for place in range(1 if block == "rate" else ptk.factors):
            into = f"{block}_{place}"
            steps.append({"do": "part", "from": [block], "into": into, "place": place})
            outputs.append((next(names), into))
    return ServingPlan(
        inputs=ptk.feature_columns(), steps=tuple(steps), outputs=tuple(outputs), arrays=kept
    )


def _tables(ptk: Embeddings, arrays: Arrays, wanted: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The features of every user and item and of unknown ones, as matrices with a line each."""
    users, items = stand_ins(ptk, [ptk.users.size, ptk.items.size])
    asked = changed(ptk, users=users, items=items, give=wanted)
    tables = {}
    for name in wanted:
        size = ptk.users.size if name == "user" else ptk.items.size
        lines = np.arange(size + 1)
        made = asked.features(arrays, cells_of([users, items], [lines, lines]))
        start = sum(
            1 if earlier == "rate" else ptk.factors for earlier in wanted[: wanted.index(name)]
        )
        width = 1 if name == "rate" else ptk.factors
        tables[name] = _matrix(made, range(start, start + width))
    return tables


def _matrix(made: pa.Table, places: range) -> NDArray[np.float64]:
    return np.stack([made.column(place).to_numpy() for place in places], axis=1)
