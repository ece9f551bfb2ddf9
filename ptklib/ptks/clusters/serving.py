"""Clusters: read the columns, measure the distances from all centres, and name the nearest."""

from __future__ import annotations

from typing import Any

from ptklib.ptk import Arrays
from ptklib.ptks.clusters.ptk import Clusters
from ptklib.ptks.vectors.serving import read_columns
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Clusters, arrays: Arrays) -> ServingPlan:
    """One step for each column, one for all squared distances, one for each feature."""
    centres = arrays["centres"]
    steps: list[dict[str, Any]] = read_columns(ptk._space, centres.mean(axis=0))
    values = [step["into"] for step in steps]
    steps.append({"do": "squares", "from": values, "into": "squares", "centres": "@centres"})
    steps.append({"do": "nearest", "from": ["squares"], "into": "nearest"})
    outputs = ["nearest"]
    for place in range(len(centres)):
        outputs.append(f"out_{place}")
        steps.append({"do": "distance", "from": ["squares"], "into": outputs[-1], "place": place})
    return ServingPlan(
        inputs=ptk.feature_columns(),
        steps=tuple(steps),
        outputs=tuple(zip(ptk.feature_names(), outputs, strict=True)),
        arrays={"centres": centres},
    )
