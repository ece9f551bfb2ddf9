"""Interactions: code the keys, combine them for each table, look up."""

from __future__ import annotations

from typing import Any

from ptklib.ptk import Arrays
from ptklib.ptks.interactions.ptk import Interactions
from ptklib.ptks.tables.serving import key_step
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Interactions, arrays: Arrays) -> ServingPlan:
    """Tables are those that the PTK itself looks up, unknown keys included."""
    steps: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    for place, key in enumerate(ptk.keys):
        step, more = key_step(key, f"key_{place}")
        steps.append(step)
        kept |= more
    made: list[str] = []
    for number, (table, columns) in enumerate(zip(ptk._tables, ptk._columns(arrays), strict=True)):
        codes = f"key_{table.places[0]}"
        if table.order > 1:
            codes = f"cell_{number}"
            names = [f"key_{place}" for place in table.places]
            sizes = [size - 1 for size in table.sizes]
            steps.append({"do": "combine", "from": names, "into": codes, "sizes": sizes})
        for column in columns:
            made.append(f"out_{len(made)}")
            kept[f"table_{made[-1]}"] = column
            look_up = {"do": "look_up", "from": [codes], "into": made[-1]}
            steps.append({**look_up, "table": f"@table_{made[-1]}"})
    outputs = tuple(zip(ptk.feature_names(), made, strict=True))
    return ServingPlan(
        inputs=ptk.feature_columns(), steps=tuple(steps), outputs=outputs, arrays=kept
    )
