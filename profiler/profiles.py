"""The measured profile of a PTK, where it has no closed form: a few levels and a curve through
them.

*Cost of a measured profile:* all its charges are reserved before anything runs, or nothing is
(REFUSED). At every point exactly the charges stay whose mechanisms ran there; the rest is released,
also when a level fails or the profile is cancelled. The price of the worst case is
`Schedule.worst_case`, before the start; what was spent is `MeasuredProfile.spent`.

*Privacy:* pieces are disjoint; on a train piece runs one training and one lower-bound number, on
each part of a piece to be read one training, on a validation piece one look for each sample size
and a few readings. Which of them run depends on released numbers alone, so the ledger, a filter at
every point, composes them adaptively. Curve, band and samples are post-processing.

Reasons: those of `schedule`, `grid` and `analytic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from profiler import curve as curves
from profiler.analytic import Profile
from profiler.grid import MEASURED, chosen, first_size
from profiler.measuring.against import measured_constant
from profiler.measuring.bench import Bench
from profiler.measuring.constant import Constant
from profiler.measuring.measure import Progress, measure
from profiler.measuring.pieces import Piece, price_at
from profiler.measuring.results import (
    CONFIDENCE,
    FAILED,
    NOT_REACHED,
    REACHED,
    REFUSED,
    RISK_ABOVE_TARGET,
    SKIPPED,
    TRIED,
    LevelResult,
)
from profiler.measuring.schedule import Schedule, schedule
from profiler.measuring.tasks import Noise, SystemNoise, check_losses
from profiler.measuring.terms import ProfileTerms
from ptklib.errors import Refused
from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.ptk import Ptk

__all__ = ["CERTIFIES", "MEASURED_SOURCE", "ON_TRIAL", "MeasuredProfile", "measured_profile"]

MEASURED_SOURCE = "measured"
# What a profile is evidence of: that a state trained as planned keeps the target. One that does not
# say so was measured by an older rule, for the risk of one witness.
CERTIFIES = "retraining"
# Or of nothing but where to try: each state is published only if its own test accepts (`on_trial`).
ON_TRIAL = "each state"


@dataclass(frozen=True)
class MeasuredProfile:
    """A profile with what it was made of.

    ``spent`` is the price at the points of each piece that was opened.
    """

    profile: Profile
    results: tuple[LevelResult, ...]
    curve: curves.Curve | None
    spent: Mapping[Piece, Cost]
    expected_records: int
    constant: Constant | None = None
    certifies: str = CERTIFIES

    @property
    def trainings(self) -> int:
        """How many DP trainings ran; that of a constant is none of them."""
        return sum(result.trainings for result in self.results)

    @property
    def vain(self) -> bool:
        """True when the target is kept by a constant."""
        return self.constant is not None and self.constant.meets(self.profile.promised)

    @property
    def status(self) -> str:
        """TRIED where states will have to show it; REACHED where some level was; else what the
        highest level says.
        """
        if self.certifies == ON_TRIAL:
            return TRIED
        return (
            REACHED
            if any(result.status == REACHED for result in self.results)
            else self.results[-1].status
        )

    def _ends(self, level: Fraction) -> list[int] | None:
        band = None if self.curve is None else self.curve.band(level)
        return None if band is None else [math.floor(band[0]), math.ceil(band[1])]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, without states."""
        return {
            "profile": self.profile.as_json(),
            "certifies": self.certifies,
            "results": [result.as_json() for result in self.results],
            "curve": None if self.curve is None else self.curve.as_json(),
            "band": [self._ends(level) for level in self.profile.levels],
            "spent": {piece.name: cost.as_json() for piece, cost in self.spent.items()},
            "status": self.status,
            "trainings": self.trainings,
            "expected_records": self.expected_records,
            "constant": None if self.constant is None else self.constant.as_json(),
        }


