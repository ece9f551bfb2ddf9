"""A small PTK that keeps the contract, and many that break it in one way each.

`check_ptk` must catch them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact
from ptklib.privacy.costs import Cost, PureCost
from ptklib.privacy.fixed_point import FixedPoint
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import (
    Arrays,
    Batches,
    Ptk,
    Tags,
    Weighted,
    batches_of,
    check_arrays,
    column_of,
    count_of,
)


@dataclass(frozen=True, kw_only=True)
class Average(Ptk):
    """The mean of one column: a count and a sum, half of the budget each."""

    kind: ClassVar[str] = "average"
    tags: ClassVar[Tags] = Tags(mergeable=True, combines=True, exact_minimiser=True)
    column: str = "speed"
    lower: float = 0.0
    upper: float = 100.0

    @property
    def grid(self) -> FixedPoint:
        return FixedPoint(self.lower, self.upper, Fraction(1, 10))

    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def feature_names(self) -> tuple[str, ...]:
        return (f"{self.column}_average",)

    def releases(
        self, epsilon: Number, delta: Number, records_per_unit: int
    ) -> dict[str, LaplaceRelease]:
        delta_exact(delta)
        half, records = epsilon_exact(epsilon) / 2, count_of(records_per_unit)
        return {
            "count": LaplaceRelease(epsilon=half, sensitivity=records),
            "total": LaplaceRelease(epsilon=half, sensitivity=records * self.grid.sensitivity),
        }

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        made = self.releases(epsilon, delta, records_per_unit)
        return made["count"].cost + made["total"].cost

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
        made = self.releases(epsilon, delta, records_per_unit)
        if previous is not None:
            self.validate(previous)
        sums = self.exact(batches)
        arrays = {name: made[name].release(sums[name], source=noise).values for name in made}
        return arrays if previous is None else self.merged(arrays, previous)

    def merged(self, arrays: Arrays, previous: Arrays) -> Arrays:
        return {name: arrays[name] + previous[name] for name in arrays}

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
    ) -> Arrays:
        made = {"count": np.zeros(1, np.int64), "total": np.zeros(1, np.int64)}
        for weight, arrays in parts:
            self.validate(arrays)
            for name in made:
                made[name] += np.rint(arrays[name] * self.counted(weight)).astype(np.int64)
        return made

    def counted(self, weight: Fraction) -> float:
        return float(weight)

    def exact(self, batches: Batches) -> Arrays:
        units = self.units(batches)
        return {"count": np.array([len(units)]), "total": np.array([units.sum()])}

    def units(self, batches: Batches) -> NDArray[np.int64]:
        parts = [
            self.grid.encode(column_of(one, self.column).to_numpy(zero_copy_only=False))
            for one in batches_of(batches)
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def mean(self, arrays: Arrays) -> float:
        mean = arrays["total"][0] / max(1, arrays["count"][0])
        return float(np.clip(mean, self.grid.lower_units, self.grid.upper_units))

    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        width = self.grid.upper_units - self.grid.lower_units
        return np.square((self.units(batches) - self.mean(arrays)) / width)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        mean = self.mean(arrays) * float(self.grid.resolution)
        return pa.table({self.feature_names()[0]: np.full(table.num_rows, mean)})

    def validate(self, arrays: Arrays) -> None:
        check_arrays(arrays, {"count": ("int64", (1,)), "total": ("int64", (1,))}, kind=self.kind)

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        values = np.clip(np.random.default_rng(seed).normal(60, 40, rows), self.lower, self.upper)
        return pa.RecordBatch.from_pydict({self.column: values})


class KeepsObjects(Average):
    """Holds a Python object and a copy for each record, and says nothing about it."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        listed = [
            (bytes(1000), one)
            for batch in batches_of(batches)
            for one in batch.column(self.column).to_pylist()
        ]
        values = pa.array([one for _, one in listed], pa.float64())
        return super().train_dp(
            [pa.RecordBatch.from_arrays([values], names=[self.column])], **options
        )


class LossByProduct(Average):
    """A product of matrices with several columns, which rounds by the number of records."""

    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        found = [np.zeros(0)]
        for one in batches_of(batches):
            values = column_of(one, self.column).to_numpy(zero_copy_only=False) / 300
            wide = np.stack([np.sin(values * k) for k in range(1, 30)])
            along = np.linspace(0.1, 0.3, 29 * 5).reshape(5, 29) @ wide
            found.append(np.clip(np.square(along).sum(axis=0) / 100, 0, 1))
        return np.concatenate(found)


class Unnoised(Average):
    """Forgets the noise."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        super().train_dp([], **options)
        return self.exact(batches)


class ExactCount(Average):
    """Noises the sum and not the count."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        listed = list(batches)
        return {**super().train_dp(listed, **options), "count": self.exact(listed)["count"]}


_SEEN: dict[str, int] = {"records": 0}


