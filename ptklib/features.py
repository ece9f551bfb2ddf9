"""Features from trained PTKs, for any frame, with no server anywhere: ``featurize(frame, states)``.

States are differentially private, so this is post-processing: free, on any data, by anybody.

Rules -----
* **Names** follow from the configurations alone, in the order of the states: the same states give
  the same columns for every frame, an empty one too. ``{prefix: state}`` instead of a list puts
  ``<prefix>_`` before each feature of that state.
* **A name that is taken**, by a column of the frame or by another feature, is refused
  (COLUMN_EXISTS) before anything is computed. A column is never overwritten and no name is changed
  silently.
* **A missing column** is refused (COLUMN_MISSING) before anything is computed.
* **Missing and unseen values** (null, NaN, a key outside the domain) follow the rule of each PTK,
  and never drop a row.
* **A column of a type that a PTK cannot read** is offered to it once more in the type of the PTK's
  own `example`, where that loses nothing: a categorical as what it stands for, an empty column (all
  null) as nulls of that type, decimals as floats, lists as lists of the other layout, and floats as
  whole numbers (pandas makes floats of whole numbers with gaps; a fraction is in no domain of whole
  numbers, and becomes a null). Anything else is refused (COLUMN_TYPE).

Reasons: those of `frames`; STATES_INVALID (not states); COLUMN_TYPE from the PTKs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ptklib.errors import InvalidInput
from ptklib.frames import Frame, append_columns, column_names, read_columns
from ptklib.ptk import Ptk
from ptklib.state import State

__all__ = ["States", "feature_table", "featurize", "listed_states", "named_features"]

States = State | Iterable[State] | Mapping[str, State]


def featurize(frame: Frame, states: States) -> Frame:
    """The frame with the feature columns of every state appended, in the order of the states. Rows
    keep their order.

    pandas and polars DataFrames, Arrow Tables and RecordBatches and structured NumPy arrays come
    back as the same kind. The rules are in the module.
    """
    listed = listed_states(states)
    named_features(listed, taken=column_names(frame))
    return append_columns(frame, _features(frame, listed))


def feature_table(frame: Any, states: States) -> pa.Table:
    """The feature columns alone, as an Arrow table: here only features must differ in name from
    each other.
    """
    listed = listed_states(states)
    named_features(listed)
    return _features(frame, listed)


def listed_states(states: States) -> list[tuple[str, State]]:
    """(prefix, state) of each, in order; the prefix is empty for states that were given without
    one.
    """
    if isinstance(states, State):
        pairs: list[tuple[Any, Any]] = [("", states)]
    elif isinstance(states, Mapping):
        pairs = list(states.items())
    else:
        pairs = [("", state) for state in states]
    for prefix, state in pairs:
        if not isinstance(state, State) or not isinstance(prefix, str):
            type_name = type(state if isinstance(prefix, str) else prefix).__name__
            raise InvalidInput(
                "STATES_INVALID",
                f"states must be State objects, or a mapping of prefixes to such, got {type_name}",
            )
    return pairs


def named_features(listed: list[tuple[str, State]], *, taken: Iterable[str] = ()) -> list[str]:
    """The names of all features in order, from the configurations alone; refuses a name that is
    taken.
    """
    owners = dict.fromkeys(taken, "a column of the frame")
    names = []
    for prefix, state in listed:
        for feature in state.ptk.feature_names():
            name = _prefixed(prefix, feature)
            if name in owners:
                raise InvalidInput(
                    "COLUMN_EXISTS",
                    f"feature {name!r} of state {state.manifest.name!r} must have a new name, it "
                    f"is {owners[name]}: rename "
                    "the column, give the PTK another prefix, or pass states as {prefix: state}",
                    columns=[name],
                )
            owners[name] = f"a feature of state {state.manifest.name!r}"
            names.append(name)
    return names


def _features(frame: Any, listed: list[tuple[str, State]]) -> pa.Table:
    wanted = dict.fromkeys(column for _, state in listed for column in state.ptk.feature_columns())
    table = read_columns(frame, list(wanted))
    columns: list[pa.ChunkedArray] = []
    names: list[str] = []
    for prefix, state in listed:
        columns += _made(state, table).columns
        names += [_prefixed(prefix, feature) for feature in state.ptk.feature_names()]
    return pa.table(columns, names=names)


def _prefixed(prefix: str, feature: str) -> str:
    return f"{prefix}_{feature}" if prefix else feature


def _made(state: State, table: pa.Table) -> pa.Table:
    """The features of one state; a column that the PTK cannot read is offered once more."""
    try:
        return state.ptk.features(state.arrays, table)
    except InvalidInput as refusal:
        again = _offered(state.ptk, table) if refusal.reason == "COLUMN_TYPE" else None
        if again is None:
            raise
        return state.ptk.features(state.arrays, again)


def _offered(ptk: Ptk, table: pa.Table) -> pa.Table | None:
    """The table with the columns of this PTK in the types of its own example; None where there is
    nothing to change.
    """
    example = ptk.example(1)
    if example is None:
        return None
    changed = False
    for name in ptk.feature_columns():
        column, wanted = table.column(name), example.schema.field(name).type
        offer = _retyped(column, wanted)
        if offer is not column:
            changed = True
            table = table.set_column(table.column_names.index(name), name, offer)
    return table if changed else None


def _retyped(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """The column nearer to the wanted type, where that loses nothing; else itself."""
    if pt.is_dictionary(column.type) and not pt.is_dictionary(wanted):
        column = column.cast(column.type.value_type)
    column_type = column.type
    if pt.is_null(column_type):
        return pa.chunked_array([pa.nulls(len(column), wanted)])
    if pt.is_floating(column_type) and pt.is_integer(wanted):
        return _whole(column)
    number = (pt.is_integer(wanted), pt.is_floating(wanted))
    if (
        (pt.is_decimal(column_type) and pt.is_floating(wanted))
        or (pt.is_boolean(column_type) and any(number))
        or (_is_list(column_type) and _is_list(wanted))
    ):
        try:
            return column.cast(wanted)
        except pa.ArrowInvalid:
            return column
    return column


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats as whole numbers of 64 bits; null for fractions and what does not fit."""
    values = column.cast(pa.float64()).to_numpy()
    fits = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    return pa.chunked_array([pa.array(np.where(fits, values, 0.0).astype(np.int64), mask=~fits)])


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))
