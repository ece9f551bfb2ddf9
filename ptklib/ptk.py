"""The contract of a PTK: private transferrable knowledge, a feature model that is trained with
differential privacy.

The treaty ---------- A PTK is a **configuration**: a frozen, keyword-only dataclass of public
values, checked when it is made. It holds no data and no state; what training gives is a mapping of
names to numeric arrays, and every method takes those arrays.

* **The price is known before the data**: `cost` takes no data, and `train_dp` spends exactly that,
  whatever the data.
* **Neighbours** differ in one unit: one record (``records_per_unit=1``), or one user with at most
  ``records_per_unit`` records in the batches. `train_dp` is (epsilon, delta)-DP for that pair; the
  caller bounds the records per unit, by `unit_column` where the PTK names one.
* **Everything public is fixed by the configuration**: names, shapes and dtypes of the arrays,
  feature names, bounds, keys. A state of an empty stream looks like any other.
* **Noise comes from the source that was given** (``None``: the system's) and from nowhere else.
* ``previous`` is the state of the last window, which is DP already: using it is post-processing.
  Each window holds records that no other window holds, so windows compose in parallel. So is
  `combined`, which makes one state of several, each with a weight.
* `loss`, `eval` and `exact` look at raw data **without noise**: their values are for the profiler
  and the validators, which noise them, and never leave otherwise.
* `features`, `validate` and `analytic_profile` touch no raw data of the stream: they are free.
* **Memory is known before the data**: `working_bytes` bounds what training, `exact` and `loss`
  hold, from the configuration and a number of records alone. The engine sets that much aside for
  the records it plans with before it opens any: a training that ran out of memory would tell how
  many records there were. For the same reason nothing may fail for what the records hold: **a
  failure is an answer**, and part of what must be (epsilon, delta)-DP.

`ptklib.testing.ptk_checks.check_ptk` checks a PTK of your own against all this.

Reasons: those of `ptklib.config`; PTK_MISMATCH (arrays that cannot be a state of this PTK),
DELTA_NEEDED (a PTK with Gaussian noise at delta 0), COMBINE_UNSUPPORTED, COLUMN_MISSING, COLUMN_TYPE (a column that is
not there or of a type that it cannot read), BATCHES_INVALID (not Arrow record batches).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib import config
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.noise.source import BitSource

__all__ = [
    "UNITS",
    "Arrays",
    "Batches",
    "Ptk",
    "Tags",
    "Weighted",
    "batches_of",
    "check_arrays",
    "column_of",
    "count_of",
]

UNITS = ("event", "user")

# What a PTK that does not say otherwise may hold: besides, and of each record for each column and
# once more.
_BYTES, _BYTES_PER_VALUE = 64 << 20, 64

Arrays = Mapping[str, NDArray[Any]]
Batches = Iterable[pa.RecordBatch]
# How much a state counts, above 0 and at most 1, and its arrays.
Weighted = tuple[Fraction, Arrays]


@dataclass(frozen=True, kw_only=True)
class Tags:
    """What a kind of PTK can do; the profiler, the engine and `check_ptk` choose by it.

    A class states what holds for all its configurations; an instance may state its own
    (``needs_delta`` of one that was configured with Gaussian noise).
    """

    supervised: bool = False  # learns a label
    mergeable: bool = False  # a state of several windows is made by passing ``previous``
    combines: bool = False  # `combined` makes one state of several, with weights
    needs_delta: bool = False  # has no cost at delta 0
    exact_minimiser: bool = False  # `exact` minimises the mean of `loss`
    units: tuple[str, ...] = UNITS  # the units of privacy it can be trained at


@dataclass(frozen=True, kw_only=True)
class Ptk(ABC):
    """A feature model that can be trained with differential privacy.

    The treaty is in the module.
    """

    kind: ClassVar[str]
    tags: ClassVar[Tags]

    def __post_init__(self) -> None:
        """Check the types of all fields, then what the PTK itself demands."""
        config.checked(self)
        self.check()

    def check(self) -> None:  # noqa: B027
        """Refuse values that do not fit together (InvalidInput, CONFIG_INVALID).

        Public values only.
        """

    def _state_tags(self, **stated: Any) -> None:
        """Say of this configuration what its kind leaves open; for `check`."""
        object.__setattr__(self, "tags", replace(type(self).tags, **stated))

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that training reads, in a fixed order."""

    def unit_column(self) -> str | None:
        """The column that must name the user where records_per_unit is above 1; None where the
        proof needs none.

        A proof may use that records of one user agree in a column. It then holds only where that
        column is the one by which the caller bounds the records of a user.
        """
        return None

    @abstractmethod
    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        """What `train_dp` with the same arguments spends, exactly. No data."""

    @abstractmethod
    def train_dp(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number = 0,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        """A state from the batches, which are read once and kept nowhere.

        Spends ``cost(epsilon, delta, ...)``.
        """

    def combined(
        self,
        parts: Iterable[Weighted],  # noqa: ARG002
        *,
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,  # noqa: ARG002
    ) -> Arrays:
        """One state of several (one at least, oldest first), each counting as much as its weight: a
        record of a state of weight 1/2 counts half.

        With ``previous`` what has no order or sign of its own (clusters, components) keeps that of
        this state. Post-processing of states: free. For tags that say ``combines``.
        """
        raise InvalidInput(
            "COMBINE_UNSUPPORTED",
            f"states of a {self.kind} PTK of this configuration do not add up",
        )

    @abstractmethod
    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        """One value in [0, 1] for each record, in order. Raw: not to be published without noise."""

    def eval(self, arrays: Arrays, batches: Batches) -> float:
        """The mean loss; 0 of no records. Raw: not to be published without noise."""
        losses = self.loss(arrays, batches)
        return float(losses.mean()) if len(losses) else 0.0

    def exact(self, batches: Batches) -> Arrays | None:  # noqa: ARG002
        """The arrays that minimise the mean loss on these batches, without noise; None where there
        is no such method.
        """
        return None

    def working_bytes(self, records: int) -> int:
        """The most bytes that training on so many records, `exact` or `loss` may hold at once. No
        data.

        Beyond the batch at hand (of at most 65,536 records) and the arrays that were given; arrays
        that are made count. Say your own where this is too little or far too much; `check_ptk`
        measures it.
        """
        return _BYTES + _BYTES_PER_VALUE * (len(self.columns()) + 1) * records

    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """The columns that `features` gives, from the configuration alone."""

    def feature_columns(self) -> tuple[str, ...]:
        """The columns that `features` reads: those of training, unless it needs fewer."""
        return self.columns()

    @abstractmethod
    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """The feature columns (and no others), one row for each row of the table, in its order."""

    def analytic_profile(
        self,
        target: float,  # noqa: ARG002
        levels: Sequence[Number],  # noqa: ARG002
        delta: Number = 0,  # noqa: ARG002
        *,
        records_per_unit: int = 1,  # noqa: ARG002
    ) -> tuple[int | None, ...] | None:
        """Records needed to reach ``target`` at each epsilon, None where unreachable; None without
        a closed form.
        """
        return None

    @abstractmethod
    def validate(self, arrays: Arrays) -> None:
        """Refuse arrays that cannot be a state of this PTK (PTK_MISMATCH).

        Post-processing, free.
        """

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch | None:  # noqa: ARG002
        """Invented records of the declared columns and domains, some of them on the bounds; for
        tests and dry runs.
        """
        return None

    def as_json(self) -> dict[str, Any]:
        """The configuration as plain JSON values, without the kind."""
        return config.to_json(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read the form of `as_json`; fields with defaults may be left out."""
        made: Self = config.from_json(cls, body if isinstance(body, dict) else dict(body))
        return made

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """A JSON schema of the form of `as_json`."""
        return config.schema(cls)


def batches_of(batches: Batches | pa.Table) -> Iterator[pa.RecordBatch]:
    """The batches one by one; a table or a single batch will do.

    Anything else is refused when it is met.
    """
    whole: Iterable[Any] = [batches] if isinstance(batches, pa.RecordBatch) else batches
    for batch in batches.to_batches() if isinstance(batches, pa.Table) else whole:
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidInput(
                "BATCHES_INVALID",
                f"batches must be Arrow record batches, got {type(batch).__name__}",
            )
        yield batch


def check_arrays(
    arrays: Arrays, wanted: Mapping[str, tuple[str, tuple[int, ...]]], *, kind: str
) -> None:
    """Refuse arrays whose names, dtypes or shapes are not ``{name: (dtype, shape)}``, or that are
    not finite.
    """
    if set(arrays) != set(wanted):
        raise InvalidInput(
            "PTK_MISMATCH",
            f"a state of {kind} must have the arrays {sorted(wanted)}, got {sorted(arrays)}",
        )
    for name, (dtype, shape) in wanted.items():
        array = arrays[name]
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != np.dtype(dtype)
            or array.shape != shape
        ):
            given = (
                f"{array.dtype}{list(array.shape)}"
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            raise InvalidInput(
                "PTK_MISMATCH",
                f"array {name!r} of a {kind} state must be {dtype}{list(shape)}, got {given}",
            )
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise InvalidInput("PTK_MISMATCH", f"array {name!r} of a {kind} state must be finite")


def column_of(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    """The column as one array, or a refusal that names what is there.

    Column names are public, values are not told.
    """
    places = batch.schema.get_all_field_indices(name)
    if len(places) != 1:
        fault = "twice" if places else "missing"
        raise InvalidInput(
            "COLUMN_MISSING",
            f"column {name!r} must be there once, it is {fault}; the frame has "
            f"{sorted(set(batch.schema.names))}",
            column=name,
        )
    column = batch.column(places[0])
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def count_of(value: int, *, name: str = "records_per_unit") -> int:
    """A whole number of at least 1."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not 1 <= value <= 10**9
    ):
        raise InvalidInput(
            "CONFIG_INVALID", f"{name} must be a whole number from 1 to 10**9, got {value!r:.40}"
        )
    return int(value)