class CostFromData(Average):
    """Prices by what it has seen."""

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        shrunk = epsilon_exact(epsilon) / (1 + _SEEN["records"] % 1000)
        return PureCost(epsilon=shrunk)

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        listed = list(batches)
        _SEEN["records"] = sum(one.num_rows for one in listed)
        return super().train_dp(listed, **options)


class LeaksKeys(Average):
    """One entry for each distinct value that occurs."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        listed = list(batches)
        arrays = super().train_dp(listed, **options)
        release = LaplaceRelease(epsilon=1, sensitivity=1)
        _, counts = np.unique(self.units(listed) // 50, return_counts=True)
        return {**arrays, "total": release.release(np.append(counts, 0)).values}


class ChangesPrevious(Average):
    """Adds into the arrays of the last state."""

    def merged(self, arrays: Arrays, previous: Arrays) -> Arrays:
        for name in arrays:
            previous[name][...] += arrays[name]
        return dict(previous)


class IgnoresWeights(Average):
    """What has faded counts in full."""

    def counted(self, weight: Fraction) -> float:
        return 1.0


class HalfNoise(Average):
    """Noise for twice the epsilon."""

    def train_dp(self, batches: Batches, *, epsilon: Number, **options: Any) -> Arrays:
        return super().train_dp(batches, epsilon=2 * epsilon_exact(epsilon), **options)


class LowestBit(Average):
    """Noise of twice the size on all but the lowest bit of every total, which is as it is."""

    def train_dp(
        self, batches: Batches, *, previous: Arrays | None = None, **options: Any
    ) -> Arrays:
        asked = {
            name: options[name]
            for name in ("epsilon", "delta", "records_per_unit")
            if name in options
        }
        self.releases(**({"delta": 0, "records_per_unit": 1} | asked))
        if previous is not None:
            self.validate(previous)
        listed = list(batches)
        exact, arrays = self.exact(listed), super().train_dp(listed, **options)
        made = {name: exact[name] + 2 * (arrays[name] - exact[name]) for name in arrays}
        return made if previous is None else self.merged(made, previous)


class SmallSensitivity(Average):
    """Takes a quarter of the range for the sensitivity, as if values were centred and half as
    wide.
    """

    def releases(
        self, epsilon: Number, delta: Number, records_per_unit: int
    ) -> dict[str, LaplaceRelease]:
        made = super().releases(epsilon, delta, records_per_unit)
        total = made["total"]
        return {
            **made,
            "total": LaplaceRelease(epsilon=total.epsilon, sensitivity=total.sensitivity // 4),
        }


class GlobalNoise(Average):
    """Noise from NumPy's generator."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        arrays = super().train_dp(batches, **options)
        return {
            name: array + np.random.default_rng().integers(-300, 301, 1)
            for name, array in arrays.items()
        }


class DataBounds(Average):
    """Bounds that widen to what is found: one far record moves every other."""

    def units(self, batches: Batches) -> NDArray[np.int64]:
        values = [
            column_of(one, self.column).to_numpy(zero_copy_only=False)
            for one in batches_of(batches)
        ]
        found = np.concatenate([np.zeros(0), *values])
        top = float(np.max(found, initial=self.upper))
        return np.rint(np.clip(found / top, 0, 1) * self.grid.upper_units).astype(np.int64)


