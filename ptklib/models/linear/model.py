"""Linear regression with differential privacy: a number between public bounds, as a sum of one
coefficient for each entry of a row.

Mechanisms
----------
=========  ==========================================================  ===========================
mechanism  what is released                                            when
=========  ==========================================================  ===========================
boosted    products of entries, then rounds of products of entries     the default; holds two bytes
           with what is left of the label (`boosting`)                 of each entry while it trains
moments    products of all entries and the label, once (`moments`)     records pass by once
laplace    the same with Laplace noise                                 delta 0
adassp     three releases (`adassp`)                                   the published reference
=========  ==========================================================  ===========================

**Proof note.** *Unit, neighbours, sensitivity:* see the mechanism. A record without a label moves
nothing. *Cost:* Gaussian mechanisms that sum to one Gaussian, one Gaussian, one discrete Laplace,
or a sum of three Gaussians (`plans`). *Windows:* with ``previous`` the state is the mean of all
windows' models, each counting alike: post-processing.

Rules
-----
* Those of `inputs` and `labels`: no value of a record is refused.
* Predictions are clipped to the bounds of the label. Without an intercept, a row of zeros is
  predicted to be the middle of the bounds.
* Intervals of coefficients (`coefficients`) hold the noise, what the filter has not learned and the
  sampling of records. Directions of which the records say nothing, such as the sum of all values of
  a listed input less the intercept, are as uncertain as they were at first.

Reasons: those of `model`, `ptk`, `amounts` and the mechanisms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.models.labels import NumberLabel
from ptklib.models.linear.adassp import adassp
from ptklib.models.linear.boosting import boosted
from ptklib.models.linear.fitted import Fitted
from ptklib.models.linear.moments import moments
from ptklib.models.linear.plans import AdasspPlan, BoostedPlan, LinearPlan, plan_of
from ptklib.models.linear.structure import Structure
from ptklib.models.model import Model
from ptklib.models.products import exact_product
from ptklib.models.rows import InputRows
from ptklib.price_first import Budget, Given, PriceFirst, windows_after
from ptklib.ptk import Arrays, Tags, check_arrays

__all__ = ["LinearRegression"]

# Products of all pairs are released, so twice as many entries are four times as much work.
_MAX_ENTRIES = 1 << 10
_MAX_ROUNDS = 64
# Of a pair of entries: sums, noise and what is computed with them, several times over.
_PAIR_BYTES = 640
_MOST = 2.0**20

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LinearRegression(PriceFirst[LinearPlan], Model):
    """Linear regression with differential privacy.

    See the module for what is released and the proof note.
    """

    kind: ClassVar[str] = "linear_regression"
    tags: ClassVar[Tags] = Tags(supervised=True)

    lower: float  # bounds of the label
    upper: float
    mechanism: Literal["boosted", "moments", "laplace", "adassp"] = "boosted"
    rounds: int | None = None  # of boosting; 8 when None

    def check(self) -> None:
        """Rows that are not too wide, a label with bounds, rounds where there are such."""
        super().check()
        demand(
            self._structure.width <= _MAX_ENTRIES,
            f"inputs must have at most {_MAX_ENTRIES - 1} entries in all, got "
            f"{self._structure.width - 1}",
            field="inputs",
        )
        demand(
            self.intercept or self.mechanism != "adassp",
            "mechanism 'adassp' needs an intercept: it does not centre the label",
            field="intercept",
        )
        demand(
            self.rounds is None
            or (self.mechanism == "boosted" and 1 <= self.rounds <= _MAX_ROUNDS),
            f"rounds must be 1 to {_MAX_ROUNDS}, of mechanism 'boosted', got {self.rounds}",
            field="rounds",
        )
        self._state_tags(needs_delta=self.mechanism != "laplace")

    @property
    def target(self) -> NumberLabel:
        """The number between its bounds."""
        return NumberLabel(self.label, self.lower, self.upper)

    @cached_property
    def _structure(self) -> Structure:
        """Of rows with a constant, whether or not it has a coefficient."""
        return Structure(InputRows(self.inputs, self.scaling, self.norm, True), self.intercept)

    def working_bytes(self, records: int) -> int:
        """Boosting holds all rows, at two bytes for each entry; all hold what is known of pairs."""
        width = self._structure.width
        rows = (2 * width + 2) * records if self.mechanism == "boosted" else 0
        return super().working_bytes(records) + _PAIR_BYTES * width**2 + rows

    def coefficients(self, arrays: Arrays, *, level: float = 0.95) -> pa.Table:
        """The coefficients to be looked at: ``entry`` (`InputRows.names`), ``coefficient``, in the
        unit of the label for an entry of 1, and the ``lower`` and ``upper`` end of an interval that
        covers the coefficient of the population at this level. Post-processing: free.
        """
        self.validate(arrays)
        demand(0 < level < 1, f"level must be between 0 and 1, got {level}", field="level")
        half = self.target.half
        values = arrays["coefficients"] * half
        spread = np.sqrt(np.maximum(np.diagonal(arrays["covariance"]), 0.0)) * half
        reach = NormalDist().inv_cdf((1 + level) / 2) * spread
        middle = np.zeros(len(values))
        if self.intercept:
            middle[-1] = self.target.middle
        return pa.table(
            {
                "entry": list(self.rows.names),
                "coefficient": values + middle,
                "lower": values + middle - reach,
                "upper": values + middle + reach,
            }
        )

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; no number is beyond its
        limits."""
        width = self.rows.width
        wanted: dict[str, tuple[str, tuple[int, ...]]] = {
            "coefficients": ("float64", (width,)),
            "covariance": ("float64", (width, width)),
            "deviation": ("float64", (1,)),
            "records": ("float64", (1,)),
            "windows": ("int64", (1,)),
        }
        check_arrays(arrays, wanted, kind=self.kind)
        near = np.all(np.abs(arrays["coefficients"]) <= _MOST)
        if not near or arrays["windows"][0] < 1 or arrays["records"][0] < 0:
            raise InvalidInput(
                "PTK_MISMATCH", "coefficients must be within 2**20, windows 1 or more, records 0"
            )

    def _mechanisms(self, budget: Budget) -> LinearPlan:
        return plan_of(self.mechanism, self._structure, self.rounds, budget)

    def _train(self, given: Given[LinearPlan]) -> Arrays:
        """By the mechanism; a mean of windows with the last state. See the module."""
        fitted = self._fitted(given)
        state: dict[str, NDArray[np.float64] | NDArray[np.int64]] = {
            "coefficients": np.clip(fitted.coefficients, -_MOST, _MOST),
            "covariance": np.ascontiguousarray(fitted.covariance),
            "deviation": np.array([fitted.deviation]),
            "records": np.array([fitted.records]),
            "windows": windows_after(given.previous),
        }
        if given.previous is not None:
            share = 1 / float(state["windows"][0])
            for name, power in (("coefficients", 1), ("covariance", 2), ("deviation", 1)):
                old = given.previous[name]
                state[name] = share**power * state[name] + (1 - share) ** power * old
        return state

    def _fitted(self, given: Given[LinearPlan]) -> Fitted:
        plan, target = given.plan, self.target
        if isinstance(plan, BoostedPlan):
            return boosted(self._structure, target, plan, given.batches, given.noise)
        if isinstance(plan, AdasspPlan):
            return adassp(self._structure, target, plan, given.batches, given.noise)
        return moments(self._structure, target, plan, given.batches, given.noise)

    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        return self.target.predictions(exact_product(rows, arrays["coefficients"]))
