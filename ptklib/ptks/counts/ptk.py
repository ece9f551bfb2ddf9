"""Count featurization: noisy tables of each feature with each class of a label, as counts and
conditional probabilities.

What is released ---------------- A feature is a column with a public domain (`keys`) or a hashed
one (`hashing`); the label is a column with public classes. Each feature has a table (each row of a
hashed one its own) with a cell for every value and class, and one more line for all that is null or
outside the domain. All cells get noise before the first record is read (Barak et al. 2007), then
records are counted into them: at no time is there a table without noise. States of several windows
are summed.

A table of the class totals alone is added, with a tenth of a feature's weight, where every feature
table has more than `FEW_LINES` lines: the prior would otherwise be the sum of very many noises.
Elsewhere it is read from the table whose sum has the least noise.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity:* a record whose label is known adds 1 to exactly one
cell of every table, any other record to none; so r records move each table by at most r in L1 and
in L2. *Cost:* the tables compose; shares of the budget and the price are those of
`counts_budget.plan`. Cells are whole numbers and the sum of noise and counts is the same in either
order, so laying the noise first changes nothing. Cells of 32 bits stop at `counts_tables.TOP_32`: a
function of the exact sum. (Their noise is cut at 2**30, which is beyond 1024 times its scale: less
likely than exp(-1024).) The variance of the noise is in the state too: a public number. *Windows:*
the cells of the last state are added, which is post-processing; their records are others.

Rules -----
* A record whose label is null or no class contributes nothing and has loss 0. A null or a value
  outside its domain is a value of its own, the same for all such; in a hashed feature only nulls
  are.
* Features of a record, for each feature column and class: ``count`` and ``probability``, read as
  `counts.estimate` says from the whole table. An unseen value has counts near 0 and the
  probabilities of the prior.
* Loss: half the Brier score of the conditional probabilities, averaged over the features. Exact
  counts minimise its mean where no hashed feature has several rows.
* Cells of 32 bits take half the memory and stop at 2**31 - 2**26 - 1, in a window and when windows
  are summed.

Reasons: those of `ptk`, `keys`, `hashing`, `counts_budget`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Categories, Codes, IntegerRange, Key
from ptklib.columns.working import BATCH_RECORDS, LOSS_BYTES, PIECE_BYTES, domain_bytes
from ptklib.config import demand, demand_distinct
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, Given, PriceFirst, windows_after
from ptklib.privacy.amounts import Number
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk, Tags, Weighted, check_arrays, column_of
from ptklib.ptks.counts import estimate
from ptklib.ptks.counts import samples as counts_profile
from ptklib.ptks.counts.budget import CountReleases, plan_of
from ptklib.ptks.counts.tables import (
    PIECE,
    ROWS_AT_ONCE,
    STRETCH,
    TOP_32,
    CountTable,
    Feature,
    add_saturated,
    hold,
    name_of,
    pieces,
    rows_of,
    tally,
)
from ptklib.ptks.tables import samples as profile
from ptklib.ptks.tables.remembered import remembered
from ptklib.ptks.tables.weighted import added

__all__ = ["FEW_LINES", "MAX_TOTAL_CELLS", "Counts"]

Floats = NDArray[np.float64]
Integers = NDArray[Any]
Told = tuple[Floats, Floats | None]

# Up to here the sum of a table is a better prior than a table of its own would be.
FEW_LINES = 1024
# 32 GB of cells with 64 bits; more is a mistake.
MAX_TOTAL_CELLS = 2**32
_TOTALS_WEIGHT = Fraction(1, 10)
# Noise of any scale below is beyond the second number, which 32 bits hold, with a probability below
# exp(-1024).
_MAX_SCALE_32 = 2**20
_MAX_NOISE_32 = 2**30
# Of one number in the lines of one batch, and in those of all values where they are few.
_LINE_BYTES, _READ_BYTES = 160, 96
# Of one line of the largest table, while it is asked what it tells.
_TOLD_BYTES = 96


@dataclass(frozen=True, kw_only=True)
class Counts(PriceFirst[CountReleases], Ptk):
    """Counts and conditional probabilities of a label by each feature.

    See the module for the release and the proof.
    """

    kind: ClassVar[str] = "counts"
    tags: ClassVar[Tags] = Tags(supervised=True, mergeable=True, combines=True)

    keys: tuple[Feature, ...]
    label: Key
    statistics: tuple[Literal["count", "probability"], ...] = ("count", "probability")
    mechanism: Literal["laplace", "gaussian"] = "laplace"
    weights: tuple[float, ...] | None = None  # shares of the budget, by key; equal when None
    cell_bits: Literal[32, 64] = 64
    min_share: float | None = (
        None  # the target holds for values with this share of the records; 1/size when None
    )
    prefix: str | None = None  # of feature names

    def check(self) -> None:
        """One key or more, two classes or more, no name twice, positive weights."""
        demand(len(self.keys) >= 1, "keys must be one or more, got none", field="keys")
        demand(
            self.label.size >= 2,
            f"label must have two classes or more, got {self.label.size}",
            field="label",
        )
        demand(
            all(key.column != self.label.column for key in self.keys),
            f"keys must not read the label, column {self.label.column!r}",
            field="keys",
        )
        demand_distinct(self.statistics, field="statistics")
        names = self.feature_names()
        demand(
            len(set(names)) == len(names),
            "keys must have different names: a column may be there once, or once by part",
            field="keys",
        )
        if self.weights is not None:
            demand(
                len(self.weights) == len(self.keys)
                and all(1e-6 <= weight <= 1e6 for weight in self.weights),
                f"weights must be {len(self.keys)} numbers from 1e-6 to 1e6, one for each key",
                field="weights",
            )
        profile.check_min_share(self.min_share)
        demand(
            self.cells <= MAX_TOTAL_CELLS,
            f"keys must make at most {MAX_TOTAL_CELLS} cells in all, got {self.cells}",
            field="keys",
        )
        one_row = all(rows_of(key) == 1 for key in self.keys)
        self._state_tags(needs_delta=self.mechanism == "gaussian", exact_minimiser=one_row)

    @property
    def cells(self) -> int:
        """How many numbers a state has, those of the class totals included."""
        return self._tables[-1].stop + (self.label.size if self._has_totals else 0)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes: listed values, numbers, or the places of bins and parts."""
        if isinstance(self.label, Categories):
            return tuple(str(value) for value in self.label.values)
        first = self.label.first if isinstance(self.label, IntegerRange) else 0
        return tuple(str(first + place) for place in range(self.label.size))

    @cached_property
    def _tables(self) -> tuple[CountTable, ...]:
        """Where the cells of each key are: all its rows, one after the other."""
        tables, start = [], 0
        for key in self.keys:
            tables.append(CountTable(key, rows_of(key), key.size + 1, self.label.size, start))
            start = tables[-1].stop
        return tuple(tables)

    @cached_property
    def _has_totals(self) -> bool:
        """Whether the class totals have a table of their own. Public: it follows from the sizes."""
        return min(table.lines for table in self._tables) > FEW_LINES

    def columns(self) -> tuple[str, ...]:
        """The key columns, then the label."""
        return (*self.feature_columns(), self.label.column)

    def feature_columns(self) -> tuple[str, ...]:
        """The key columns."""
        return tuple(dict.fromkeys(key.column for key in self.keys))

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
    ) -> Arrays:
        """Cells times the weights of their states. See `tables.weighted`."""
        return added(
            self.validate,
            parts,
            totals="cells",
            variances="variances",
            limit=LIMIT if self._dtype == np.int64 else TOP_32,
            noise=noise,
        )

    def exact(self, batches: Batches) -> Arrays:
        """The counts without noise: their shares minimise the mean loss (one row a key).

        Raw: never published.
        """
        cells = np.zeros(self.cells, dtype=self._dtype)
        self._count(batches, cells)
        variances = np.zeros(len(self.keys) + self._has_totals)
        return {"cells": cells, "variances": variances, "windows": windows_after(None)}

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        self.validate(arrays)
        prior, classes = self._prior(arrays), self.label.size
        told = [self._told(arrays, place, prior) for place in range(len(self.keys))]
        known: dict[int, Floats] = {}
        losses = [np.zeros(0)]
        for piece in pieces(batches):
            labels = self.label.codes(column_of(piece, self.label.column))
            right = np.minimum(labels, classes - 1)
            whole = np.zeros(piece.num_rows)
            for place, table in enumerate(self._tables):
                if table.rows == 1 and table.lines <= PIECE and place not in known:
                    known[place] = self._brier(arrays, place, None, prior, told[place])
                codes = table.codes(piece)
                line = (
                    known[place][codes[0]]
                    if place in known
                    else self._brier(arrays, place, codes, prior, told[place])
                )
                whole += line[np.arange(piece.num_rows), right]
            whole /= len(self.keys)
            whole[labels == classes] = 0.0
            losses.append(whole)
        return np.clip(np.concatenate(losses), 0.0, 1.0)

    def working_bytes(self, records: int) -> int:
        """All cells, three times at most, and lines of classes of one batch; of a record its loss
        alone.
        """
        keys = (*self.keys, self.label)
        wide = (
            _LINE_BYTES
            * BATCH_RECORDS
            * self.label.size
            * max(table.rows for table in self._tables)
        )
        cells = 3 * self._dtype.itemsize * self.cells
        read = _READ_BYTES * sum(
            table.stop - table.start for table in self._tables if table.lines <= PIECE
        )
        told = (_TOLD_BYTES + 8 * self.label.size) * max(table.lines for table in self._tables)
        return PIECE_BYTES + domain_bytes(keys) + wide + cells + read + told + LOSS_BYTES * records

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_<column>_<statistic>_<class>``; the part of a time is added to its column."""
        start = f"{self.prefix}_" if self.prefix else ""
        return tuple(
            f"{start}{name_of(key)}_{statistic}_{class_}"
            for key in self.keys
            for statistic in self.statistics
            for class_ in self.classes
        )

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """Counts and probabilities of each row's values, as float64. Rules: see the module."""
        self.validate(arrays)
        prior, rows = self._prior(arrays), table.num_rows
        columns: list[Floats] = []
        for place, count_table in enumerate(self._tables):
            codes, told = count_table.codes(table), self._told(arrays, place, prior)
            if count_table.rows == 1 and count_table.lines <= rows:
                lines = self._statistics(arrays, place, None, prior, told)
                columns += [line[codes[0]] for line in lines]
                continue
            block = np.empty((len(self.statistics) * self.label.size, rows))
            for start in range(0, rows, PIECE):
                part = slice(start, start + PIECE)
                block[:, part] = self._statistics(
                    arrays, place, [row[part] for row in codes], prior, told
                )
            columns += list(block)
        return pa.Table.from_arrays(
            [pa.array(column) for column in columns], names=list(self.feature_names())
        )

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

        The target bounds the error of the noisy share of a class among the records of a value that
        holds ``min_share`` of all records, for every key; with counts only, the error of a count as
        a fraction of all records. It speaks of the noisy counts as they are stored, not of the
        features, which are pulled towards the prior: a value whose probabilities are far from those
        of all others may be served with a larger error. Nor does it speak of the collisions of
        hashed values. From public numbers alone: free.
        """
        return profile.at_levels(
            target,
            levels,
            lambda level: self._needed(target, self._plan(level, delta, records_per_unit)),
        )

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; variances are not negative,
        windows at least 1.
        """
        wanted = {
            "cells": (self._dtype.name, (self.cells,)),
            "variances": ("float64", (len(self.keys) + self._has_totals,)),
            "windows": ("int64", (1,)),
        }
        check_arrays(arrays, wanted, kind=self.kind)
        if np.any(arrays["variances"] < 0) or not 1 <= arrays["windows"][0] <= LIMIT:
            raise InvalidInput(
                "PTK_MISMATCH", "variances must not be negative and windows at least 1"
            )

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Invented keys and uniform labels."""
        generator = np.random.default_rng(seed)
        columns = {key.column: key.example(rows, generator) for key in self.keys}
        columns[self.label.column] = self.label.example(rows, generator)
        return pa.RecordBatch.from_pydict(columns)

    @cached_property
    def _shares(self) -> tuple[tuple[Fraction, ...], tuple[int, ...]]:
        """Weights and numbers of rows, by key, then of the class totals."""
        weights = [Fraction(repr(weight)) for weight in self.weights or (1.0,) * len(self.keys)]
        rows = [table.rows for table in self._tables]
        if self._has_totals:
            weights.append(sum(weights, Fraction(0)) / len(weights) * _TOTALS_WEIGHT)
            rows.append(1)
        return tuple(weights), tuple(rows)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32 if self.cell_bits == 32 else np.int64)

    def _mechanisms(self, budget: Budget) -> CountReleases:
        """The releases by key, then of the class totals."""
        made = plan_of(self.mechanism, *self._shares, budget)
        if (
            self.cell_bits == 32
            and max(_scale(release) for release in made.releases) > _MAX_SCALE_32
        ):
            raise InvalidInput(
                "SCALE_TOO_LARGE",
                "noise in cells of 32 bits must have a scale of at most 2**20: take 64",
            )
        return made

    def _train(self, given: Given[CountReleases]) -> Arrays:
        """Noise in every cell, then the records, then the previous cells.

        Cost and proof: see the module.
        """
        plan, previous = given.plan, given.previous
        cells = self._noise(plan, given.noise)
        self._count(given.batches, cells)
        arrays = {
            "cells": cells,
            "variances": np.array(plan.variances),
            "windows": windows_after(previous),
        }
        if previous is not None:
            add_saturated(cells, previous["cells"])
            arrays["variances"] = arrays["variances"] + previous["variances"]
        return arrays

    def _noise(self, made: CountReleases, noise: BitSource | None) -> Integers:
        """Cells with nothing but noise, drawn piece by piece.

        Neighbouring tables of one scale are drawn together.
        """
        cells = np.empty(self.cells, dtype=self._dtype)
        zeros = np.zeros(min(PIECE, self.cells), dtype=np.int64)
        ends = [table.stop for table in self._tables] + ([self.cells] if self._has_totals else [])
        start = 0
        for place, (release, end) in enumerate(zip(made.releases, ends, strict=True)):
            if place + 1 < len(ends) and made.releases[place + 1] is release:
                continue
            for at in range(start, end, PIECE):
                size = min(PIECE, end - at)
                drawn = release.release(zeros[:size], source=noise).values
                narrow = self.cell_bits == 32
                cells[at : at + size] = (
                    np.clip(drawn, -_MAX_NOISE_32, _MAX_NOISE_32) if narrow else drawn
                )
            start = end
        return cells

    def _count(self, batches: Batches, cells: Integers) -> None:
        """Add one to the cell of each record with a known label, in every table.

        Whole numbers: exact in any order.
        """
        classes = self.label.size
        totals = cells[self._tables[-1].stop :]
        scratch = np.empty(ROWS_AT_ONCE, dtype=np.intp)
        left = 0
        for piece in pieces(batches):
            if left < piece.num_rows:
                hold(cells)
                left = STRETCH
            left -= piece.num_rows
            labels = self.label.codes(column_of(piece, self.label.column))
            keep = labels < classes
            everyone = bool(keep.all())
            for table in self._tables:
                for row, codes in enumerate(table.codes(piece)):
                    index = np.multiply(codes, classes, out=scratch[: len(codes)])
                    index += labels
                    tally(table.row(cells, row), index if everyone else index[keep])
            if self._has_totals:
                tally(totals, labels if everyone else labels[keep])
        hold(cells)

    def _prior(self, arrays: Arrays) -> Floats:
        """Class shares from the class totals, or from the table whose sum has the least noise."""
        cells = arrays["cells"]
        if self._has_totals:
            return estimate.prior_of(cells[-self.label.size :].astype(np.float64))
        noise = [
            table.lines / table.rows * variance
            for table, variance in zip(self._tables, arrays["variances"].tolist(), strict=True)
        ]
        best = self._tables[int(np.argmin(noise))]
        return estimate.prior_of(best.lines_of(cells).sum(axis=(0, 1), dtype=np.float64))

    def _told(self, arrays: Arrays, place: int, prior: Floats) -> Told:
        """What all lines of a table tell of each (of a hashed one, those of its first row, where
        lines stand for values): the weights of spreads and, of a single row, the chances of no
        noise.
        """
        table, variance = self._tables[place], float(arrays["variances"][place])
        key = (table.start, table.lines, table.classes, prior.tobytes(), variance)

        def lines() -> Floats:
            return np.asarray(table.lines_of(arrays["cells"])[0], dtype=np.float64)

        weights = remembered(
            arrays["cells"],
            ("weights", *key),
            lambda: estimate.spread_weights(lines(), prior, variance),
        )
        if table.rows > 1:
            return weights, None
        return weights, remembered(
            arrays["cells"], ("chances", *key), lambda: estimate.untouched(lines(), variance)
        )

    def _statistics(
        self, arrays: Arrays, place: int, codes: list[Codes] | None, prior: Floats, told: Told
    ) -> Floats:
        """The statistics of a key by class, one below the other, of all its lines or of those of
        the codes.
        """
        table = self._tables[place]
        counts = table.read(arrays["cells"], codes)
        variance = estimate.combined_variance(float(arrays["variances"][place]), table.rows)
        blocks = [
            estimate.shrunk_counts(counts, variance)
            if statistic == "count"
            else estimate.probabilities(counts, prior, variance, *told)
            for statistic in self.statistics
        ]
        return np.ascontiguousarray(np.hstack(blocks).T)

    def _brier(
        self, arrays: Arrays, place: int, codes: list[Codes] | None, prior: Floats, told: Told
    ) -> Floats:
        """Half the Brier score of each line (all lines, or those of the codes) if its record were
        of each class.
        """
        table = self._tables[place]
        variance = estimate.combined_variance(float(arrays["variances"][place]), table.rows)
        counts = table.read(arrays["cells"], codes)
        shares = estimate.probabilities(counts, prior, variance, *told)
        squares = np.square(shares).sum(axis=1)
        scores: Floats = (squares[:, None] + 1 - 2 * shares) / 2
        return scores

    def _needed(self, target: float, made: CountReleases) -> int | None:
        """The most that any key needs."""
        shares = [self.min_share or 1 / key.size for key in self.keys]
        most = 0
        for scale, share in {
            (_scale(release), share) for release, share in zip(made.releases, shares, strict=False)
        }:
            if "probability" in self.statistics:
                count = counts_profile.smallest_count(
                    self.mechanism, scale, self.label.size, target
                )
            else:
                count, share = profile.smallest_count(self.mechanism, scale, 1.0, target, 0), 1.0
            if count is None:
                return None
            most = max(most, math.ceil(count / share))
        return most


def _scale(release: LaplaceRelease | GaussianRelease) -> float:
    return float(release.scale if isinstance(release, LaplaceRelease) else release.sigma)
