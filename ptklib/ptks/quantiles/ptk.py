"""Quantiles of a value by public keys, on a public grid: any number of them for the price of one.

What is released ---------------- The grid cuts the range of the value into bins. For every key the
records are counted by bin and, on further levels, by groups of neighbouring bins
(`quantiles_tree`); all counts of all keys get noise of one scale, empty ones too. The rest is
post-processing: least squares makes the levels agree; their running sums, sorted (Chernozhukov et
al. 2009: sorting brings an estimate of a rising curve closer to it in every norm), are the
distribution; and the quantiles are read off it, values being uniform within a bin. Sorting had the
least error of what was tried on taxi fares, before isotonic regression and its midpoint form;
making counts positive first is far worse, as it moves mass into empty bins.

With ``mechanism="exponential"`` no counts are released but a bin for each key and quantile, chosen
by the exponential mechanism (`choosing`): several times as accurate for one quantile of a key with
few records, worse for many, and not to be added up over windows.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity:* a record is in one key or none, and counts once on
each of L levels: it moves the vector of all counts by L in L1 and sqrt(L) in L2, r records by at
most r times that. Counts are exact whole numbers. *Cost:* that of one `LaplaceRelease` or
`GaussianRelease` of the whole vector at that sensitivity; `choosing` has the proof of the other
way. *Windows:* counts of the last state are added, which is post-processing; their records are
others. Bins that were chosen are not: such a state speaks of its own window.

Rules -----
* A record whose key is null or not in the domain, or whose value is null or NaN, contributes
  nothing and has loss 0. Values outside the grid, infinities too, count in the first or the last
  bin.
* Features of a key: one for each quantile, over all windows merged, never falling from a lower to a
  higher quantile. Where the noisy count is not positive, or the key is unknown, they are those of
  all records together; if that count is not positive either, those of the grid, each bin counted
  once.
* With chosen bins a quantile is the middle of its bin, an unknown key has the averages of all keys,
  and a key without records has any bin.
* Loss: the pinball loss over the range, averaged over the quantiles and over the bin of the record.
  Exact counts minimise its mean; the
  bins that hold the exact ranks nearly do.

Reasons: those of `ptk`, `cells`, `keys` and `noisy_totals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Codes, Key
from ptklib.columns.numbers import number_column
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, Given, PriceFirst
from ptklib.privacy.amounts import Number
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk, Tags, Weighted, check_arrays
from ptklib.ptks.quantiles.choosing import BinDraws, scores
from ptklib.ptks.quantiles.tree import Tree, default_branching, spread, tails
from ptklib.ptks.tables.cells import ROWS_AT_ONCE, example_values, pieces, prefixed
from ptklib.ptks.tables.fewest import fewest
from ptklib.ptks.tables.keyed import Keyed
from ptklib.ptks.tables.noisy_totals import (
    check_totals,
    scale_of,
)
from ptklib.ptks.tables.samples import CONFIDENCE, MAX_RECORDS, at_levels, check_min_share

__all__ = ["MAX_BINS", "MAX_CHOSEN_BINS", "MAX_EDGE", "Quantiles"]

MAX_BINS = 4096
# Of bins that are chosen: they hardly cost noise, and the width of a bin is the error.
MAX_CHOSEN_BINS = 1 << 16
_MOST_WAITING = 1 << 20
# Beyond, squares of distances leave float64.
MAX_EDGE = 1e100

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Quantiles(Keyed, PriceFirst[Any], Ptk):
    """Quantiles of a value by public keys.

    See the module for what is released and the proof note.
    """

    kind: ClassVar[str] = "quantiles"
    tags: ClassVar[Tags] = Tags(mergeable=True, combines=True, exact_minimiser=True)

    keys: tuple[Key, ...]
    value: str
    quantiles: tuple[float, ...]
    lower: float | None = None
    upper: float | None = None
    bins: int = 256  # of equal width between the bounds
    edges: tuple[float, ...] | None = None  # instead of bounds and bins
    branching: int | None = None  # of the tree; the best for the bins and the mechanism when None
    mechanism: Literal["laplace", "gaussian", "exponential"] = "laplace"
    min_share: float | None = (
        None  # the target holds for keys with this share of the records; 1/cells when None
    )
    prefix: str | None = None  # of feature names; the columns when None

    def check(self) -> None:
        """Quantiles between 0 and 1, rising; a grid; not too many counts."""
        rising = all(a < b for a, b in pairwise(self.quantiles))
        inside = all(0 < quantile < 1 for quantile in self.quantiles)
        demand(
            bool(self.quantiles) and rising and inside,
            "quantiles must be one or more between 0 and 1, rising",
            field="quantiles",
        )
        demand(
            len(set(self._names)) == len(self._names),
            "quantiles must differ in six digits or fewer",
            field="quantiles",
        )
        if self.edges is None:
            demand(
                self.lower is not None and self.upper is not None,
                "lower and upper must be given, or edges",
                field="lower",
            )
            assert self.lower is not None
            assert self.upper is not None
            wide = self.lower < self.upper and math.isfinite(self.upper - self.lower)
            demand(
                wide,
                f"lower must be less than upper, got {self.lower} and {self.upper}",
                field="lower",
            )
            demand(
                2 <= self.bins <= self._most_bins,
                f"bins must be 2 to {self._most_bins}, got {self.bins}",
                field="bins",
            )
        else:
            demand(
                self.lower is None and self.upper is None,
                "lower and upper must be left out where edges are given",
                field="lower",
            )
            demand(
                3 <= len(self.edges) <= self._most_bins + 1,
                f"edges must be 3 to {self._most_bins + 1}, got {len(self.edges)}",
                field="edges",
            )
        steps = np.diff(self._edges)
        demand(
            bool(np.all((steps > 0) & np.isfinite(steps))),
            "edges must rise, by amounts that are finite",
            field="edges",
        )
        demand(
            bool(np.all(np.abs(self._edges) <= MAX_EDGE)),
            f"edges must lie within {MAX_EDGE:g} of zero",
            field="edges",
        )
        demand(
            self.branching is None or not self._is_chosen,
            "branching must be left out where bins are chosen: there is no tree",
            field="branching",
        )
        demand(
            self.branching is None or self.branching >= 2,
            "branching must be at least 2",
            field="branching",
        )
        check_min_share(self.min_share)
        self._cells.check(arrays=self._tree.nodes)
        if self._is_chosen:
            self._state_tags(mergeable=False, combines=False, exact_minimiser=False)
        else:
            self._state_tags(needs_delta=self.mechanism == "gaussian")

    @cached_property
    def _edges(self) -> Floats:
        if self.edges is not None:
            return np.array(self.edges)
        assert self.lower is not None
        assert self.upper is not None
        return np.linspace(self.lower, self.upper, self.bins + 1)

    @cached_property
    def _tree(self) -> Tree:
        bins = len(self._edges) - 1
        if self._is_chosen:
            return Tree(bins, bins)
        return Tree(bins, self.branching or default_branching(self.mechanism, bins))

    @property
    def _most_bins(self) -> int:
        return MAX_CHOSEN_BINS if self._is_chosen else MAX_BINS

    @property
    def _is_chosen(self) -> bool:
        """True where a bin is chosen for each quantile."""
        return self.mechanism == "exponential"

    @property
    def _names(self) -> list[str]:
        return [f"q{100 * quantile:.6g}".replace(".", "_") for quantile in self.quantiles]

    def columns(self) -> tuple[str, ...]:
        """The key columns, then the value."""
        return tuple(dict.fromkeys([*self.feature_columns(), self.value]))

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
    ) -> Arrays:
        """Totals times the weights of their states. Bins that were chosen do not add up."""
        if self._is_chosen:
            return Ptk.combined(self, parts, previous=previous, noise=noise)
        return super().combined(parts, previous=previous, noise=noise)

    def exact(self, batches: Batches) -> Arrays:
        """The counts without noise, whose quantiles minimise the mean loss, or the first bins that
        hold the exact ranks.

        Raw: never published.
        """
        if not self._is_chosen:
            return super().exact(batches)
        counts, shares = self._totals(batches), self._choice(Budget.of(1, 0, 1)).shares
        bins = [scores(counts, share).argmax(axis=1) for share in shares]
        return {"chosen": np.stack(bins, axis=1).astype(np.int64)}

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        self.validate(arrays)
        low, high = self._edges[:-1], self._edges[1:]
        quantiles = self._quantiles(arrays)[:-1, :, None]
        share = np.array(self.quantiles)[:, None]
        table = np.zeros((self._cells.size, len(low)))
        for place in range(len(self.quantiles)):
            at = quantiles[:, place]
            above = np.square(high - np.clip(at, low, high)) / (2 * (high - low)) + np.maximum(
                low - at, 0.0
            )
            below = np.square(np.clip(at, low, high) - low) / (2 * (high - low)) + np.maximum(
                at - high, 0.0
            )
            table += share[place] * above + (1 - share[place]) * below
        table /= len(self.quantiles) * (self._edges[-1] - self._edges[0])
        flat = self._cells.pad(np.clip(table, 0.0, 1.0), 0.0).reshape(-1)
        return np.concatenate(
            [np.zeros(0), *(flat[self._coded(piece)] for piece in pieces(batches))]
        )

    def working_bytes(self, records: int) -> int:
        """Counts of all nodes of all cells; of a record its loss alone, for training reads in one
        pass.
        """
        return self._cells.working_bytes(records, arrays=self._tree.nodes + len(self.quantiles) + 1)

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_q<percent>`` in the order asked for, such as ``hour_fare_q50``."""
        return prefixed(self.prefix, self.columns(), self._names)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """The quantiles of each row's key, as float64. Rules for unknown keys: see the module."""
        self.validate(arrays)
        quantiles = self._quantiles(arrays)
        return self._cells.look_up(table, dict(zip(self.feature_names(), quantiles.T, strict=True)))

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

        The target bounds how far the share of a key's records below each of its quantiles is from
        the share asked for, for a key that holds ``min_share`` of the records, values being uniform
        within a bin. From public numbers alone: free. Where bins are chosen, it bounds how far the
        rank asked for is from those of the records in the bin: what they are within it is not told.

        Sorted sums are as near to the true ones, less than ``q noisy count`` with it, as unsorted
        ones are (see the module). So the error at a quantile is at most the largest noise of
        ``count below an edge - q count`` over the edges; `tails` are added up over edges, sides and
        quantiles.
        """
        share = self.min_share or 1 / self._cells.size
        if self._is_chosen:

            def chosen(level: Number) -> int | None:
                choice = self._choice(Budget.of(level, delta, records_per_unit))
                count = choice.smallest(target, self._tree.bins)
                return None if count is None else math.ceil(count / share)

            return at_levels(target, levels, chosen)
        near = 1.0

        def needed(level: Number) -> int | None:
            nonlocal near
            scale = scale_of(self._plan(level, delta, records_per_unit))
            count = self._smallest(scale, target, near * scale)
            if count is None:
                return None
            # Laplace noise of twice the scale needs twice the records, and Gaussian noise nearly.
            near = count / scale
            return math.ceil(count / share)

        return at_levels(target, levels, needed)

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; counts, windows and bins are in
        range.
        """
        if not self._is_chosen:
            check_totals(arrays, (self._cells.size, self._tree.nodes), kind=self.kind)
            return
        shape = (self._cells.size, len(self.quantiles))
        check_arrays(arrays, {"chosen": ("int64", shape)}, kind=self.kind)
        if np.any((arrays["chosen"] < 0) | (arrays["chosen"] >= self._tree.bins)):
            raise InvalidInput("PTK_MISMATCH", f"chosen must be bins, 0 to {self._tree.bins - 1}")

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Uniform keys and values, a quarter of the values at an end of the grid."""
        generator = np.random.default_rng(seed)
        columns = self._cells.example(rows, generator)
        values = example_values(rows, self._edges[0], self._edges[-1], generator)
        return pa.RecordBatch.from_pydict({**columns, self.value: pa.array(values)})

    def _reach(self) -> tuple[int, int]:
        """L levels, on each of which a record counts once: see the proof note."""
        levels = self._tree.levels
        return levels, levels

    def _mechanisms(self, budget: Budget) -> Any:
        """A `BinDraws` where bins are chosen, else a `Release`."""
        return self._choice(budget) if self._is_chosen else super()._mechanisms(budget)

    def _train(self, given: Given[Any]) -> dict[str, NDArray[Any]]:
        """Noisy counts of all nodes, or a bin for each key and quantile."""
        if not self._is_chosen:
            return super()._train(given)
        plan: BinDraws = given.plan
        return {"chosen": plan.release(self._totals(given.batches), given.noise)}

    def _choice(self, budget: Budget) -> BinDraws:
        """The draws of a training, before any data, which need no delta. Proof: see `choosing`."""
        return BinDraws(self.quantiles, epsilon=budget.epsilon, records_per_unit=budget.records)

    def _totals(self, batches: Batches) -> Integers:
        """The exact counts of all nodes of all keys. Raw."""
        bins = self._tree.bins
        counted = np.zeros((self._cells.unknown + 1) * bins, dtype=np.int64)
        # Codes are made in pieces that fit a cache, and counted once they are many beside the
        # nodes.
        waiting = np.empty(min(_MOST_WAITING, max(ROWS_AT_ONCE, 8 * len(counted))), dtype=np.intp)
        filled = 0
        for piece in pieces(batches):
            if filled + piece.num_rows > len(waiting):
                counted += np.bincount(waiting[:filled], minlength=len(counted))
                filled = 0
            filled += len(self._coded(piece, waiting[filled : filled + piece.num_rows]))
        counted += np.bincount(waiting[:filled], minlength=len(counted))
        return np.minimum(self._tree.counts(self._cells.plain(counted.reshape(-1, bins))), LIMIT)

    def _coded(self, piece: pa.RecordBatch, out: Codes | None = None) -> Codes:
        """The padded cell times the bins, plus the bin, of each record."""
        bins = self._tree.bins
        raw, absent = number_column(piece, self.value)
        bad = np.isnan(raw) if raw.dtype.kind == "f" else np.zeros(0, dtype=bool)
        if absent is not None:
            bad = absent | bad if len(bad) else absent
        codes = np.multiply(self._cells.codes(piece), bins, out=out)
        codes += self._binned(raw)
        if bad.any():
            codes[bad] = self._cells.unknown * bins
        return codes

    def _binned(self, raw: NDArray[np.generic]) -> NDArray[np.integer]:
        """The bin of each value by itself, whatever the value is; nulls and NaN get any."""
        last = self._tree.bins - 1
        if self.edges is not None:
            return np.asarray(np.searchsorted(self._edges[1:-1], raw, side="right"), dtype=np.intp)
        # A value near the end of float64 becomes infinite, and is clipped like one.
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.subtract(raw, self._edges[0], dtype=np.float64)
            steps *= self._tree.bins / (self._edges[-1] - self._edges[0])
            np.clip(steps, 0.0, float(last), out=steps)
            # There are less than 2^31 bins, and smaller numbers are faster.
            binned: NDArray[np.int32] = steps.astype(np.int32)
        return binned

    def _quantiles(self, arrays: Arrays) -> Floats:
        """One row for each cell and, last, one for all together."""
        if self._is_chosen:
            read = ((self._edges[:-1] + self._edges[1:]) / 2)[arrays["chosen"]]
            read = np.vstack([read, np.add.reduce(read) / len(read)])
            return np.asarray(np.maximum.accumulate(read, axis=1))
        fitted = self._tree.fitted(arrays["totals"])
        below = np.zeros((len(fitted) + 1, self._tree.bins + 1))
        np.cumsum(fitted, axis=1, out=below[:-1, 1:])
        np.cumsum(fitted.sum(axis=0), out=below[-1, 1:])
        if below[-1, -1] <= 0:
            below[-1] = np.arange(self._tree.bins + 1)
        below[below[:, -1] <= 0] = below[-1]
        wanted = below[:, -1:] * np.array(self.quantiles)
        # The sums go through 0 and the count, so every share of the count is between two of them.
        below.sort(axis=1)
        rows = np.arange(len(below))[:, None]
        bins = np.stack([(below[:, 1:] < rank[:, None]).sum(axis=1) for rank in wanted.T], axis=1)
        bins = np.minimum(bins, self._tree.bins - 1)
        low, high = below[rows, bins], below[rows, bins + 1]
        step = np.where(high > low, high - low, 1.0)
        part = np.clip((wanted - low) / step, 0.0, 1.0)
        quantiles = self._edges[bins] + part * (self._edges[bins + 1] - self._edges[bins])
        return np.asarray(np.maximum.accumulate(quantiles, axis=1))

    def _smallest(self, scale: float, target: float, near: float) -> int | None:
        """The fewest records of a key that keep the target with probability `CONFIDENCE`; None
        beyond `MAX_RECORDS`.

        ``near`` is where it is looked for first.
        """
        noises = [spread(self._tree, share) for share in self.quantiles]
        all_squares, all_largest, all_sizes = (
            np.concatenate([noise[k] for noise in noises]) for k in range(3)
        )
        squares, largest, sizes = spread(self._tree, 1.0)

        def excess(count: int) -> float:
            missed = (
                2
                * tails(
                    self.mechanism, scale, all_squares, all_largest, all_sizes, target * count
                ).sum()
            )
            # A noisy count that is not positive.
            missed += tails(
                self.mechanism, scale, squares[:1], largest[:1], sizes[:1], float(count)
            ).sum()
            return float(missed) / (1 - CONFIDENCE)

        return fewest(excess, near, MAX_RECORDS)
