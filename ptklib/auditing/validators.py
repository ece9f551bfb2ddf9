"""What validators release, as subjects of the empirical audit: the evidence of a loss test, at a
bold stake and at a careful one, and the two numbers of a loss interval.

The losses are invented: some records without any, and on the other side one record more. That one
is the worst there is *whose score is odd*: the score of the very worst loss may be even, and then
the lowest bit would have nothing to tell, whatever became of its noise. Seen are the numbers that a
verdict carries, by likelihood ratio and by remainders. Of an interval the record more has an odd loss
as well, so that both of its numbers change by odd ones.

*Unit:* one record. *Neighbours:* one more record. No stream, no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.auditing.likelihood import ratio_of_rows
from ptklib.auditing.mechanisms import LEVEL
from ptklib.auditing.subject import Claim, OutputView, Subject
from ptklib.testing.audit import MODULI
from ptklib.validators.betting import LossTest
from ptklib.validators.interval import UNIT, LossInterval
from ptklib.validators.power import stakes

__all__ = ["GROUP", "STAKES", "interval_subject", "validator_subject", "validator_subjects"]

GROUP = "validator"
_TARGET, _ETA = Fraction(1, 10), Fraction(1, 20)
# All that a planned test chooses among.
STAKES = stakes(_TARGET)
_RECORDS, _RUNS = 28, 20_000


def validator_subjects() -> list[Subject]:
    """The loss validator at the boldest of `STAKES`, and at a careful one; and the interval."""
    named = {"bold": STAKES[0], "careful": STAKES[len(STAKES) // 2]}
    return [
        *(validator_subject(f"loss validator, {name} stake", named[name]) for name in named),
        interval_subject("loss interval"),
    ]


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