def measured_profile(
    ptk: Ptk,
    terms: ProfileTerms,
    levels: Sequence[Number],
    bench: Bench,
    expected_records: int,
    *,
    count: int = MEASURED,
    highest: Number | None = None,
    noise: Noise | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    known: Mapping[Fraction, LevelResult] | None = None,
    finished: Callable[[LevelResult], None] | None = None,
    plan: Schedule | None = None,
) -> MeasuredProfile:
    """Measure ``count`` of the levels, none above ``highest``, and fit the rest.

    ``known`` are levels that were measured before a restart, ``finished`` hears of each one as it
    ends. A ``plan`` made before from the same arguments may be given.
    """
    grid = tuple(epsilon_exact(level, name="level") for level in levels)
    known = dict(known or {})
    if plan is None:
        most = None if highest is None else epsilon_exact(highest, name="highest")
        plan = schedule(ptk, terms, chosen(grid, count, highest=most), expected_records)
    todo = [level.level for level in plan.levels if level.level not in known]
    charges = [charge for level in todo for charge in plan.at(level).charges]
    # Told with the highest level: a window that goes on has told it, or does without.
    held_against = plan.constant if plan.levels[-1].level in todo else None
    charges += [] if held_against is None else held_against.charges
    wrong = check_losses(ptk, grid[-1], terms.delta) if todo else ""
    if wrong:
        return _profile(plan, grid, _all(todo, FAILED, wrong, known))
    try:
        bench.reserve(charges)
    except Refused as refusal:
        return _profile(plan, grid, _all(todo, REFUSED, refusal.reason, known))
    try:
        results = _stages(
            ptk, plan, bench, noise or SystemNoise(), known, progress, cancelled, finished
        )
        looked = results[-1].status in (REACHED, NOT_REACHED)
        looked = looked and held_against is not None
        constant = measured_constant(ptk, plan, bench, noise or SystemNoise()) if looked else None
    finally:
        # What was opened stays charged; the bench knows what that is.
        bench.release(charges)
    return _profile(plan, grid, results, constant)


def _stages(
    ptk: Ptk,
    plan: Schedule,
    bench: Bench,
    noise: Noise,
    known: Mapping[Fraction, LevelResult],
    progress: Progress | None,
    cancelled: Callable[[], bool] | None,
    finished: Callable[[LevelResult], None] | None,
) -> list[LevelResult]:
    """The highest level, then the others side by side, unless it has said all there is to say."""
    levels = [level.level for level in plan.levels]
    results = dict(known)

    def go(wanted: Sequence[Fraction], first: int) -> None:
        rest = [level for level in wanted if level not in results]
        level_results = measure(
            ptk,
            plan,
            rest,
            bench,
            noise,
            first=first,
            progress=progress,
            cancelled=cancelled,
            finished=finished,
        )
        results.update({level_result.level: level_result for level_result in level_results})

    go(levels[-1:], 0)
    top = results[levels[-1]]
    if top.status in (NOT_REACHED, RISK_ABOVE_TARGET):
        for level in levels[:-1]:
            told = (
                "the minimal risk is above the target at every level"
                if top.status == RISK_ABOVE_TARGET
                else ("a higher level did not reach the target")
            )
            results.setdefault(level, LevelResult(level, SKIPPED, reason=told))
    else:
        go(levels[:-1], first_size(top.estimate))
    return [results[level] for level in levels]


def _scaled(level: Fraction, results: Sequence[LevelResult]) -> int | None:
    """Below the lowest measured level, where that was reached: as many times more samples as the
    level is lower. Noise is in proportion to 1/(epsilon n), so it stays as it is, and more samples
    make the sampling error no larger.
    """
    lowest = results[0]
    if level >= lowest.level or lowest.status != REACHED or lowest.samples is None:
        return None
    return math.ceil(lowest.samples * lowest.level / level)


def _all(
    levels: Sequence[Fraction], status: str, reason: str, known: Mapping[Fraction, LevelResult]
) -> list[LevelResult]:
    fresh = {level: LevelResult(level, status, reason=reason) for level in levels}
    return [result for _, result in sorted((dict(known) | fresh).items())]


def _profile(
    plan: Schedule,
    grid: Sequence[Fraction],
    results: Sequence[LevelResult],
    constant: Constant | None = None,
) -> MeasuredProfile:
    """Fit what was measured.

    Samples: certified where measured, between these the curve lifted to what was certified, below
    them in proportion (`_scaled`); falling.
    """
    curve = curves.fit(curves.points_of(results))
    witnessed = {result.level: result.samples for result in results if result.samples is not None}
    kept: list[int | None] = []
    for level in grid:
        safe = curve.safe(level) if curve is not None else None
        samples = witnessed.get(level) or (None if safe is None else math.ceil(safe))
        samples = samples or _scaled(level, results)
        before = kept[-1] if kept else None
        kept.append(
            before if samples is None else samples if before is None else min(samples, before)
        )
    charges = {charge.name: charge for charge in plan.charges}
    spent = price_at(
        [charges[name] for result in results for name in result.charged if name in charges]
        + [charges[name] for name in (() if constant is None else constant.charged)]
    )
    profile = Profile(
        tuple(grid), tuple(kept), plan.terms.promised, CONFIDENCE, source=MEASURED_SOURCE
    )
    whole = MeasuredProfile(profile, tuple(results), curve, spent, plan.expected_records)
    return replace(whole, constant=constant)
