"""Counts: a table for each key, looked up by its own code.

Where a hashed key has several rows, the features follow from a median over them, so no table holds
them: the noisy counts are looked up and the estimates of `counts_estimate` computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.ptk import Arrays
from ptklib.ptks.counts import estimate
from ptklib.ptks.counts.ptk import Counts
from ptklib.ptks.counts.tables import rows_of
from ptklib.ptks.tables.serving import cells_of, changed, key_step, stand_ins
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Counts, arrays: Arrays) -> ServingPlan:
    """Code each key and look its features up, or compute them from its rows."""
    sizes = [key.size for key in ptk.keys]
    single = [rows_of(key) == 1 for key in ptk.keys]
    tables = _tables(ptk, arrays, sizes) if all(single) else None
    steps: list[dict[str, Any]] = []
    kept: dict[str, NDArray[Any]] = {}
    outputs: list[tuple[str, str]] = []
    names = ptk.feature_names()
    each = len(ptk.statistics) * ptk.label.size
    for place, key in enumerate(ptk.keys):
        step, more = key_step(key, f"key_{place}")
        steps.append(step)
        kept |= more
        into = [f"out_{number}" for number in range(place * each, (place + 1) * each)]
        if tables is not None:
            for name, table in zip(into, tables[place], strict=True):
                kept[name] = table
                steps.append(
                    {"do": "look_up", "from": [f"key_{place}"], "into": name, "table": f"@{name}"}
                )
        else:
            kept[f"rows_{place}"] = ptk._tables[place].lines_of(arrays["cells"])
            kept[f"prior_{place}"] = ptk._prior(arrays)
            kept[f"spreads_{place}"] = estimate.SPREADS
            weights, chances = ptk._told(arrays, place, kept[f"prior_{place}"])
            kept[f"weights_{place}"] = weights
            if chances is not None:
                kept[f"chances_{place}"] = chances
            steps += _computed(ptk, arrays, place, into)
        outputs += zip(names[place * each : (place + 1) * each], into, strict=True)
    return ServingPlan(
        inputs=ptk.feature_columns(), steps=tuple(steps), outputs=tuple(outputs), arrays=kept
    )


def _tables(ptk: Counts, arrays: Arrays, sizes: list[int]) -> list[list[NDArray[Any]]]:
    """The features of every line of every key; keys are apart, so each takes its lines side by side
    with the others.
    """
    numbered = stand_ins(ptk, sizes)
    lines = np.arange(max(sizes) + 1)
    made = changed(ptk, keys=numbered).features(arrays, cells_of(numbered, [lines] * len(sizes)))
    each = made.num_columns // len(sizes)
    return [
        [made.column(place * each + number).to_numpy()[: size + 1] for number in range(each)]
        for place, size in enumerate(sizes)
    ]


def _computed(ptk: Counts, arrays: Arrays, place: int, into: list[str]) -> list[dict[str, Any]]:
    key = ptk.keys[place]
    variance = estimate.combined_variance(float(arrays["variances"][place]), rows_of(key))
    counts = f"counts_{place}"
    steps: list[dict[str, Any]] = [
        {"do": "median_rows", "from": [f"key_{place}"], "into": counts, "tables": f"@rows_{place}"}
    ]
    for number, statistic in enumerate(ptk.statistics):
        made = f"{statistic}_{place}"
        if statistic == "count":
            steps.append(
                {"do": "shrunk_counts", "from": [counts], "into": made, "variance": variance}
            )
        else:
            options = {"prior": f"@prior_{place}", "variance": variance}
            options |= {"spreads": f"@spreads_{place}", "weights": f"@weights_{place}"}
            if rows_of(key) == 1:
                options |= {"chances": f"@chances_{place}"}
            steps.append({"do": "class_shares", "from": [counts], "into": made, **options})
        for code in range(ptk.label.size):
            name = into[number * ptk.label.size + code]
            steps.append({"do": "part", "from": [made], "into": name, "place": code})
    return steps
