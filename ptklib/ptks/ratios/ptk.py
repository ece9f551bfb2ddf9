"""Ratios of the sums of two columns by public keys: tips over fares, clicks over views, failures
over attempts.

What is released ---------------- Numerator and denominator become whole numbers u and v of steps
between 0 and public bounds, and a record's own ratio has a public bound too: a larger numerator is
clipped to it. Every key has two totals, of two *forms* a u + b v that `ratios_forms` chooses from
the bounds alone so that the ratio has the least noise. With tight bounds and a good ``expected``
that is less than half, in standard deviation, of what a split of epsilon between the two sums
leaves; with a loose bound on the ratio and no ``expected`` it can be more. All totals get noise of
one scale, empty keys too.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity:* a record is in one key or none, u and v are whole, 0
to D, with u <= slope v in exact arithmetic; so it moves both totals of that key together by at most
the reach of the forms (L1, L2: `ratios_forms`), r records by r times that. Totals are exact.
*Cost:* that of one `LaplaceRelease` or `GaussianRelease` of all totals at that sensitivity.
*Windows:* totals of the last state are added, which is post-processing; their records are others.

Rules -----
* A record whose key is null or not in the domain, or with a null or NaN in either column,
  contributes nothing and has loss 0; so does a record with a denominator that rounds to 0 steps.
  Values outside the bounds, infinities too, are clipped.
* Features of a key: ``ratio`` between 0 and its bound, ``denominator`` (0 where the noisy sum is
  below) and ``numerator`` = ratio times denominator. Where the noisy sum of denominators is not
  positive, or the key is unknown, the ratio is that of all records together; if that is not
  positive either, ``expected``, or half the bound.
* Loss: the squared distance of a record's ratio to that of its key over the squared bound, weighted
  by its denominator over the bound of denominators. Exact totals minimise its mean.

Reasons: those of `ptk`, `cells`, `keys` and `noisy_totals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Codes, Key
from ptklib.columns.numbers import number_column, steps_between
from ptklib.config import demand, demand_distinct
from ptklib.errors import InvalidInput
from ptklib.price_first import PriceFirst
from ptklib.ptk import Arrays, Batches, Ptk, Tags
from ptklib.ptks.ratios.forms import Forms, best_forms
from ptklib.ptks.tables.adding import Adder
from ptklib.ptks.tables.cells import pieces, prefixed
from ptklib.ptks.tables.keyed import Keyed
from ptklib.ptks.tables.noisy_totals import Release, check_totals

__all__ = ["STEPS", "Ratios"]

STEPS = 4096
# Slopes are rounded up to such fractions, so that u <= slope v is exact in float64.
_FINEST = 1024

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Ratios(Keyed, PriceFirst[Release], Ptk):
    """Ratios of two sums by public keys. See the module for what is released and the proof note."""

    kind: ClassVar[str] = "ratios"
    tags: ClassVar[Tags] = Tags(mergeable=True, combines=True, exact_minimiser=True)

    keys: tuple[Key, ...]
    numerator: str
    denominator: str
    denominator_upper: float
    ratio_upper: float  # of a record's own ratio
    numerator_upper: float | None = (
        None  # ratio_upper * denominator_upper when None, which it never exceeds
    )
    expected: float | None = (
        None  # noise is least for ratios from half to one and a half times this; all when None
    )
    statistics: tuple[Literal["ratio", "numerator", "denominator"], ...] = ("ratio",)
    mechanism: Literal["laplace", "gaussian"] = "laplace"
    prefix: str | None = None  # of feature names; the columns when None

    def check(self) -> None:
        """Positive bounds, an expected ratio inside them, statistics asked for once each."""
        self._cells.check(arrays=2)
        demand(
            self.numerator != self.denominator,
            "numerator and denominator must be two columns",
            field="numerator",
        )
        for name in ("denominator_upper", "ratio_upper", "numerator_upper"):
            bound = getattr(self, name)
            demand(
                bound is None or 1e-100 < bound < 1e100,
                f"{name} must be above 0, at most 1e100, got {bound}",
                field=name,
            )
        demand(
            self._slope < 2**20,
            "numerator_upper must be at least a millionth of ratio_upper * denominator_upper",
            field="numerator_upper",
        )
        inside = self.expected is None or 0 < self.expected <= self.ratio_upper
        demand(
            inside,
            f"expected must be above 0 and at most ratio_upper, got {self.expected}",
            field="expected",
        )
        demand_distinct(self.statistics, field="statistics")
        self._state_tags(needs_delta=self.mechanism == "gaussian")

    @property
    def _numerator_upper(self) -> float:
        """What D steps of the numerator are."""
        most = self.ratio_upper * self.denominator_upper
        return most if self.numerator_upper is None else min(most, self.numerator_upper)

    @property
    def _unit(self) -> float:
        """The ratio that one step over one step is."""
        return self._numerator_upper / self.denominator_upper

    @cached_property
    def _slope(self) -> Fraction:
        """u <= slope v: the largest ratio in steps, at least 1."""
        return max(
            Fraction(1), Fraction(math.ceil(self.ratio_upper / self._unit * _FINEST), _FINEST)
        )

    @cached_property
    def _forms(self) -> Forms:
        low, high = Fraction(0), self._slope
        if self.expected is not None:
            middle = Fraction(self.expected / self._unit).limit_denominator(10**6)
            low, high = middle / 2, min(high, middle * 3 / 2)
        return best_forms(STEPS, self._slope, low, high, self.mechanism == "gaussian")

    def columns(self) -> tuple[str, ...]:
        """The key columns, then numerator and denominator."""
        return tuple(dict.fromkeys([*self.feature_columns(), self.numerator, self.denominator]))

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        self.validate(arrays)
        # An unknown key has the ratio NaN: its loss is set to 0.
        table = self._cells.pad(self._read(arrays)["ratio"][:-1], np.nan)
        losses = [np.zeros(0)]
        for codes, u, v in self._coded(batches):
            ratio = self._unit * u / np.where(v > 0, v, 1.0)
            losses.append(v / STEPS * np.square((ratio - table[codes]) / self._most))
        return np.clip(np.nan_to_num(np.concatenate(losses)), 0.0, 1.0)

    def working_bytes(self, records: int) -> int:
        """Totals of all cells; of a record its loss alone, for training reads in one pass."""
        return self._cells.working_bytes(records, arrays=3)

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_<statistic>`` in the order asked for."""
        return prefixed(self.prefix, self.columns(), self.statistics)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """The ratio and the sums of each row's key, as float64.

        Rules for unknown keys: see the module.
        """
        self.validate(arrays)
        columns = self._read(arrays)
        asked = zip(self.feature_names(), self.statistics, strict=True)
        return self._cells.look_up(table, {feature: columns[name] for feature, name in asked})

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration, and so do the forms."""
        check_totals(
            {name: arrays[name] for name in arrays if name != "forms"},
            (self._cells.size, 2),
            kind=self.kind,
        )
        forms, wanted = arrays.get("forms"), self._forms.matrix
        if (
            not isinstance(forms, np.ndarray)
            or forms.dtype != wanted.dtype
            or not np.array_equal(forms, wanted)
        ):
            raise InvalidInput(
                "PTK_MISMATCH",
                f"forms of a {self.kind} state must be {wanted.tolist()}, got others",
            )

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Uniform keys, denominators and ratios; some denominators at their bound, some ratios at
        theirs.
        """
        generator = np.random.default_rng(seed)
        columns = self._cells.example(rows, generator)
        below = np.minimum(generator.uniform(0, 1.25, rows), 1.0) * self.denominator_upper
        above = below * np.minimum(generator.uniform(0, 1.25, rows), 1.0) * self.ratio_upper
        return pa.RecordBatch.from_pydict(
            {**columns, self.numerator: above, self.denominator: below}
        )

    @property
    def _most(self) -> float:
        """The largest ratio that a record can have, the rounded slope included."""
        return float(self._slope) * self._unit

    def _reach(self) -> tuple[int, int]:
        """That of the forms: see the proof note."""
        return self._forms.l1, self._forms.l2_squared

    def _whole(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """With the forms, which say what the totals are of."""
        return {**arrays, "forms": self._forms.matrix}

    def _totals(self, batches: Batches) -> Integers:
        """The exact totals of both forms of all keys.

        Raw. Far from the end of int64 for any number of records.
        """
        sums = np.zeros((2, self._cells.unknown + 1), dtype=np.int64)
        adder = Adder(sums.shape[1])
        for codes, u, v in self._coded(batches):
            places = adder.places(codes)
            for place, values in enumerate((u, v)):
                sums[place] += adder.sums(places, values)
        return self._forms.totals(*(self._cells.plain(sum_) for sum_ in sums))

    def _coded(self, batches: Batches) -> Iterator[tuple[Codes, Floats, Floats]]:
        """The cell, u and v of each record, each from that record alone; both 0 where something is
        missing.
        """
        for piece in pieces(batches, self._cells.size):
            codes = self._cells.codes(piece)
            u, no_u = steps_between(
                number_column(piece, self.numerator), 0.0, self._numerator_upper, STEPS
            )
            v, no_v = steps_between(
                number_column(piece, self.denominator), 0.0, self.denominator_upper, STEPS
            )
            if no_u is not None:
                v[no_u] = 0.0
            if no_v is not None:
                u[no_v] = 0.0
            # Exact: the product is whole, and the quotient is whole or further from a whole number
            # than it is rounded.
            np.minimum(u, np.floor(v * self._slope.numerator / self._slope.denominator), out=u)
            yield codes, u, v

    def _read(self, arrays: Arrays) -> dict[str, Floats]:
        """Of each key and, last, of an unknown one."""
        totals = np.vstack([arrays["totals"], arrays["totals"].sum(axis=0, dtype=np.float64)])
        u, v = self._forms.read(totals)
        ratio = np.clip(u / np.where(v > 0, v, 1.0) * self._unit, 0.0, self._most)
        if v[-1] <= 0:
            ratio[-1] = self.ratio_upper / 2 if self.expected is None else self.expected
        ratio[v <= 0] = ratio[-1]
        below = np.maximum(v, 0.0) * (self.denominator_upper / STEPS)
        below[-1] = 0.0
        return {"ratio": ratio, "denominator": below, "numerator": ratio * below}
