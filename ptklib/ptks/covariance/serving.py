"""Components: read the columns, and take the coordinate along each component from the mean."""

from __future__ import annotations

import math
from typing import Any

from ptklib.ptk import Arrays
from ptklib.ptks.covariance.ptk import Covariance
from ptklib.ptks.vectors import STEPS
from ptklib.ptks.vectors.serving import read_columns
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Covariance, arrays: Arrays) -> ServingPlan:
    """One step for each column, one for each component."""
    _, mean, covariance = ptk._read(arrays["totals"])
    steps: list[dict[str, Any]] = read_columns(ptk._space, mean)
    values = [step["into"] for step in steps]
    kept = {"mean": mean}
    outputs = []
    for number, (name, component) in enumerate(
        zip(ptk.feature_names(), arrays["components"], strict=True)
    ):
        kept[f"component_{number}"] = component
        spread = math.sqrt(max(float(component @ covariance @ component), 1 / (12 * STEPS**2)))
        steps.append(
            {
                "do": "along",
                "from": values,
                "into": f"out_{number}",
                "weights": f"@component_{number}",
                "origin": "@mean",
                "divisor": spread if ptk.output == "whitened" else None,
            }
        )
        outputs.append((name, f"out_{number}"))
    return ServingPlan(
        inputs=ptk.feature_columns(), steps=tuple(steps), outputs=tuple(outputs), arrays=kept
    )
