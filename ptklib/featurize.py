"""Features from trained PTKs, for any frame, with no server anywhere: ``featurize(frame, [state])``.

States are differentially private, so this is post-processing: free, on any data, by anybody.

Reasons: those of `frames`; STATES_INVALID (not states); COLUMN_TYPE from the PTKs.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ptklib.errors import InvalidInput
from ptklib.frames import Frame, append_columns, column_names, read_columns
from ptklib.state import State

__all__ = ["featurize"]


def featurize(frame: Frame, states: State | Iterable[State]) -> Frame:
    """The frame with the feature columns of every state appended, in the order of the states. Rows keep their order.

    pandas and polars DataFrames, Arrow Tables and RecordBatches and structured NumPy arrays come back as the same kind. A
    feature that has the name of a column, or of another feature, is refused (COLUMN_EXISTS) before anything is computed.
    """
    listed = [states] if isinstance(states, State) else list(states)
    for state in listed:
        if not isinstance(state, State):
            raise InvalidInput("STATES_INVALID", f"states must be State objects, got {type(state).__name__}")
    names = column_names(frame)
    _refuse_clashes(names, listed)
    wanted = dict.fromkeys(column for state in listed for column in state.ptk.feature_columns())
    table = read_columns(frame, list(wanted))
    columns: list[pa.ChunkedArray] = []
    new: list[str] = []
    for state in listed:
        made = state.ptk.features(state.arrays, table)
        new += made.column_names
        columns += made.columns
    return append_columns(frame, pa.table(columns, names=new))


def _refuse_clashes(names: list[str], states: list[State]) -> None:
    taken = dict.fromkeys(names, "a column of the frame")
    for state in states:
        for feature in state.ptk.feature_names():
            if feature in taken:
                raise InvalidInput(
                    "COLUMN_EXISTS",
                    f"feature {feature!r} of state {state.manifest.name!r} must have a new name, it is {taken[feature]}: "
                    "rename the column, or give the PTK another prefix",
                    columns=[feature],
                )
            taken[feature] = f"a feature of state {state.manifest.name!r}"
