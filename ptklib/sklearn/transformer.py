"""`PtkTransformer`: the features of trained PTKs as a step of a scikit-learn pipeline.

::

    model = make_pipeline(PtkTransformer(states=[zone_speed]), GradientBoostingRegressor())
    model.fit(rides[["zone", "time"]], durations)

Fitting learns nothing from the data: it checks the input against the states and records its width
and names. So cross validation cannot leak through this step, and nothing that is pickled with it is
private beyond the states, which are differentially private already.

Rules are those of `featurize`. Data frames (pandas, polars) give columns by name; an array gives
them by place, and needs ``columns``. Sparse input is refused. Missing values go to the PTKs, each
with its own rule.

Reasons: those of `featurize`; CONFIG_INVALID (``columns`` that are no mapping of names to names or
places).
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.features import States, feature_table, listed_states, named_features
from ptklib.frames import append_columns, array_columns, column_names, read_columns
from ptklib.sklearn.installed import base, validate_data, validation
from ptklib.state import State

__all__ = ["PtkTransformer"]


class PtkTransformer(base.TransformerMixin, base.BaseEstimator):  # type: ignore[misc]
    """Append, or replace the input by, the features of states.

    Parameters ---------- states : State, list of State, mapping of prefixes to State, or None What
    to featurize with, as in `featurize`. None: no features. passthrough : bool Whether the columns
    of the input come out before the features. A data frame then comes out as a data frame, with the
    types of its columns; otherwise the output is an array of float64. columns : mapping of str to
    str or int, or None Where each column that a PTK reads is in the input: a name, or a place from
    0. What is not in the mapping is taken by its own name.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str, only if all names of the input are texts
    """

    def __init__(
        self,
        states: States | None = None,
        *,
        passthrough: bool = False,
        columns: Mapping[str, str | int] | None = None,
    ) -> None:
        """Keep the parameters as they are; `fit` checks them."""
        self.states = states
        self.passthrough = passthrough
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803, ARG002
        """Check states and input, record width and names. No value of the input is looked at."""
        self._read(X, reset=True)
        self._sources()
        self.get_feature_names_out()
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The features, after the input where it passes through. Rows keep their order."""
        validation.check_is_fitted(self, "n_features_in_")
        read, framed = self._read(X, reset=False)
        sources = self._sources()
        table = feature_table(self._named(read, framed, sources), self._states())
        if framed and self.passthrough:
            return append_columns(read, table)
        made = _matrix(table, len(read))
        if self.passthrough:
            return np.hstack([read, made]) if made.shape[1] else read
        return made

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the output columns: those of the input where it passes through, then those of
        the features.
        """
        validation.check_is_fitted(self, "n_features_in_")
        names = [str(name) for name in validation._check_feature_names_in(self, input_features)]
        kept = names if self.passthrough else []
        return np.array(
            [*kept, *named_features(listed_states(self._states()), taken=kept)], dtype=object
        )

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may feed it: texts, categories and missing values too, but nothing
        sparse.
        """
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _states(self) -> States:
        return [] if self.states is None else self.states

    def _read(self, X: Any, *, reset: bool) -> tuple[Any, bool]:  # noqa: N803
        """The input checked, and whether it is a frame.

        Frames are not turned into arrays: columns have types.
        """
        if _is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not len(X):
                raise InvalidInput(
                    "FRAME_UNSUPPORTED",
                    "Found array with 0 sample(s): a frame must have at least one row",
                )
            return X, True
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False), False

    def _sources(self) -> dict[str, int]:
        """The place in the input of each column that a PTK reads."""
        columns = {} if self.columns is None else self.columns
        if not isinstance(columns, Mapping) or not all(
            isinstance(column, str | int) and not isinstance(column, bool)
            for column in columns.values()
        ):
            raise InvalidInput(
                "CONFIG_INVALID", "columns must be a mapping of names to names or places, or None"
            )
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        sources = {}
        for _, state in listed_states(self._states()):
            for wanted in state.ptk.feature_columns():
                source = columns.get(wanted, wanted)
                place = (
                    source
                    if isinstance(source, int)
                    else names.index(source)
                    if source in names
                    else -1
                )
                if not 0 <= place < self.n_features_in_:
                    has = (
                        f"the names {sorted(names)}"
                        if names
                        else f"{self.n_features_in_} columns without names"
                    )
                    raise InvalidInput(
                        "COLUMN_MISSING",
                        f"column {wanted!r} must be in the input, which has {has}: say where with "
                        f"columns={{{wanted!r}: name or place}}, got {source!r:.60}",
                        column=wanted,
                    )
                sources[wanted] = place
        return sources

    def _named(self, read: Any, framed: bool, sources: Mapping[str, int]) -> pa.Table:
        """The columns that the PTKs read, under their own names."""
        if not framed:
            return array_columns(read, sources)
        names = column_names(read)
        table = read_columns(read, list(dict.fromkeys(names[place] for place in sources.values())))
        return pa.table(
            [table.column(names[place]) for place in sources.values()], names=list(sources)
        )


def _is_frame(data: Any) -> bool:
    home, name = type(data).__module__.partition(".")[0], type(data).__name__
    return home in {"pandas", "polars"} and name == "DataFrame"


def _matrix(table: pa.Table, rows: int) -> NDArray[np.float64]:
    made = np.empty((rows, table.num_columns), dtype=np.float64)
    for place in range(table.num_columns):
        made[:, place] = table.column(place).to_numpy()
    return made


def _parts(state: State) -> tuple[Any, ...]:
    return State, (state.ptk, dict(state.arrays), state.manifest)


# A state keeps its arrays in a read-only mapping, which neither `copy` (clone) nor `pickle` can
# take apart.
copyreg.pickle(State, _parts)
