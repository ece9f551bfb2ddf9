"""Forests: code the inputs, walk every tree, and take the mean of the shares of the leaves, or the
leaves themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.ptk import Arrays
from ptklib.ptks.forest.ptk import Forest
from ptklib.ptks.tables.serving import key_step
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Forest, arrays: Arrays) -> ServingPlan:
    """One step walks all trees; what is read from the leaves follows the output that was asked
    for.
    """
    steps: list[dict[str, Any]] = []
    kept: dict[str, NDArray[Any]] = {"splits": ptk._splits(arrays)}
    codes = []
    ranks = np.split(arrays["order"], np.cumsum(ptk._sizes)[:-1]) if "order" in arrays else None
    for place, input_ in enumerate(ptk.inputs):
        step, more = key_step(input_, f"input_{place}")
        steps.append(step)
        kept |= more
        codes.append(step["into"])
        if ranks is not None and place in ptk._sorted:
            kept[f"rank_{place}"] = ranks[place]
            codes[-1] = f"ranked_{place}"
            steps.append(
                {
                    "do": "look_up",
                    "from": [step["into"]],
                    "into": codes[-1],
                    "table": f"@rank_{place}",
                }
            )
    steps.append({"do": "walk", "from": codes, "into": "leaves", "splits": "@splits"})
    reads = _predicted(ptk, arrays, kept) if ptk.output == "prediction" else _leaves(ptk)
    names = ptk.feature_names()
    outputs = tuple((name, f"out_{number}") for number, name in enumerate(names))
    return ServingPlan(
        inputs=ptk.feature_columns(), steps=(*steps, *reads), outputs=outputs, arrays=kept
    )


def _predicted(ptk: Forest, arrays: Arrays, kept: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    kept["shares"] = ptk._shares(arrays)
    steps: list[dict[str, Any]] = [
        {"do": "mean_leaves", "from": ["leaves"], "into": "answer", "shares": "@shares"}
    ]
    if ptk.classes is not None:
        parts = range(len(ptk.classes))
        return steps + [
            {"do": "part", "from": ["answer"], "into": f"out_{part}", "place": part}
            for part in parts
        ]
    assert ptk.lower is not None
    assert ptk.upper is not None
    steps.append({"do": "part", "from": ["answer"], "into": "upper", "place": 1})
    scale = {"offset": ptk.lower, "scale": ptk.upper - ptk.lower}
    steps.append({"do": "affine", "from": ["upper"], "into": "out_0", **scale})
    return steps


def _leaves(ptk: Forest) -> list[dict[str, Any]]:
    if ptk.output == "leaves":
        return [
            {"do": "tree", "from": ["leaves"], "into": f"out_{tree}", "place": tree}
            for tree in range(ptk.trees)
        ]
    each = 2**ptk.depth
    return [
        {
            "do": "is_leaf",
            "from": ["leaves"],
            "into": f"out_{tree * each + leaf}",
            "place": tree,
            "leaf": leaf,
        }
        for tree in range(ptk.trees)
        for leaf in range(each)
    ]
