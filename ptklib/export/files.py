"""Serve a state where there is no Sage: ``export(state, folder)`` writes three files that need
NumPy and nothing else.

===========================  =======================================================================
``serve_<name>.py``          one self-contained module with ``featurize(columns) -> {feature: array}``
``<name>.npz``               the plan and its tables; the module checks its digest
``<name>.certificate.json``  the manifest of the state: what it cost, in which version, from which stream
===========================  =======================================================================

The features are those of `ptklib.features.featurize`, bit for bit; before anything is written the
plan is run on the PTK's own example, with gaps, and compared. States are differentially private, so
exporting is free and nothing in the files needs to be kept secret.

Reasons: EXPORT_UNSUPPORTED (no serving plan for this state, or one that does not give its
features).
"""

from __future__ import annotations

import hashlib
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.errors import InvalidInput
from ptklib.features import feature_table
from ptklib.serving import columns, runner, steps
from ptklib.serving.plan import ServingPlan, plan_of
from ptklib.state import State

__all__ = ["Exported", "export"]

_CHECK_ROWS = 512
_TAIL = '''

__all__ = ["COLUMNS", "DELTA", "DIGEST", "EPSILON", "FEATURES", "NAME", "UNIT", "VERSION", "featurize"]

# The exported state: what follows was written by ptklib.export.
NAME = {name}
VERSION = {version}
DIGEST = {digest}
EPSILON, DELTA, UNIT = {epsilon}, {delta}, {unit}
COLUMNS = {columns}
FEATURES = {features}

_PLAN, _ARRAYS = load(Path(__file__).with_name({data}), {sha256})


def featurize(columns: Any) -> Values:
    """The features of each row, by name. ``columns``: a mapping of `COLUMNS` to arrays or lists, or a structured array."""
    return run(_PLAN, _ARRAYS, columns)


if __name__ == "__main__":
    # A JSON object of columns in, one of features out.
    import sys

    print(json.dumps({{name: one.tolist() for name, one in featurize(json.load(sys.stdin)).items()}}))
'''


@dataclass(frozen=True)
class Exported:
    """The files that were written."""

    module: Path
    data: Path
    certificate: Path


def export(state: State, folder: str | Path) -> Exported:
    """Write the files into the folder, which is made if need be; files of an earlier export of this
    name are replaced.
    """
    plan = plan_of(state.ptk, state.arrays)
    _check(state, plan)
    name = re.sub(r"\W", "_", state.manifest.name, flags=re.ASCII) or "_"
    data = runner.pack(plan.as_json(), plan.arrays)
    manifest = state.manifest
    tail = _TAIL.format(
        name=ascii(manifest.name),
        version=ascii(manifest.version),
        digest=ascii(state.digest),
        epsilon=ascii(manifest.epsilon),
        delta=ascii(manifest.delta),
        unit=ascii(manifest.unit),
        columns=ascii(plan.inputs),
        features=ascii(tuple(feature for feature, _ in plan.outputs)),
        data=ascii(f"{name}.npz"),
        sha256=ascii(hashlib.sha256(data).hexdigest()),
    )
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    files = Exported(
        home / f"serve_{name}.py", home / f"{name}.npz", home / f"{name}.certificate.json"
    )
    files.data.write_bytes(data)
    files.certificate.write_bytes(manifest.to_bytes())
    files.module.write_text(_source() + tail, encoding="utf-8")
    return files


def _source() -> str:
    """The interpreter as one file: its modules one after the other, without their imports of each
    other.
    """
    parts = []
    for module in (columns, steps, runner):
        lines = inspect.getsource(module).splitlines()
        parts += [
            line
            for line in lines
            if not line.startswith(("from __future__", "from ptklib.", "__all__"))
        ]
    return "\n".join(["from __future__ import annotations", "", *parts])


def _check(state: State, plan: ServingPlan) -> None:
    """The plan must give the features of the state, with and without gaps in each column."""
    example = state.ptk.example(_CHECK_ROWS)
    if example is None:
        return
    table = pa.Table.from_batches([example]).select(list(plan.inputs))
    gaps = pa.array(np.arange(_CHECK_ROWS) % 5 == 0)
    for column in (None, *plan.inputs):
        if column is not None:
            place = table.column_names.index(column)
            kept = table.column(column).to_pylist()
            gapped = pa.array(
                [None if gap else value for value, gap in zip(kept, gaps.to_pylist(), strict=True)],
                table.field(place).type,
            )
            table = table.set_column(place, column, gapped)
        wanted = feature_table(table, state)
        features = runner.run(
            plan.as_json(), plan.arrays, {name: _plain(table.column(name)) for name in plan.inputs}
        )
        same = list(features) == wanted.column_names and all(
            features[name].dtype == column.dtype and features[name].tobytes() == column.tobytes()
            for name, column in ((name, wanted.column(name).to_numpy()) for name in features)
        )
        if not same:
            raise InvalidInput(
                "EXPORT_UNSUPPORTED",
                f"the serving plan of {state.ptk.kind!r} does not give the features of this state: "
                "use featurize",
                kind=state.ptk.kind,
            )


def _plain(column: pa.ChunkedArray) -> Any:
    """A column as NumPy holds it: masked where there are nulls."""
    whole = column.combine_chunks()
    if pa.types.is_string(whole.type) or pa.types.is_nested(whole.type):
        return np.array(whole.to_pylist(), dtype=object)
    missing = whole.is_null().to_numpy(zero_copy_only=False)
    filled = (
        whole.fill_null(pa.scalar(0).cast(pa.int64()).cast(whole.type))
        if whole.null_count
        else whole
    )
    return np.ma.masked_array(filled.to_numpy(zero_copy_only=False), mask=missing)
