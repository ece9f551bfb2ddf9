"""Whether a PTK fits a stream: its columns, its unit of privacy, and a try on invented records
before it is accepted.

A PTK that cannot read a column of the stream would fail when it meets the first record and not
before: its failure would tell whether there was one, for no charge. So it is trained once on two
invented rows of the stream's own types, one of them null throughout; what comes out is thrown away.
Public values only. It runs code of the PTK, for as long as that takes: the engine has it done
elsewhere (`asking`).

Reasons: COST_UNSUPPORTED, COLUMN_UNKNOWN, UNIT_UNSUPPORTED, COLUMN_TYPE and others of the PTK, PTK_UNTRAINABLE (an
error that is none of ours: its type and place alone are told).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ptklib import registry
from ptklib.encoding.error_fields import inside
from ptklib.encoding.error_place import failure_of
from ptklib.errors import InvalidInput, SageError
from ptklib.ptk import Ptk
from ptkstore.api.columns import Column
from ptkstore.api.goal import Goal
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.plans.planning import charge_delta, ptk_of, records_per_unit

__all__ = ["check_fit", "fitted", "invented_rows", "require_price", "try_out"]

# About noise at this one level, not about the columns: the planner judges every level by itself.
_OF_THE_LEVEL = {"SCALE_TOO_LARGE", "SCALE_TOO_SMALL", "SENSITIVITY_TOO_LARGE"}
_DELTA = "1e-6"


def fitted(spec: StreamSpec, kind: str, config: Mapping[str, Any]) -> Any:
    """The configuration of a PTK that fits the stream, in the form in which it is kept."""
    ptk = registry.make(kind, config)
    check_fit(spec, ptk)
    return ptk.as_json()


def check_fit(spec: StreamSpec, ptk: Ptk) -> None:
    """The PTK must read columns that the stream has, at a unit of privacy it can keep."""
    known = {column.name for column in spec.columns}
    missing = [name for name in ptk.columns() if name not in known]
    if missing:
        raise InvalidInput(
            "COLUMN_UNKNOWN",
            f"stream {spec.name!r} must have the columns the PTK reads, it has no "
            f"{', '.join(missing)}",
            field="config",
        )
    if spec.unit not in ptk.tags.units:
        raise InvalidInput(
            "UNIT_UNSUPPORTED",
            f"a PTK of kind {ptk.kind} cannot be private at {spec.unit} level, it can at: "
            f"{', '.join(ptk.tags.units)}",
            field="kind",
        )
    wanted = ptk.unit_column()
    if spec.unit == "user" and spec.records_per_user > 1 and wanted not in (None, spec.user_column):
        raise InvalidInput(
            "UNIT_UNSUPPORTED",
            f"a PTK of kind {ptk.kind} must take users from the user column of stream "
            f"{spec.name!r}, which is "
            f"{spec.user_column!r}, got {wanted!r}",
            field="config",
        )
    _require_accountable(spec, ptk)
    try_out(spec, ptk, records_per_unit=records_per_unit(spec))


def require_price(spec: StreamSpec, kind: str, config: Mapping[str, Any], goal: Goal) -> None:
    """Refuse an epsilon at which the kind has no noise to add. Reasons: those of its cost."""
    if goal.epsilon is not None:
        ptk = ptk_of(kind, config)
        with inside("epsilon"):
            ptk.cost(goal.epsilon, charge_delta(spec, ptk), records_per_unit=records_per_unit(spec))


def _require_accountable(spec: StreamSpec, ptk: Ptk) -> None:
    """The stream's composition must have a bound for what the PTK costs."""
    units = records_per_unit(spec)
    try:
        cost = ptk.cost(spec.policy.epsilon, charge_delta(spec, ptk), records_per_unit=units)
        spec.policy.filter().demand(cost)
    except SageError as error:
        if error.reason != "COST_UNSUPPORTED":
            # Of this level, or of the delta: told where levels are planned.
            return
        raise InvalidInput(
            "COST_UNSUPPORTED",
            f"what a PTK of kind {ptk.kind} costs with this noise cannot be added up under "
            f"{spec.policy.composition} composition, which stream {spec.name!r} has: give it another "
            "mechanism (laplace, where the kind has it), or a stream with renyi composition",
            field="config.mechanism" if hasattr(ptk, "mechanism") else "kind",
        ) from None


def try_out(spec: StreamSpec, ptk: Ptk, *, records_per_unit: int) -> None:
    """Refuse a PTK that cannot be trained on the stream's columns."""
    rows = invented_rows(spec).select(list(ptk.columns()))
    delta = _DELTA if ptk.tags.needs_delta else 0
    try:
        ptk.train_dp(
            [rows], epsilon=spec.policy.epsilon, delta=delta, records_per_unit=records_per_unit
        )
    except SageError as error:
        if error.reason not in _OF_THE_LEVEL:
            raise InvalidInput(
                error.reason,
                f"the PTK cannot read stream {spec.name!r}: {error.message}",
                **{**error.details, "field": "config"},
            ) from None
    except Exception as error:
        raise InvalidInput(
            "PTK_UNTRAINABLE",
            f"a PTK of kind {ptk.kind} fails on invented records of stream {spec.name!r}: "
            f"{failure_of(error)}",
            field="config",
        ) from None


def invented_rows(spec: StreamSpec) -> pa.RecordBatch:
    """A row of nulls and a row of public values, in the stream's schema."""
    columns = [pa.array([None, _public(column)]).cast(column.arrow) for column in spec.columns]
    return pa.RecordBatch.from_arrays(columns, names=[column.name for column in spec.columns])


def _public(column: Column) -> Any:
    if column.domain is not None:
        return column.domain[0]
    if column.is_timestamp:
        return (
            column.bounds_ms[0] * column.ticks_per_second // 1000
            if column.bounds_ms[0] is not None
            else 0
        )
    if column.type == "bool":
        return False
    if column.type in {"string", "dictionary"}:
        return ""
    return column.lower if column.lower is not None else 0
