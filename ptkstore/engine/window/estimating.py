"""Tests of states that promise nothing: how large is the loss, with an interval. From public and DP
numbers alone.

Where such a test lies is as for all others (`trials`), and so is its price: the highest there is room
for on streams that use the surplus, else the lowest at which the interval would be at most `FINE`
wide, or the highest. An interval that would be more than `COARSE` wide even then says too little to
be worth its charge (TEST_TOO_SMALL). Widths are those for a mean loss of 1/2, the worst.

No verdict follows from what is told, and every state is told once, so no confidence is divided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ptklib.validators.interval import METHOD, LossInterval
from ptkstore.api.stream_spec import SURPLUS, StreamSpec
from ptkstore.engine.plans.planning import records_per_unit
from ptkstore.engine.steps.assigned import Assigned

__all__ = ["COARSE", "ETA", "FINE", "RangeTrial", "WantedRange", "is_range"]

# How often an interval may not hold the mean loss.
ETA = Fraction(1, 20)
FINE, COARSE = 0.05, 0.25
_MOST = 1 << 40

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RangeTrial:
    """The test of one state: where, and on how many records as planned."""

    test: LossInterval
    ranges: Ranges
    records: int

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; tags as texts, for they do not fit doubles."""
        ranges = [[str(start), str(stop)] for start, stop in self.ranges]
        return {"test": self.test.as_json(), "ranges": ranges, "records": self.records}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RangeTrial:
        """Read `as_json` back."""
        ranges = tuple((int(start), int(stop)) for start, stop in body["ranges"])
        return cls(LossInterval.from_json(body["test"]), ranges, body["records"])


def is_range(body: Mapping[str, Any]) -> bool:
    """Whether a test as it was written is one of these."""
    return bool(body["test"]["method"] == METHOD)


class WantedRange:
    """A state that wants to know its loss, and how many records that takes at each price."""

    def __init__(self, spec: StreamSpec, state: Assigned, prices: Sequence[Fraction]) -> None:
        """``prices`` rise."""
        self.state = state
        self._prices, self._units = tuple(prices), records_per_unit(spec)
        self._frugal = spec.use != SURPLUS

    @property
    def least(self) -> int:
        """At the highest price; more than any window holds where there is no price."""
        return _needed(self._prices[-1], self._units) if self._prices else 1 << 62

    def price(self, records: int) -> Fraction | None:
        """The one to take where so many records tell the loss at some price."""
        if records < self.least:
            return None
        good = (
            price
            for price in self._prices
            if self._frugal and _width(price, records, self._units) <= FINE
        )
        return next(good, self._prices[-1])

    def trial(self, ranges: Ranges, records: int) -> RangeTrial:
        """The test on so many records there."""
        price = self.price(records)
        assert price is not None
        return RangeTrial(_interval(price, records, self._units), ranges, records)

    def told(self, records: int) -> str:
        """Why there is none."""
        if not self._prices:
            return "BUDGET_TOO_SMALL: the stream has no epsilon left for a test"
        return (
            f"TEST_TOO_SMALL: to tell the error takes about {self.least:,} records of the profile "
            f"slice, and its part has about {records:,}"
        )


def _interval(price: Fraction, records: int, units: int) -> LossInterval:
    return LossInterval(epsilon=price, eta=ETA, records=max(1, records), records_per_unit=units)


@lru_cache(maxsize=1024)
def _width(price: Fraction, records: int, units: int) -> float:
    return _interval(price, records, units).width


@lru_cache(maxsize=1024)
def _needed(price: Fraction, units: int) -> int:
    """Records for an interval of `COARSE` width."""
    low, high = 0, 64
    while _width(price, high, units) > COARSE and high < _MOST:
        low, high = high, 2 * high
    while high - low > max(1, high // 64):
        middle = (low + high) // 2
        low, high = (low, middle) if _width(price, middle, units) <= COARSE else (middle, high)
    return high
