"""Additive models: code the inputs, look their terms up, and look the prediction up at their sum."""

from __future__ import annotations

from typing import Any

from ptklib.ptk import Arrays
from ptklib.ptks.additive.ptk import Additive
from ptklib.ptks.tables.serving import key_step
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Additive, arrays: Arrays) -> ServingPlan:
    """Whole numbers are summed, so the order of the inputs does not matter."""
    steps: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    parts, terms, wholes = [], [], []
    link = ptk._link
    shapes, values = ptk._split(link.steps(arrays["shapes"])), ptk._split(ptk._terms(arrays))
    for place, input_ in enumerate(ptk.inputs):
        step, more = key_step(input_, f"input_{place}")
        steps.append(step)
        kept |= more
        if ptk.output != "terms":
            kept[f"shape_{place}"] = shapes[place]
            parts.append(f"part_{place}")
            steps.append(_look_up(step["into"], parts[-1], f"shape_{place}"))
        if ptk.output != "prediction":
            kept[f"term_{place}"] = values[place]
            terms.append(f"value_{place}")
            steps.append(_look_up(step["into"], terms[-1], f"term_{place}"))
    if parts:
        limits = {"lower": link.lower, "upper": link.upper}
        offset = int(link.steps(arrays["base"])[0])
        steps.append({"do": "total", "from": parts, "into": "place", "offset": offset, **limits})
        answers = zip(("prediction", "score"), ptk._answers(), strict=True)
        for name, answer in list(answers)[: 1 if ptk.classes is None else 2]:
            kept[name] = answer
            wholes.append(f"whole_{name}")
            steps.append(_look_up("place", wholes[-1], name))
    outputs = tuple(zip(ptk.feature_names(), (*wholes, *terms), strict=True))
    return ServingPlan(
        inputs=ptk.feature_columns(), steps=tuple(steps), outputs=outputs, arrays=kept
    )


def _look_up(source: str, into: str, table: str) -> dict[str, Any]:
    return {"do": "look_up", "from": [source], "into": into, "table": f"@{table}"}
