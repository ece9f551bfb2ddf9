"""Target encoding with interactions: the mean of a number, or the probabilities of classes, by each
key, each pair and each triple of keys, from one shared budget.

What is released ---------------- One table for each key, for each pair of keys and, with
``interactions=3``, for each triple (`interactions.tables`). What is learned is one of some classes,
or a number between public bounds as a whole number w of steps, 0 to D, that weighs D-w towards the
lower bound and w towards the upper one (`binned.target`). Each record adds its weights to its cell
in every table, some *copies* of them: more in tables of more cells, by public sizes alone. All
totals of all cells of all tables, empty ones too, get noise of one scale in one release. Everything
else is post-processing: sparse cells back off to fewer keys as far as the noisy tables show
(`interactions.backoff`).

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity:* a record is in one cell of each table t,
where its weights are whole, not negative and sum to m_t W (W = 1 for classes, D for a number; m_t
copies): it moves the vector of all totals by at most W times the sum of all m_t in L1 and, being in
different cells for different tables, by at most W times the root of the sum of all m_t^2 in L2. r
records move it by at most r times that. Totals are exact, so
this holds to the last bit. *Cost:* that of one `LaplaceRelease` or `GaussianRelease` of the whole
vector at that sensitivity. *Windows:* totals of the last state are added, which is post-processing;
their records are others.

Rules -----
* A record whose label is null, NaN or not listed contributes nothing and has loss 0. A key that is
  null or not in its domain is a value of its own, the same for all such. Targets beyond the bounds
  are clipped, infinities too.
* Features of each table: ``estimate`` (the mean, or the probability of each class) and ``count`` (0
  where the noisy one is below), over all windows merged.
* Where there were no records with an unknown key, it says nothing: a table serves what its known
  keys say.
* Loss: half the Brier score or the squared error over the squared range, averaged over the tables
  of the most keys. Exact totals minimise its mean.

Reasons: those of `ptk`, `cells`, `keys`, `binned` and `noisy_totals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import MAX_CELLS, Codes, Key, TimePart
from ptklib.columns.working import BATCH_RECORDS, LOSS_BYTES, PIECE_BYTES, domain_bytes
from ptklib.config import demand, demand_distinct
from ptklib.errors import InvalidInput
from ptklib.price_first import Given, PriceFirst
from ptklib.privacy.amounts import Number
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk, Tags, Weighted, column_of
from ptklib.ptks.binned.checks import check_target, target_of
from ptklib.ptks.binned.codes import STEPS
from ptklib.ptks.binned.target import Labels, Steps, Target
from ptklib.ptks.counts.samples import smallest_count as smallest_count_of_classes
from ptklib.ptks.interactions.backoff import Totals, shares_of
from ptklib.ptks.interactions.tables import KeyTable, key_tables
from ptklib.ptks.tables.cells import example_values, pieces
from ptklib.ptks.tables.keyed import Keyed
from ptklib.ptks.tables.noisy_totals import (
    Release,
    check_totals,
    scale_of,
    variance_of,
)
from ptklib.ptks.tables.remembered import remembered
from ptklib.ptks.tables.samples import at_levels, check_min_share, smallest_count
from ptklib.ptks.tables.weighted import added

__all__ = ["MAX_KEYS", "Interactions"]

MAX_KEYS = 12
# Copies of a record in a table are as its cells to this power. That makes the sum of the variances of
# the noise of all cells least: of c cells with m copies it is as c / m^2, where the sum of all m, or
# with Gaussian noise of all m^2, is given.
_POWERS = {"laplace": 1 / 3, "gaussian": 1 / 4}
# Of one number of a table: counted, noised, and read beside its centres.
_CELL_BYTES, _SPREAD_BYTES = 320, 1 << 23
# Of the codes of one record of a batch in a key or a table.
_CODE_BYTES = 16

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Interactions(Keyed, PriceFirst[Release], Ptk):
    """Means or class probabilities by keys, pairs and triples of keys.

    See the module for what is released and the proof note.
    """

    kind: ClassVar[str] = "interactions"
    tags: ClassVar[Tags] = Tags(
        supervised=True, mergeable=True, combines=True, exact_minimiser=True
    )

    keys: tuple[Key, ...]
    label: str
    classes: tuple[str, ...] | tuple[int, ...] | None = None
    lower: float | None = None
    upper: float | None = None
    interactions: Literal[2, 3] = 2  # the most keys of a table
    statistics: tuple[Literal["estimate", "count"], ...] = ("estimate",)
    mechanism: Literal["laplace", "gaussian"] = "laplace"
    min_share: float | None = (
        None  # the target holds for cells with this share of the records; 1/cells when None
    )
    prefix: str | None = None  # of feature names; the label when None

    def check(self) -> None:
        """Two keys or more that differ, none of them the label; classes or bounds; tables that
        fit."""
        count = len(self.keys)
        demand(
            self.interactions <= count <= MAX_KEYS,
            f"keys must be {self.interactions} to {MAX_KEYS}, got {count}",
            field="keys",
        )
        check_target(self.label, self.classes, self.lower, self.upper)
        demand(
            all(key.column != self.label for key in self.keys),
            f"keys must not read the label, column {self.label!r}",
            field="keys",
        )
        names = [_name(key) for key in self.keys]
        demand(
            len(set(names)) == count,
            "keys must have different names: a column may be there once, or once by part",
            field="keys",
        )
        demand_distinct(self.statistics, field="statistics")
        check_min_share(self.min_share)
        numbers = self._target.channels * self.cells
        demand(
            numbers <= MAX_CELLS,
            f"keys must make at most {MAX_CELLS} numbers in all tables, got {numbers}: leave out "
            "keys, join values, or ask for fewer interactions",
            field="keys",
        )
        names = list(self.feature_names())
        demand(len(set(names)) == len(names), "features must have different names", field="prefix")
        object.__setattr__(
            self, "tags", replace(type(self).tags, needs_delta=self.mechanism == "gaussian")
        )

    @cached_property
    def _target(self) -> Target:
        return target_of(self.label, self.classes, self.lower, self.upper)

    @cached_property
    def _tables(self) -> tuple[KeyTable, ...]:
        return key_tables(self.keys, self.interactions, _POWERS[self.mechanism])

    @cached_property
    def _copies(self) -> Floats:
        """Of a record in the table of each cell."""
        return np.concatenate([np.full(table.size, float(table.copies)) for table in self._tables])

    @property
    def cells(self) -> int:
        """How many cells all tables have together."""
        return self._tables[-1].stop

    def columns(self) -> tuple[str, ...]:
        """The key columns, then the label."""
        return (*self.feature_columns(), self.label)

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
    ) -> Arrays:
        """Totals times the weights of their states. See `tables.weighted`."""
        unit = float(self._target.weight)
        return added(
            self.validate, parts, totals="totals", variances="variance", unit=unit, noise=noise
        )

    def exact(self, batches: Batches) -> Arrays:
        """The totals without noise: their shares minimise the mean loss.

        Raw: never published.
        """
        return {**super().exact(batches), "variance": np.zeros(1)}

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        self.validate(arrays)
        tables = [table for table in self._tables if table.order == self.interactions]
        served = self._served(arrays)
        losses = [np.zeros(0)]
        for by_key, label, bad in self._coded(batches):
            whole = np.zeros(len(label))
            for table in tables:
                shares = served[table.start : table.stop]
                whole += self._target.losses(shares[table.codes(by_key)], label)
            losses.append(np.where(bad, 0.0, whole / len(tables)))
        return np.clip(np.concatenate(losses), 0.0, 1.0)

    def working_bytes(self, records: int) -> int:
        """All tables and their centres; of a record its loss alone, for training reads in one
        pass."""
        channels = self._target.channels
        numbers = channels * self.cells
        codes = BATCH_RECORDS * (len(self.keys) + len(self._tables) + channels) * _CODE_BYTES
        fixed = PIECE_BYTES + domain_bytes(self.keys) + codes + channels * _SPREAD_BYTES
        return fixed + _CELL_BYTES * numbers + LOSS_BYTES * records

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_<key>_<key>_<statistic>``; of classes, ``..._<class>`` for each."""
        start = self.label if self.prefix is None else self.prefix
        names = []
        for table in self._tables:
            keys = "_".join(_name(self.keys[place]) for place in table.places)
            about = f"{start}_{keys}" if start else keys
            for statistic in self.statistics:
                of = self.classes if statistic == "estimate" and self.classes else ()
                names += [f"{about}_{statistic}_{class_}" for class_ in of] or [
                    f"{about}_{statistic}"
                ]
        return tuple(names)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """What is asked for of each table, as float64. Rules for unknown keys: see the module."""
        self.validate(arrays)
        by_key = [key.codes(column_of(table, key.column)) for key in self.keys]
        columns: list[pa.Array] = []
        for key_table, statistics in zip(self._tables, self._columns(arrays), strict=True):
            codes = key_table.codes(by_key)
            columns += [pa.array(column[codes]) for column in statistics]
        return pa.Table.from_arrays(columns, names=list(self.feature_names()))

    def analytic_profile(
        self,
        target: float,
        levels: Sequence[Number],
        delta: Number = 0,
        *,
        records_per_unit: int = 1,
    ) -> tuple[int | None, ...]:
        """The fewest records at which the noise keeps the target with probability 95% at least, at
        each epsilon.

        The target bounds the error of the noisy mean (a part of the range, rounding to steps
        included) or of the noisy share of a class, of a cell of a table of the most keys that holds
        ``min_share`` of all records. It speaks of totals as they are stored, not of the features: a
        cell that is far from what fewer keys say of it may be served with a larger error. From
        public numbers alone: free.
        """
        share = self.min_share or 1 / max(table.size for table in self._tables)
        copies = min(most.copies for most in self._tables if most.order == self.interactions)

        def needed(level: Number) -> int | None:
            scale = scale_of(self._plan(level, delta, records_per_unit))
            count = self._needed(target, scale / (self._target.weight * copies))
            return None if count is None else math.ceil(count / share)

        return at_levels(target, levels, needed)

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; totals, variance and windows are
        in range.
        """
        shape, also = (self.cells, self._target.channels), {"variance": ("float64", (1,))}
        check_totals(arrays, shape, kind=self.kind, also=also)
        if arrays["variance"][0] < 0:
            raise InvalidInput("PTK_MISMATCH", "variance must not be negative")

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Uniform keys; labels of all classes, or values of which a quarter is on a bound."""
        generator = np.random.default_rng(seed)
        columns = {key.column: key.example(rows, generator) for key in self.keys}
        if self.classes is not None:
            places = generator.integers(0, len(self.classes), rows)
            columns[self.label] = pa.array([self.classes[place] for place in places])
        elif self.lower is not None and self.upper is not None:
            values = example_values(rows, self.lower, self.upper, generator)
            columns[self.label] = pa.array(values)
        return pa.RecordBatch.from_pydict(columns)

    def _reach(self) -> tuple[int, int]:
        """See the proof note."""
        copies, weight = [table.copies for table in self._tables], self._target.weight
        return sum(copies) * weight, sum(count**2 for count in copies) * weight**2

    def _train(self, given: Given[Release]) -> dict[str, NDArray[Any]]:
        """With the variance of the noise, in records squared."""
        arrays = super()._train(given)
        arrays["variance"] = np.array([variance_of(given.plan) / self._target.weight**2])
        if given.previous is not None:
            arrays["variance"] = arrays["variance"] + given.previous["variance"]
        return arrays

    def _needed(self, target: float, scale: float) -> int | None:
        """Records of one cell; ``scale`` of the noise is in records."""
        if self.classes is not None:
            return smallest_count_of_classes(self.mechanism, scale, len(self.classes), target)
        allowed = target - 1 / (2 * STEPS)
        return smallest_count(self.mechanism, scale, 1 / STEPS, allowed, 1)

    def _totals(self, batches: Batches) -> Integers:
        """The exact totals of all cells of all tables, at most LIMIT. Raw."""
        target = self._target
        sums = np.zeros((self.cells, target.channels), dtype=np.int64)
        for by_key, label, bad in self._coded(batches):
            used = ~bad
            for table in self._tables:
                codes = table.codes(by_key)[used]
                sums[table.start : table.stop] += target.count(codes, table.size, label[used])
        copied = target.corners(sums) * self._copies.astype(np.int64)[:, None]
        return np.asarray(np.minimum(copied, LIMIT), dtype=np.int64)

    def _coded(self, batches: Batches) -> Iterator[tuple[list[Codes], Labels, NDArray[np.bool_]]]:
        """Codes by key, labels, and which have none, a piece that fits a cache at a time."""
        for piece in pieces(batches, max(table.size for table in self._tables)):
            label, bad = self._target.read(piece)
            yield [key.codes(column_of(piece, key.column)) for key in self.keys], label, bad

    def _records(self, arrays: Arrays) -> Floats:
        """The noisy totals of all cells in records."""
        return np.asarray(arrays["totals"] / (self._target.weight * self._copies[:, None]))

    def _served(self, arrays: Arrays) -> Floats:
        """The shares of the channels of all cells of all tables."""
        variance = float(arrays["variance"][0])
        return remembered(
            arrays["totals"],
            ("interactions", self._tables, self._target, variance),
            lambda: self._shares(arrays, variance),
        )

    def _shares(self, arrays: Arrays, variance: float) -> Floats:
        """Those of all cells of all tables, backed off."""
        records, number = self._records(arrays), isinstance(self._target, Steps)
        windows = float(arrays["windows"][0]) if self.mechanism == "laplace" else math.inf
        totals = [
            Totals(records[table.start : table.stop], variance / table.copies**2, windows, number)
            for table in self._tables
        ]
        return np.concatenate(shares_of(self._tables, totals))

    def _columns(self, arrays: Arrays) -> Iterator[list[Floats]]:
        """The columns of each table by cell, in the order of the feature names."""
        served, records = self._served(arrays), self._records(arrays)
        for table in self._tables:
            columns: list[Floats] = []
            here = slice(table.start, table.stop)
            for statistic in self.statistics:
                shares = served[here]
                if statistic == "count":
                    columns.append(np.maximum(records[here].sum(axis=1), 0.0))
                elif isinstance(self._target, Steps):
                    columns.append(self._target.value(shares))
                else:
                    columns += [np.ascontiguousarray(share) for share in shares.T]
            yield columns


def _name(key: Key) -> str:
    """What a key is called in names of features."""
    return f"{key.column}_{key.part}" if isinstance(key, TimePart) else key.column
