"""Try a PTK on invented records of a stream before it is accepted.

A PTK that cannot read a column of the stream would fail when it meets the first record and not before: its failure would tell
whether there was one, for no charge. So it is trained once on two invented rows of the stream's own types, one of them null
throughout; what comes out is thrown away. Public values only.

Reasons: COLUMN_TYPE and others of the PTK, PTK_UNTRAINABLE (an error that is none of ours: its type and place alone are told).
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa

from ptklib.errors import InvalidInput, SageError
from ptklib.ptk import Ptk
from ptkstore.streams.columns import Column
from ptkstore.streams.spec import StreamSpec

__all__ = ["invented_rows", "try_out"]

# About noise at this one level, not about the columns: the planner judges every level by itself.
_OF_THE_LEVEL = {"SCALE_TOO_LARGE", "SCALE_TOO_SMALL", "SENSITIVITY_TOO_LARGE"}
_DELTA = "1e-6"


def try_out(spec: StreamSpec, ptk: Ptk, *, records_per_unit: int) -> None:
    """Refuse a PTK that cannot be trained on the stream's columns."""
    rows = invented_rows(spec).select(list(ptk.columns()))
    delta = _DELTA if ptk.tags.needs_delta else 0
    try:
        ptk.train_dp([rows], epsilon=spec.policy.epsilon, delta=delta, records_per_unit=records_per_unit)
    except SageError as error:
        if error.reason not in _OF_THE_LEVEL:
            raise InvalidInput(error.reason, f"the PTK cannot read stream {spec.name!r}: {error.message}") from None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise InvalidInput(
            "PTK_UNTRAINABLE",
            f"a PTK of kind {ptk.kind} fails on invented records of stream {spec.name!r}: {type(error).__name__} at "
            f"{Path(last.filename).name}:{last.lineno}",
        ) from None


def invented_rows(spec: StreamSpec) -> pa.RecordBatch:
    """A row of nulls and a row of public values, in the stream's schema."""
    columns = [pa.array([None, _public(one)]).cast(one.arrow) for one in spec.columns]
    return pa.RecordBatch.from_arrays(columns, names=[one.name for one in spec.columns])


def _public(column: Column) -> Any:
    if column.domain is not None:
        return column.domain[0]
    if column.is_timestamp:
        return column.bounds_ms[0] * column.ticks_per_second // 1000 if column.bounds_ms[0] is not None else 0
    if column.type == "bool":
        return False
    if column.type in {"string", "dictionary"}:
        return ""
    return column.lower if column.lower is not None else 0
