"""Where in a window new states are tested, how, and at which price. From public and DP numbers alone.

A test is fresh where nothing that made the state had touched its records. So it lies in the part of
the profile slice (which no plan trains on) where nothing was charged in this window but the count:
what a profile used decided levels and numbers of samples. What is left of the slice is cut into
equal parts, one for each state whose test fits its part: that has, at some price, enough records to
accept in nine of ten cases a loss of `LIKELY` times its target. The price is the highest there is room
for, as nothing else will ever be charged to these records and more epsilon is more power; streams
that take the minimum pay the least that is enough. The test of a PTK on trial is always made, at the
highest price: without it there is no version.

A test that would most likely fail for want of records is not made: nothing is charged, and the
state is told as NOT_TESTED, with the reason:

* TEST_SLICE_USED: nothing of the profile slice is left;
* TEST_TOO_SMALL: its part has too few records, at any price;
* MEMORY_TOO_SMALL: a worker has too little memory for it;
* TARGET_TRIVIAL: losses are at most 1, and so is the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from profiler.on_trial import ETA, likely_loss
from ptklib.errors import Refused
from ptklib.ledger.slices import TAG_SPACE, TagRange
from ptklib.validators.betting import LossTest
from ptklib.validators.power import planned_test, samples_needed
from ptklib.validators.verdict import eta_of_attempt
from ptkstore.api.stream_spec import SURPLUS, StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import (
    Candidate,
    fresh_loss,
    ptk_of,
    records_per_unit,
)
from ptkstore.engine.plans.window_size import terms_of
from ptkstore.engine.profiles.on_trial import trial_price, trial_prices
from ptkstore.engine.room.memory import (
    MEMORY_TOO_SMALL,
    most_in_slice,
    most_in_window,
    require_room,
    training_bytes,
)
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.engine.steps.of_ptks import ValidationList

__all__ = ["LIKELY", "Trial", "plan_trials", "testable"]

# What the loss of a good state is taken to be, as a share of its target.
LIKELY = Fraction(4, 5)
_CELLS = 64

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Trial:
    """The test of one state: where, on how many records as planned, and the number of the
    attempt.
    """

    test: LossTest
    ranges: Ranges
    records: int
    attempt: int

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; tags as texts, for they do not fit doubles."""
        ranges = [[str(start), str(stop)] for start, stop in self.ranges]
        test = self.test.as_json()
        return {
            "test": test,
            "ranges": ranges,
            "records": self.records,
            "attempt": self.attempt,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Trial:
        """Read `as_json` back."""
        ranges = tuple((int(start), int(stop)) for start, stop in body["ranges"])
        return cls(LossTest.from_json(body["test"]), ranges, body["records"], body["attempt"])


def plan_trials(
    parts: Parts,
    spec: StreamSpec,
    blocks: Sequence[str],
    dp_records: int,
    states: Sequence[Assigned],
) -> ValidationList:
    """The tests of these states, and why others have none."""
    free = _free(parts, spec, blocks)
    if not free:
        return ValidationList({}, {state.name: "TEST_SLICE_USED" for state in states})
    with parts.metadata.read() as tx:
        attempts = {state.name: tx.states.attempt(state.ptk) for state in states}
    prices, untested = trial_prices(spec, parts.privacy_filter(spec.name)), {}
    wanted = []
    for state in states:
        if state.target >= 1:
            untested[state.name] = "TARGET_TRIVIAL"
        else:
            wanted.append(_Wanted(spec, state, attempts[state.name], prices))
    width = sum(stop - start for start, stop in free)
    while wanted:
        records = int(Fraction(width, TAG_SPACE * len(wanted)) * dp_records)
        small = [asked for asked in wanted if asked.price(records) is None]
        if not small:
            break
        # Those that need most leave first: what they would have had is for the others.
        worst = max(small, key=lambda asked: (asked.least, asked.state.name))
        untested[worst.state.name] = worst.told(records)
        wanted.remove(worst)
    trials = {}
    window = most_in_window(dp_records, len(blocks), spec)
    for place, asked in enumerate(wanted):
        ranges = _part(free, width * place // len(wanted), width * (place + 1) // len(wanted))
        try:
            _require_memory(parts, spec, asked.state, window, ranges)
        except Refused:
            untested[asked.state.name] = MEMORY_TOO_SMALL
            continue
        trials[asked.state.name] = asked.trial(ranges, records).as_json()
    return ValidationList(trials, untested)


def testable(
    parts: Parts,
    spec: StreamSpec,
    blocks: Sequence[str],
    dp_records: int,
    due: Sequence[Candidate],
) -> list[Candidate]:
    """Those that are due, without PTKs on trial for whose test this window has too few fresh records:
    they would train for nothing.
    """
    if not any(candidate.on_trial for candidate in due):
        return list(due)
    free, price = _free(parts, spec, blocks), trial_price(spec, parts.privacy_filter(spec.name))
    sharing = sum(candidate.measured is not None for candidate in due)
    width = sum(stop - start for start, stop in free)
    records = int(Fraction(width, TAG_SPACE * sharing) * dp_records)

    def has_test(candidate: Candidate) -> bool:
        terms = terms_of(spec, candidate)
        return price is not None and likely_loss(terms, records=records, epsilon=price) is not None

    return [candidate for candidate in due if not candidate.on_trial or has_test(candidate)]


class _Wanted:
    """A state that wants a test, and how many records it needs at each price."""

    def __init__(
        self, spec: StreamSpec, state: Assigned, attempt: int, prices: Sequence[Fraction]
    ) -> None:
        self.state, self.attempt = state, attempt
        self.terms: dict[str, Any] = {
            "target": repr(state.target),
            "eta": eta_of_attempt(ETA, attempt),
            "records_per_unit": records_per_unit(spec),
        }
        loss = Fraction(repr(state.target)) * LIKELY
        needed = {price: samples_needed(epsilon=price, loss=loss, **self.terms) for price in prices}
        self.needed = {price: count for price, count in needed.items() if count is not None}
        self.highest = max(prices, default=None) if state.on_trial or spec.use == SURPLUS else None

    @property
    def least(self) -> int:
        """At the highest price; more than any window holds where there is no price."""
        return min(self.needed.values(), default=1 << 62)

    def price(self, records: int) -> Fraction | None:
        """The one to take where so many records are enough at some price, or on trial."""
        if self.state.on_trial:
            return self.highest
        least = next((price for price, count in self.needed.items() if count <= records), None)
        return least if least is None or self.highest is None else self.highest

    def trial(self, ranges: Ranges, records: int) -> Trial:
        price = self.price(records)
        assert price is not None
        test = planned_test(epsilon=price, records=records, **self.terms)
        return Trial(test, ranges, records, self.attempt)

    def told(self, records: int) -> str:
        if not self.needed:
            return "BUDGET_TOO_SMALL: the stream has no epsilon left for a test"
        return (
            f"TEST_TOO_SMALL: a test needs about {self.least:,} records of the profile slice, "
            f"and its part has about {records:,}"
        )


def _free(parts: Parts, spec: StreamSpec, blocks: Sequence[str]) -> Ranges:
    """The ranges of the profile slice on which nothing lies but the count of their blocks."""
    fresh = fresh_loss(spec, parts.privacy_filter(spec.name))
    width = Fraction(spec.profile_share) / _CELLS
    free: list[tuple[int, int]] = []
    for place in range(_CELLS if width else 0):
        ends = ((width * end).limit_denominator(10**15) for end in (place, place + 1))
        cell = TagRange.of_shares(*ends)
        loss = parts.ledger.peak(spec.name, blocks, cell)
        if any(amount > most for amount, most in zip(loss, fresh, strict=True)):
            continue
        if free and free[-1][1] == cell.start:
            free[-1] = (free[-1][0], cell.stop)
        else:
            free.append((cell.start, cell.stop))
    return tuple(free)


def _part(ranges: Ranges, start: int, stop: int) -> Ranges:
    """From the start-th to the stop-th tag of some ranges, counted along them."""
    cut = []
    for first, last in ranges:
        length = last - first
        if start < length and stop > 0:
            cut.append((first + max(0, start), first + min(length, stop)))
        start, stop = start - length, stop - length
    return tuple(cut)


def _require_memory(
    parts: Parts, spec: StreamSpec, state: Assigned, window: int, ranges: Ranges
) -> None:
    share = Fraction(sum(stop - start for start, stop in ranges), TAG_SPACE)
    most = most_in_slice(window, share, records_per_unit(spec))
    ptk = ptk_of(state.kind, state.config)
    needed = training_bytes(spec, ptk, window=window, most=most)
    require_room(needed, parts.workers.memory_bytes, "a test")
