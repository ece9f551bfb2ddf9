"""Counts, sums, means and variances by public keys, and who is on top: the PTK that most features
are made of.

What is released ---------------- A value v between public bounds becomes a whole number w of steps,
0 to D (``steps``; bounds and D are public). Each record then spreads a weight over the corners of
its cell (`corners`): 1 for counts alone; D-w and w for sums and means; (D-w)^2, 2w(D-w) and w^2 for
variances. The exact totals of every corner of every cell get noise of one scale, empty cells too,
and everything else is post-processing, shares and ranks (`ranking`) too. There is no budget to
split: the weights are not negative and always sum to the same number, so all of them together are
as sensitive as the count alone. `corners` says why no split between a sum and a count has less
noise. The variance of the noise is in the state too: a public number.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity:* a record is in one cell or none, and its weights are
whole, not negative and sum to W = 1, D or D^2; so it moves the vector of all totals by exactly W,
or 0, in L1, and by at most W in L2. r records move it by at most r W in both. Totals are exact
(sums of whole floats below 2**53, added up as int64), so this holds to the last bit. *Cost:* that
of one `LaplaceRelease` or `GaussianRelease` of the whole vector at sensitivity r W; with Gaussian
noise, sigma is the least that is (epsilon, delta)-DP. *Windows:* totals of the last state are
added, which is post-processing; their records are others.

Rules -----
* A record whose key is null or not in the domain, or whose value is null or NaN, contributes
  nothing and has loss 0. Values outside the bounds, infinities too, are clipped.
* Features of a key: ``count`` (0 where the noisy one is below), ``mean``, ``variance`` within what
  the bounds allow, and ``sum`` = count times mean, over all windows merged. Where the noisy count
  is not positive, or the key is unknown, mean and variance are those of all records together; if
  that count is not positive either, the middle of the bounds and the variance of the uniform
  distribution between them.
* A ``mean`` is pulled towards those of the other keys by as much as the noisy table says
  (`tables.shrinkage`), never so far that a promise of `analytic_profile` would not hold (`served`).
  Sums and variances are of the mean before that, and so are all features of states that do not tell
  the variance of their noise.
* With a ``ranking``: ``share`` of the key in all counts or sums, its ``rank`` (1 is the largest),
  and ``in_top``, 1 for the keys with the ``top`` largest and 0 for others. An unknown key has share
  0, the rank after the last, and is not on top.
* Loss: the squared distance of the value (in steps) to the served mean of its key over the squared
  range; with counts only, half the Brier score of the shares. Exact totals minimise its mean.

Reasons: those of `ptk`, `cells`, `keys`, `fixed_point` and `noisy_totals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Codes, Key
from ptklib.columns.numbers import number_column, steps_between
from ptklib.config import demand, demand_distinct
from ptklib.errors import InvalidInput
from ptklib.price_first import Given, PriceFirst
from ptklib.privacy.amounts import Number
from ptklib.privacy.fixed_point import FixedPoint
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk, Tags, Weighted, check_arrays, count_of
from ptklib.ptks.statistics.served import TARGETS, NoisyTable
from ptklib.ptks.tables import corners
from ptklib.ptks.tables.adding import Adder
from ptklib.ptks.tables.cells import example_values, pieces, prefixed
from ptklib.ptks.tables.keyed import Keyed
from ptklib.ptks.tables.noisy_totals import (
    Release,
    check_totals,
    scale_of,
    variance_of,
)
from ptklib.ptks.tables.ranking import Ranking, ranks, shares, top_table
from ptklib.ptks.tables.remembered import remembered
from ptklib.ptks.tables.samples import at_levels, check_min_share, smallest_count
from ptklib.ptks.tables.weighted import added

__all__ = ["MAX_STEPS", "STEPS", "TARGETS", "Statistics"]

# The mean is off by at most half a step, 1/8192 of the range: far below the noise of any useful
# budget.
STEPS = 4096
# So that 2**20 squares sum below 2**53, where whole floats are exact.
MAX_STEPS = 2**16
# So that twice as many squares sum below 2**63.
_ROWS_IN_INT64 = 1 << 29
_RANKED = {"share", "rank", "in_top"}

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Statistics(Keyed, PriceFirst[Release], Ptk):
    """Statistics of a value by public keys.

    See the module for what is released and the proof note.
    """

    kind: ClassVar[str] = "statistics"
    tags: ClassVar[Tags] = Tags(mergeable=True, combines=True, exact_minimiser=True)

    keys: tuple[Key, ...]
    statistics: tuple[Literal["count", "sum", "mean", "variance", "share", "rank", "in_top"], ...]
    value: str | None = None
    lower: float | None = None
    upper: float | None = None
    mechanism: Literal["laplace", "gaussian"] = "laplace"
    resolution: float | None = None  # of the value; the range over `STEPS` when None
    min_share: float | None = (
        None  # the target holds for keys with this share of the records; 1/cells when None
    )
    prefix: str | None = None  # of feature names; the columns when None
    ranking: Ranking | None = None  # what share, rank and in_top are of

    def check(self) -> None:
        """One key or more; statistics asked for once each; bounds exactly when there is a value."""
        self._cells.check()
        demand_distinct(self.statistics, field="statistics")
        named = [option is not None for option in (self.value, self.lower, self.upper)]
        if self._degree or any(named):
            demand(
                all(named),
                "value, lower and upper must be given together, for sums, means and variances",
                field="value",
            )
            demand(
                self._degree > 0,
                "value must be left out when only counts are asked for",
                field="value",
            )
            demand(
                1 <= self.steps <= MAX_STEPS,
                f"resolution must give 1 to {MAX_STEPS} steps, got {self.steps}",
                field="resolution",
            )
        ranked = bool(_RANKED & set(self.statistics))
        demand(
            ranked == (self.ranking is not None),
            "ranking must be given for share, rank or in_top, and only for them",
            field="ranking",
        )
        negative = self.ranking is not None and self.ranking.by == "sum" and (self.lower or 0.0) < 0
        demand(
            "share" not in self.statistics or not negative,
            "lower must not be negative for a share of a sum",
            field="lower",
        )
        check_min_share(self.min_share)
        self._state_tags(needs_delta=self.mechanism == "gaussian")

    @property
    def cells(self) -> int:
        """How many keys there are: the product of the domains."""
        return self._cells.size

    @property
    def steps(self) -> int:
        """D, the number of steps between the bounds."""
        return (
            1
            if self.lower is None or self.upper is None
            else _steps(self.lower, self.upper, self.resolution)
        )

    @property
    def _degree(self) -> int:
        """The highest power of the value that is summed."""
        if "variance" in self.statistics:
            return 2
        by_sum = self.ranking is not None and self.ranking.by == "sum"
        return int(by_sum or bool({"sum", "mean"} & set(self.statistics)))

    @property
    def _weight(self) -> int:
        """W: what the weights of one record sum to."""
        return int(self.steps**self._degree)

    def columns(self) -> tuple[str, ...]:
        """The key columns, then the value."""
        return tuple(
            dict.fromkeys([*self.feature_columns(), *([self.value] if self.value else [])])
        )

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
    ) -> Arrays:
        """Totals times the weights of their states. See `tables.weighted`.

        Their noise is the sum of several scales, hence nearer to normal than it is taken for.
        """
        return added(
            self.validate,
            parts,
            totals="totals",
            variances="variance" if self._degree else None,
            unit=float(self._weight),
            noise=noise,
        )

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        self.validate(arrays)
        if self._degree:
            # An unknown key has the prediction NaN: its loss is set to 0.
            table = self._cells.pad(self._means(arrays, self._moments(arrays)), np.nan)
        else:
            shares = np.maximum(arrays["totals"][:, 0].astype(np.float64), 0.0)
            shares = (
                shares / shares.sum() if shares.sum() > 0 else np.full(self.cells, 1 / self.cells)
            )
            table = self._cells.pad((np.square(shares).sum() + 1 - 2 * shares) / 2, np.nan)
        losses = [np.zeros(0)]
        for codes, value in self._coded(batches):
            known = table[codes]
            losses.append(known if value is None else np.square(value / self.steps - known))
        return np.clip(np.nan_to_num(np.concatenate(losses)), 0.0, 1.0)

    def working_bytes(self, records: int) -> int:
        """Totals of all cells; of a record its loss alone, for training reads in one pass."""
        return self._cells.working_bytes(records, arrays=self._degree + 1)

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_<statistic>`` in the order asked for."""
        return prefixed(self.prefix, self.columns(), self.statistics)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """The statistics of each row's key, as float64. Rules for unknown keys: see the module."""
        self.validate(arrays)
        columns = self._moments(arrays)
        if self.lower is not None and self.upper is not None:
            width = self.upper - self.lower
            columns["variance"] = width**2 * columns["variance"]
            columns["sum"] = columns["count"] * (self.lower + width * columns["mean"])
            if "mean" in self.statistics:
                columns["mean"][:-1] = self._means(arrays, columns)
            columns["mean"] = self.lower + width * columns["mean"]
        # The last entry is for unknown keys.
        columns["count"][-1] = 0.0
        if "sum" in columns:
            columns["sum"][-1] = 0.0
        if self.ranking is not None:
            totals, whole = self._ranked(arrays)
            columns["share"] = np.append(shares(totals, whole), 0.0)
            columns["rank"] = np.append(ranks(totals), self.cells + 1.0)
            columns["in_top"] = np.append(ranks(totals) <= self.ranking.top, 0.0)
        asked = zip(self.feature_names(), self.statistics, strict=True)
        return self._cells.look_up(table, {feature: columns[name] for feature, name in asked})

    def top(self, arrays: Arrays, count: int | None = None) -> pa.Table:
        """The keys with the largest noisy counts or sums, for a report: rank, keys, total, share.
        Post-processing, free.

        ``count`` is that of the ranking when None; any other costs nothing either.
        """
        self.validate(arrays)
        if self.ranking is None:
            raise InvalidInput(
                "CONFIG_INVALID",
                "top needs a PTK with a ranking, this one has none",
                field="top",
            )
        totals, whole = self._ranked(arrays)
        return top_table(
            self._cells,
            totals,
            whole,
            self.ranking.top if count is None else count_of(count, name="count"),
        )

    def as_json(self) -> dict[str, Any]:
        """Without ``ranking`` where there is none: states from before it existed keep their
        certificates.
        """
        body = super().as_json()
        return (
            body
            if self.ranking is not None
            else {name: body[name] for name in body if name != "ranking"}
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

        The target bounds the error of the mean of a key that holds ``min_share`` of the records, as
        a fraction of the range between the bounds, rounding to steps included, whatever the values
        are. Up to `TARGETS` it holds for the mean that is served (`served` has the proof); a larger
        one speaks of the mean before it is pulled towards others. With counts only it bounds the
        error of a count as a fraction of all records. From public numbers alone: free.
        """
        share = 1.0 if not self._degree else self.min_share or 1 / self.cells

        def needed(level: Number) -> int | None:
            records = scale_of(self._plan(level, delta, records_per_unit)) / self._weight
            allowed = target - (1 / (2 * self.steps) if self._degree else 0.0)
            count = smallest_count(self.mechanism, records, 1 / self._weight, allowed, self._degree)
            return None if count is None else math.ceil(count / share)

        return at_levels(target, levels, needed)

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; totals and windows are in
        range.
        """
        told = arrays.get("variance") if self._degree else None
        check_totals(
            {name: arrays[name] for name in arrays if told is None or name != "variance"},
            (self.cells, self._degree + 1),
            kind=self.kind,
        )
        if told is not None:
            check_arrays({"variance": told}, {"variance": ("float64", (1,))}, kind=self.kind)
            if told[0] < 0:
                raise InvalidInput("PTK_MISMATCH", "variance must not be negative")

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Uniform keys and values, a quarter of the values on a bound."""
        generator = np.random.default_rng(seed)
        columns = self._cells.example(rows, generator)
        if self.value is not None and self.lower is not None and self.upper is not None:
            values = example_values(rows, self.lower, self.upper, generator)
            columns[self.value] = pa.array(values)
        return pa.RecordBatch.from_pydict(columns)

    def _reach(self) -> tuple[int, int]:
        """W: see the proof note."""
        return self._weight, self._weight**2

    def _train(self, given: Given[Release]) -> dict[str, NDArray[Any]]:
        """With the variance of the noise, in records squared."""
        arrays = super()._train(given)
        before = {"variance": np.zeros(1)} if given.previous is None else given.previous
        # A state from before variances were kept does not tell its own: nor does the sum.
        if self._degree and "variance" in before:
            arrays["variance"] = before["variance"] + variance_of(given.plan) / self._weight**2
        return arrays

    def _totals(self, batches: Batches) -> Integers:
        """The exact totals of the corners of all cells, at most LIMIT. Raw.

        Weights are not negative, so stopping at LIMIT on the way is the same as at the end, and
        moves no neighbours apart.
        """
        totals = np.zeros((self.cells, self._degree + 1), dtype=np.int64)
        sums = np.zeros((self._degree + 1, self._cells.unknown + 1), dtype=np.int64)
        adder = Adder(sums.shape[1], self.steps)
        pending = 0
        for codes, value in self._coded(batches):
            if pending + len(codes) > _ROWS_IN_INT64:
                totals = _limited(totals + self._weights(sums))
                sums[:], pending = 0, 0
            pending += len(codes)
            places = adder.places(codes)
            if value is None:
                sums[0] += adder.counts(places)
                continue
            counts, values = adder.counts_and_sums(places, value)
            sums[0] += counts
            sums[1] += values
            if self._degree == 2:
                sums[2] += adder.sums(places, np.square(value, out=value))
        return _limited(totals + self._weights(sums))

    def _weights(self, sums: Integers) -> Integers:
        """Totals of the corners from those of the powers of w, without the unknown keys."""
        return corners.weights(np.stack([self._cells.plain(sum_) for sum_ in sums]), self.steps)

    def _coded(self, batches: Batches) -> Iterator[tuple[Codes, Floats | None]]:
        """The cell and the value in steps (a fresh array) of each record, a piece that fits a cache
        at a time.
        """
        for piece in pieces(batches, self.cells):
            codes = self._cells.codes(piece)
            yield (codes, None) if self.value is None else self._valued(codes, piece)

    def _valued(self, codes: Codes, piece: pa.RecordBatch) -> tuple[Codes, Floats]:
        """Clip and round each value to steps by itself.

        A record without a value gets a cell that is unknown.
        """
        assert self.value is not None
        assert self.lower is not None
        assert self.upper is not None
        numbers = number_column(piece, self.value)
        steps, bad = steps_between(numbers, self.lower, self.upper, self.steps)
        return codes if bad is None else np.where(bad, self._cells.unknown, codes), steps

    def _moments(self, arrays: Arrays) -> dict[str, Floats]:
        return corners.moments(arrays["totals"], self.steps)

    def _means(self, arrays: Arrays, moments: dict[str, Floats]) -> Floats:
        """The means that are served, as parts of the range: see `served`."""
        if "variance" not in arrays:
            return moments["mean"][:-1]
        table = NoisyTable(
            mechanism=self.mechanism,
            degree=self._degree,
            unit=1 / self._weight,
            variance=float(arrays["variance"][0]),
            windows=float(arrays["windows"][0]),
            share=self.min_share or 1 / self.cells,
        )
        columns = [moments[name][:-1] for name in ("mean", "counted", "total")]
        return remembered(arrays["totals"], table, lambda: table.means(*columns))

    def _ranked(self, arrays: Arrays) -> tuple[Floats, float]:
        """The noisy counts or sums of all cells as they are, and of all together."""
        moments = self._moments(arrays)
        values = moments["counted"]
        if (
            self.ranking is not None
            and self.ranking.by == "sum"
            and self.lower is not None
            and self.upper is not None
        ):
            values = self.lower * values + (self.upper - self.lower) * moments["total"]
        return values[:-1], float(values[-1])


@lru_cache(maxsize=1024)
def _steps(lower: float, upper: float, resolution: float | None) -> int:
    """The range in units of the resolution; refuses bounds that are none.

    Remembered: it is asked for at every piece.
    """
    low, high = Fraction(repr(lower)), Fraction(repr(upper))
    # Made for its checks.
    FixedPoint(lower, upper, max(abs(low), abs(high)))
    return STEPS if resolution is None else int(FixedPoint(0, high - low, resolution).upper_units)


def _limited(totals: Integers) -> Integers:
    return np.asarray(np.minimum(totals, LIMIT), dtype=np.int64)
