"""Steps that read the columns of a space: each number from the middle of its bounds, in scaled
units.
"""

from __future__ import annotations

from typing import Any

from ptklib.ptks.vectors.space import STEPS, Floats, Space

__all__ = ["read_columns"]


def read_columns(space: Space, missing: Floats) -> list[dict[str, Any]]:
    """One step for each column, into ``value_0``, ``value_1`` and so on."""
    return [
        {
            "do": "measured",
            "from": value.column,
            "into": f"value_{place}",
            "middle": float(space.middles[place]),
            "half": float(space.halves[place]),
            "top": float(space.reach[place]) / STEPS,
            "missing": float(missing[place]),
        }
        for place, value in enumerate(space.values)
    ]
