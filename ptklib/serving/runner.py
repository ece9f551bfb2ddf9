"""Serve features with NumPy alone: run the plan of one exported state.

The modules ``runner``, ``columns`` and ``steps`` import nothing but NumPy and the
standard library, and `ptklib.export` copies them whole into what it writes. A plan is a JSON
object::

    {"inputs": [column, ...], "steps": [{"do": step, "from": ..., "into": value, ...}, ...],
    "outputs": [[feature, value], ...]}

Steps run in order; each makes one value, by name, from a column of the input (steps of the first
group) or from values made before it. An option that begins with ``@`` is an array of the bundle.

=============  =====================================================================================
step           makes
=============  =====================================================================================
categories     the place of each text in a list; ``size`` where there is none
listed         the place of each whole number in a list
integers       the distance of each whole number from ``first``
bins           the bin of each number between rising edges
scaled         the bin of each number between bounds, clipped to them
measured       the distance of each number from the middle of its bounds, in units of ``half``, clipped; ``missing`` for none
time_part      the hour or the weekday of each time, in UTC
hashed         for each row of a hashed key, the cell of each text or whole number; ``width`` where it is missing
=============  =====================================================================================
combine        one code from several, ``size + 1`` places each
look_up        the entry (or line) of a table for each code
median_rows    the median of the lines that the codes of several rows have, each in its own table
shrunk_counts  noisy counts without what the noise alone explains
class_shares   the shares of classes, from noisy counts, a prior and what the whole table told
times          products, number by number
total          the sum of whole numbers and ``offset``, between bounds, as the distance from the lower one
row_product    the product of two lines, between bounds
part           one column of lines
affine         offset plus scale times each number
along          the coordinate along a direction, from an origin
squares        the squared distances from centres
nearest        the place of the nearest centre
distance       the distance from one centre
walk           the leaf of each row in each tree, from the codes of all features
mean_leaves    the mean over trees of the lines that leaves have
tree, is_leaf  the leaves of one tree; whether they are one leaf
=============  =====================================================================================

Columns are arrays, masked arrays or lists, as many rows each. Missing are: masked, None, NaN, NaT.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptklib.serving.columns import COLUMN_STEPS, InputColumn, ServingError
from ptklib.serving.steps import STEPS

__all__ = ["FORMAT", "ServingError", "load", "pack", "run"]

FORMAT = 1
Array = np.ndarray[Any, Any]
Values = dict[str, Array]


def pack(plan: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Plan and arrays as one ``.npz`` without pickles; the same plan gives the same bytes."""
    text = json.dumps(
        {"format": FORMAT, **plan}, sort_keys=True, separators=(",", ":"), ensure_ascii=True
    )
    file = io.BytesIO()
    members: dict[str, Any] = {"plan.json": np.frombuffer(text.encode(), np.uint8)}
    members |= {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}
    np.savez(file, **members)
    return file.getvalue()


def load(path: Path, sha256: str) -> tuple[dict[str, Any], Values]:
    """The plan and the arrays of a bundle, if its bytes are those that were written."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ServingError(
            f"{path.name} is not the file that this code was exported with: export the state again"
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as bundle:
        arrays = {name: bundle[name] for name in bundle.files}
    plan = json.loads(arrays.pop("plan.json").tobytes())
    if plan.pop("format") != FORMAT:
        raise ServingError(f"{path.name} must be of format {FORMAT}: export the state again")
    return plan, arrays


def run(plan: Mapping[str, Any], arrays: Mapping[str, Array], columns: Any) -> Values:
    """The features of each row, by name: float64, in the order of the rows.

    Columns that the plan does not read are ignored.
    """
    inputs = {name: _column(columns, name) for name in plan["inputs"]}
    if len({len(input_) for input_ in inputs.values()}) > 1:
        raise ServingError(f"columns {sorted(inputs)} must have as many rows each")
    values: Values = {}
    for step in plan["steps"]:
        do, source, into = step["do"], step["from"], step["into"]
        options = {
            name: arrays[option[1:]]
            if isinstance(option, str) and option.startswith("@")
            else option
            for name, option in step.items()
            if name not in {"do", "from", "into"}
        }
        if do in COLUMN_STEPS:
            values[into] = COLUMN_STEPS[do](InputColumn(source, inputs[source]), **options)
        else:
            values[into] = STEPS[do]([values[name] for name in source], **options)
    return {feature: values[value] for feature, value in plan["outputs"]}


def _column(columns: Any, name: str) -> Array:
    try:
        values = columns[name]
    except (KeyError, ValueError, IndexError):
        raise ServingError(f"column {name!r} must be in the input, it is missing") from None
    column = values if isinstance(values, np.ndarray) else _listed(values)
    if column.ndim == 0:
        raise ServingError(f"column {name!r} must have a value for each row, got one value")
    return column


def _listed(values: Any) -> Array:
    """A list; what NumPy would turn into texts, or cut, stays as it is."""
    if (
        isinstance(values, Sequence)
        and not isinstance(values, str | bytes)
        and len(values)
        and not _nested(values)
    ):
        kinds = {type(value) for value in values}
        if len(kinds) > 1 or kinds & {str, type(None)}:
            column = np.empty(len(values), dtype=object)
            column[:] = values
            return column
    return np.asarray(values)


def _nested(values: Sequence[Any]) -> bool:
    return isinstance(values[0], list | tuple | np.ndarray)
