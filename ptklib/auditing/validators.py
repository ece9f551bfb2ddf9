"""What validators release, as subjects of the empirical audit: the evidence of a loss test, at a
bold stake and at a careful one; the two numbers of a loss interval; the knots of a pilot; counts of
right and wrong answers; moments; the evidence of a REJECT; and, with Gaussian noise, the evidence
of a bet.

The losses are invented: some records without any, and on the other side one record more. That one
is the worst there is *whose score is odd*: the score of the very worst loss may be even, and then
the lowest bit would have nothing to tell, whatever became of its noise. Seen are the numbers that a
verdict carries, by likelihood ratio and by remainders. Of an interval the record more has an odd
loss as well, so that both of its numbers change by odd ones, and so have those of pilots and of
moments.

*Unit:* one record. *Neighbours:* one more record. No stream, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.auditing.likelihood import ratio_of_rows
from ptklib.auditing.mechanisms import DELTA, LEVEL
from ptklib.auditing.subject import Claim, OutputView, Subject
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.testing.audit import MODULI
from ptklib.validators.accuracy import AccuracyTest
from ptklib.validators.betting import LossTest
from ptklib.validators.interval import UNIT, LossInterval
from ptklib.validators.noises import Gaussian
from ptklib.validators.pilot import UNIT as PILOT_UNIT
from ptklib.validators.pilot import LossPilot
from ptklib.validators.power import stakes
from ptklib.validators.rejecting import RejectTest
from ptklib.validators.sums.means import GRID, MeanTest

__all__ = [
    "GROUP",
    "RELEASES",
    "STAKES",
    "interval_subject",
    "release_subject",
    "validator_subject",
    "validator_subjects",
]

GROUP = "validator"
_TARGET, _ETA = Fraction(1, 10), Fraction(1, 20)
# All that a planned test chooses among.
STAKES = stakes(_TARGET)
_RECORDS, _RUNS = 28, 20_000


@dataclass(frozen=True)
class _Released:
    """A release of a validator, and its raw numbers on both sides."""

    release: LaplaceRelease | GaussianRelease
    sides: list[NDArray[np.int64]]
    claim: Claim


def validator_subjects() -> list[Subject]:
    """The loss validator at the boldest of `STAKES`, and at a careful one; and the interval."""
    named = {"bold": STAKES[0], "careful": STAKES[len(STAKES) // 2]}
    return [
        *(validator_subject(f"loss validator, {name} stake", named[name]) for name in named),
        interval_subject("loss interval"),
        *(release_subject(name) for name in RELEASES),
    ]


def _pilot() -> _Released:
    pilot = LossPilot(target=_TARGET, epsilon=LEVEL)
    # Half a unit off its knot: both of its numbers are odd.
    last, before = pilot.knots[-1], pilot.knots[-2]
    loss = before + (last - before) * (PILOT_UNIT - 1.5) / PILOT_UNIT
    sides = [pilot.sums(np.zeros(_RECORDS)), pilot.sums(np.append(np.zeros(_RECORDS), loss))]
    return _Released(pilot.release, sides, Claim.of(pilot.cost))


def _accuracy() -> _Released:
    test = AccuracyTest(target=1 - _TARGET, epsilon=LEVEL, eta=_ETA)
    sides = [np.array([_RECORDS, 0]), np.array([_RECORDS, 1])]
    return _Released(test.release, sides, Claim.of(test.cost))


def _moments() -> _Released:
    test = MeanTest(tolerance=_TARGET, epsilon=LEVEL, eta=_ETA, lower=0, upper=1)
    sides = [
        test.sums(np.zeros(_RECORDS)),
        test.sums(np.append(np.zeros(_RECORDS), (GRID - 1) / GRID)),
    ]
    return _Released(test.release, sides, Claim.of(test.cost))


def _rejecting() -> _Released:
    test = RejectTest(target=_TARGET, epsilon=LEVEL, eta=_ETA, records=_RECORDS)
    before = test.evidence(np.full(_RECORDS, 0.5))
    odd = next(
        loss
        for loss in 1 - np.arange(4096) / 2**22
        if (test.evidence(np.append(np.full(_RECORDS, 0.5), loss)) - before) % 2
    )
    after = test.evidence(np.append(np.full(_RECORDS, 0.5), odd))
    return _Released(test.release, [np.array([before]), np.array([after])], Claim.of(test.cost))


def _gaussian() -> _Released:
    noise = Gaussian.of(epsilon=LEVEL, delta=DELTA)
    test = LossTest(target=_TARGET, noise=noise, eta=_ETA, stake=STAKES[len(STAKES) // 2])
    given = [np.zeros(_RECORDS), np.append(np.zeros(_RECORDS), _worst_odd(test))]
    sides = [np.array([int(test.scores(losses).sum())]) for losses in given]
    return _Released(test.release, sides, Claim.of(test.cost, float(DELTA)))


# What is released besides the evidence of a bet and an interval, by name.
RELEASES: dict[str, Callable[[], _Released]] = {
    "accuracy counts": _accuracy,
    "loss pilot": _pilot,
    "loss validator, Gaussian noise": _gaussian,
    "moments of a mean": _moments,
    "reject evidence": _rejecting,
}


def release_subject(name: str) -> Subject:
    """One of `RELEASES`, through the mechanism that its validator releases with."""
    made = RELEASES[name]()

    def sample(count: int) -> list[OutputView]:
        rows = [
            np.array([made.release.release(side).values for _ in range(count)], dtype=np.int64)
            for side in made.sides
        ]
        ratios = (ratio_of_rows(made.release, row, *made.sides) for row in rows)
        return [OutputView("likelihood", *ratios), *_remainders(rows, made.sides)]

    pair = f"{made.sides[0].tolist()}, and with one record more {made.sides[1].tolist()}"
    return Subject(name, GROUP, made.claim, pair, sample, _RUNS)


def interval_subject(name: str) -> Subject:
    """The loss interval: a record more whose loss is odd, on records without any."""
    interval = LossInterval(epsilon=LEVEL, eta=_ETA, records=_RECORDS)
    sides = [np.zeros(_RECORDS), np.append(np.zeros(_RECORDS), (UNIT - 1) / UNIT)]

    def sample(count: int) -> list[OutputView]:
        given = [interval.sums(side) for side in sides]
        released = [[interval.tell(side) for _ in range(count)] for side in sides]
        rows = [np.array([[told.losses, told.rest] for told in each]) for each in released]
        ratios = (ratio_of_rows(interval.release, row, *given) for row in rows)
        return [OutputView("likelihood", *ratios), *_remainders(rows, given)]

    pair = f"{_RECORDS} losses of 0, and with one of {sides[1][-1]:.6f} besides"
    return Subject(name, GROUP, Claim.of(interval.cost), pair, sample, _RUNS)


def _remainders(
    rows: list[NDArray[np.int64]], given: list[NDArray[np.int64]]
) -> Iterator[OutputView]:
    """How many of the numbers agree with one side rather than the other."""
    for modulus in MODULI:
        agree = [[((row - side) % modulus == 0).sum(axis=1) for side in given] for row in rows]
        yield OutputView(
            f"residues mod {modulus}",
            *(first.astype(np.int64) - second for first, second in agree),
        )


def validator_subject(name: str, stake: Fraction) -> Subject:
    """The loss validator at this stake."""
    test = LossTest(target=_TARGET, epsilon=LEVEL, eta=_ETA, stake=stake)
    sides = [np.zeros(_RECORDS), np.append(np.zeros(_RECORDS), _worst_odd(test))]

    def sample(count: int) -> list[OutputView]:
        return _views(test, sides, count)

    pair = f"{_RECORDS} losses of 0, and with one of {sides[1][-1]:.4f} besides"
    return Subject(name, GROUP, Claim.of(test.cost), pair, sample, _RUNS)


def _views(test: LossTest, sides: list[NDArray[np.float64]], count: int) -> list[OutputView]:
    given = [np.array([int(test.scores(side).sum())]) for side in sides]
    told = [
        np.array([[test.verdict(side).evidence] for _ in range(count)], dtype=np.int64)
        for side in sides
    ]
    views = [
        OutputView(
            "likelihood", *(ratio_of_rows(test.release, evidence, *given) for evidence in told)
        ),
    ]
    for modulus in MODULI:
        agree = [[(evidence - value) % modulus == 0 for value in given] for evidence in told]
        seen = (np.ravel(first).astype(np.int64) - np.ravel(second) for first, second in agree)
        views.append(OutputView(f"residues mod {modulus}", *seen))
    return views


def _worst_odd(test: LossTest) -> float:
    """The largest loss that has an odd score: a few units below the worst."""
    losses = 1 - np.arange(256) / 4096
    return float(losses[np.flatnonzero(test.scores(losses) % 2)[0]])