class StoresRows(Average):
    """Keeps a few labels."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        listed = list(batches)
        values = [column_of(one, self.column).to_numpy(zero_copy_only=False) for one in listed]
        labels = np.resize(np.concatenate([np.zeros(0), *values, np.zeros(1)]), 4)
        return {**super().train_dp(listed, **options), "labels": labels}

    def validate(self, arrays: Arrays) -> None:
        wanted = {"count": ("int64", (1,)), "total": ("int64", (1,)), "labels": ("float64", (4,))}
        check_arrays(arrays, wanted, kind=self.kind)


class WildLoss(Average):
    """A squared error that nobody divided by the range."""

    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        return np.square(self.units(batches) / 10 - self.mean(arrays) / 10)


class UnstableNames(Average):
    """Names a feature after what it found."""

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        return super().features(arrays, table).rename_columns([f"average_{self.mean(arrays):.1f}"])


class FollowsOrder(Average):
    """Features that depend on where a row stands."""

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        values = column_of(table, self.column).to_numpy(zero_copy_only=False)
        return pa.table({self.feature_names()[0]: np.cumsum(values)})


@dataclass(frozen=True)
class Positional(Average):
    """Takes its configuration by position."""

    extra: int = 1


class WritesAnother(Average):
    """Writes another bound than it has."""

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "upper": self.upper // 3}


class FailsOnEmpty(Average):
    """Divides by the number of records."""

    def exact(self, batches: Batches) -> Arrays:
        units = self.units(batches)
        total = int(units.sum())
        return {
            "count": np.array([len(units)]),
            "total": np.array([(total // len(units)) * len(units)]),
        }


class ForgetsPrevious(Average):
    """Merges by throwing the last state away."""

    def merged(self, arrays: Arrays, previous: Arrays) -> Arrays:
        return dict(arrays)


class TakesAnyPrevious(Average):
    """Uses whatever it is given as the last state."""

    def train_dp(
        self, batches: Batches, *, previous: Arrays | None = None, **options: Any
    ) -> Arrays:
        arrays = super().train_dp(batches, **options)
        return {name: arrays[name] + (previous or {}).get(name, 0) for name in arrays}


class UnderCharged(Average):
    """Says half of the price."""

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        return super().cost(epsilon_exact(epsilon) / 2, delta, records_per_unit=records_per_unit)


class OverSpent(Average):
    """Spends the whole epsilon twice, and says so."""

    def releases(
        self, epsilon: Number, delta: Number, records_per_unit: int
    ) -> dict[str, LaplaceRelease]:
        return super().releases(2 * epsilon_exact(epsilon), delta, records_per_unit)


class IgnoresUsers(Average):
    """The same noise however many records a user has."""

    def releases(
        self, epsilon: Number, delta: Number, records_per_unit: int
    ) -> dict[str, LaplaceRelease]:
        count_of(records_per_unit)
        return super().releases(epsilon, delta, 1)


class WrongMinimum(Average):
    """An exact state that is not the best."""

    def exact(self, batches: Batches) -> Arrays:
        sums = super().exact(batches)
        return {**sums, "total": sums["total"] // 2}


class TakesAnything(Average):
    """Validates nothing."""

    def validate(self, arrays: Arrays) -> None:
        if "count" not in arrays:
            raise InvalidInput("PTK_MISMATCH", "count must be there")


class RisingProfile(Average):
    """Wants more records for more budget."""

    def analytic_profile(
        self,
        target: float,
        levels: Sequence[Number],
        delta: Number = 0,
        *,
        records_per_unit: int = 1,
    ) -> tuple[int | None, ...]:
        return tuple(100 * (place + 1) for place, _ in enumerate(levels))


class ReadsFirst(Average):
    """Looks at the data, then at the budget."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        return super().train_dp(list(batches), **options)


class Objects(Average):
    """Arrays of Python objects."""

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        return {
            name: array.astype(object)
            for name, array in super().train_dp(batches, **options).items()
        }


class NotATuple(Average):
    """A list where names must be a tuple."""

    def columns(self) -> tuple[str, ...]:
        return [self.column]  # type: ignore[return-value]


# Each PTK, the check that must catch it, and words of its message.
BROKEN: tuple[tuple[type[Average], str, str], ...] = (
    (KeepsObjects, "working_bytes", "bytes for each record as declared"),
    (LossByProduct, "losses_alone", "must not depend on other records"),
    (Unnoised, "noise_in_every_number", "the state has no noise"),
    (ExactCount, "noise_in_every_number", "1 of 1 in 'count'"),
    (CostFromData, "cost_ignores_data", "must not depend on the data seen"),
    (LeaksKeys, "no_key_leak", "must not depend on the data"),
    (ChangesPrevious, "inputs_unchanged", "previous state must not be changed"),
    (IgnoresWeights, "combine", "must hardly matter"),
    (HalfNoise, "audit", "too little noise"),
    (LowestBit, "audit_residues", "low bits without noise"),
    (SmallSensitivity, "audit", "too little noise, or a sensitivity that is too small"),
    (GlobalNoise, "noise_from_the_source", "noise comes from somewhere else"),
    (DataBounds, "audit", "can be told at epsilon"),
    (StoresRows, "no_raw_values", "raw values are stored"),
    (WildLoss, "loss", "must be in [0, 1]"),
    (UnstableNames, "features", "must be named ('speed_average',)"),
    (FollowsOrder, "features", "wherever it stands"),
    (Positional, "config_frozen", "field 'extra' of Positional must be keyword-only"),
    (WritesAnother, "config_json", "must be the same PTK"),
    (FailsOnEmpty, "empty_data", "ZeroDivisionError"),
    (ForgetsPrevious, "merge", "the second window alone"),
    (TakesAnyPrevious, "foreign_previous", "must be refused"),
    (UnderCharged, "audit", "the cost says 1 "),
    (OverSpent, "cost_before_data", "the caller budgets what it asked"),
    (IgnoresUsers, "records_per_unit", "must raise the noise"),
    (WrongMinimum, "exact_minimiser", "must minimise the mean loss"),
    (TakesAnything, "validate", "it accepted them"),
    (RisingProfile, "analytic_profile", "more budget must not need more records"),
    (ReadsFirst, "refuses_before_reading", "before the data is read"),
    (Objects, "arrays_numeric", "must be a NumPy array of numbers"),
    (NotATuple, "names", "must be a tuple of different names"),
)
