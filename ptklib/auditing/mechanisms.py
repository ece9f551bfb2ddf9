"""The mechanisms themselves, each on the neighbouring inputs that its proof says are the worst.

*Releases* (Laplace, Gaussian, count, cube, Wishart) are given inputs that differ by their whole
sensitivity, by odd numbers, and are seen by likelihood ratio and by remainders. *Selections* are
audited on two pairs: one where a candidate of few chances loses as much as it can (the ratio is
then near epsilon), and one where the best candidate changes, which shows an index that follows the
raw scores. *Above threshold* answers many queries just below the threshold before the one that
counts, so that its threshold noise is told as well. *Large margin* spreads epsilon over three steps
of which only the last is released; its proof covers all three, so all three (m, r, index) are
audited: the index alone could hide half of the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.auditing.likelihood import matches, ratio, ratio_of_rows
from ptklib.auditing.subject import Claim, OutputView, Subject
from ptklib.auditing.tape import TapeEntry
from ptklib.privacy.costs.calibration import gaussian_sigma
from ptklib.privacy.mechanisms.above_threshold import AboveThreshold
from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.mechanisms.release import CountRelease, GaussianRelease, LaplaceRelease
from ptklib.privacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from ptklib.ptks.clusters.noise import CubeRelease
from ptklib.ptks.covariance.noise import WishartRelease
from ptklib.testing.audit import MODULI

__all__ = [
    "DELTA",
    "GROUP",
    "LEVEL",
    "SMALL_DELTA",
    "entry_views",
    "mechanism_subjects",
    "release_subject",
    "row_views",
]

GROUP = "mechanism"
# Here few runs tell most: a ratio of e^2 is seen in thousands of runs, and that of half the noise,
# e^4, still is.
LEVEL = 2
# Of Gaussian noise. Large, because then few runs tell right noise from half of it; noise is
# calibrated by the same code at any.
DELTA = Fraction(1, 5)
# Of large margin, whose delta is a failure of its own: an audit would have to see it fail.
SMALL_DELTA = Fraction(1, 10**6)

_RUNS, _CHEAP_RUNS, _MARGIN_RUNS, _MATRIX_RUNS = 10_000, 100_000, 40_000, 6_000
_SESSION_RUNS = 20_000
_QUERIES = 5


def mechanism_subjects() -> list[Subject]:
    """Every mechanism, at epsilon `LEVEL`."""
    sigma = gaussian_sigma(epsilon=LEVEL, delta=DELTA, sensitivity=5)
    return [
        release_subject(
            "laplace release", LaplaceRelease(epsilon=LEVEL, sensitivity=3), [0, 0, 0], [1, 1, 1]
        ),
        release_subject(
            "gaussian release",
            GaussianRelease(sigma=sigma, sensitivity=5),
            [0, 0],
            [3, 4],
            delta=DELTA,
        ),
        _count(),
        release_subject(
            "cube release", CubeRelease(epsilon=LEVEL, sensitivity=3, width=3), [0, 0, 0], [3, 3, 3]
        ),
        _wishart(),
        _selection("exponential mechanism", ExponentialMechanism(epsilon=LEVEL, sensitivity=1)),
        _selection("noisy max", NoisyMax(epsilon=LEVEL, sensitivity=1)),
        _large_margin(),
        _above_threshold(),
    ]


def release_subject(
    name: str,
    mechanism: LaplaceRelease | GaussianRelease | CubeRelease,
    data: Sequence[int],
    neighbour: Sequence[int],
    *,
    delta: Fraction = Fraction(0),
    group: str = GROUP,
    runs: int = _CHEAP_RUNS,
) -> Subject:
    """A release of one row of whole numbers, drawn for all runs in one call: entries and rows have
    noise of their own.
    """
    first, second = np.asarray(data, dtype=np.int64), np.asarray(neighbour, dtype=np.int64)

    def sample(count: int) -> list[OutputView]:
        return row_views(mechanism, first, second, count)

    claim = Claim.of(mechanism.cost, float(delta))
    return Subject(
        name, group, claim, f"the numbers {list(data)} and {list(neighbour)}", sample, runs
    )


def row_views(
    mechanism: Any, first: NDArray[np.int64], second: NDArray[np.int64], count: int
) -> list[OutputView]:
    """``count`` releases of either row, by likelihood ratio and by remainders."""
    told = [_values(mechanism.release(np.tile(side, (count, 1)))) for side in (first, second)]
    views = [
        OutputView(
            "likelihood", *(ratio_of_rows(mechanism, answers, first, second) for answers in told)
        )
    ]
    views += [
        OutputView(
            f"residues mod {modulus}", *(_agreeing(each, first, second, modulus) for each in told)
        )
        for modulus in MODULI
    ]
    return views


def _values(released: Any) -> NDArray[np.int64]:
    return np.asarray(getattr(released, "values", released), dtype=np.int64)


def _agreeing(
    told: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64], modulus: int
) -> NDArray[np.int64]:
    """`likelihood.matches` of every row."""
    agree = [((told - side) % modulus == 0).sum(axis=1) for side in (first, second)]
    return np.asarray(agree[0] - agree[1], dtype=np.int64)


def _count() -> Subject:
    mechanism = CountRelease(epsilon=LEVEL)

    def sample(count: int) -> list[OutputView]:
        sides = [
            np.array([mechanism.release(units).value for _ in range(count)]) for units in (10, 11)
        ]
        return [OutputView("value", *sides)]

    return Subject(
        "count release", GROUP, Claim.of(mechanism.cost), "10 and 11 units", sample, _RUNS
    )


def _wishart() -> Subject:
    mechanism = WishartRelease(epsilon=LEVEL, trace=98)
    sides = np.zeros((2, 2), dtype=object), np.array([[49, 49], [49, 49]], dtype=object)

    def sample(count: int) -> list[OutputView]:
        return entry_views(mechanism, *sides, count)

    pair = "no record and one record (7, 7), as sums of x x^T"
    return Subject("wishart release", GROUP, Claim.of(mechanism.cost), pair, sample, _MATRIX_RUNS)


def entry_views(
    mechanism: Any, first: NDArray[Any], second: NDArray[Any], count: int
) -> list[OutputView]:
    """``count`` releases of either input, one at a time, by likelihood ratio and by remainders."""
    told = [
        [TapeEntry(mechanism, first, mechanism.release(side)) for _ in range(count)]
        for side in (first, second)
    ]
    views = [
        OutputView(
            "likelihood",
            *(np.array([ratio(tape_entry, second) for tape_entry in each]) for each in told),
        )
    ]
    counted = [np.array([matches(tape_entry, second) for tape_entry in each]) for each in told]
    views += [
        OutputView(f"residues mod {modulus}", *(each[:, k] for each in counted))
        for k, modulus in enumerate(MODULI)
    ]
    return views


def _selection(name: str, mechanism: ExponentialMechanism | NoisyMax) -> Subject:
    pairs = [("rare", (1, 0), (2, -1)), ("best", (1, 0), (0, 1))]

    def sample(count: int) -> list[OutputView]:
        return [
            OutputView(
                words,
                *(
                    np.array([mechanism.release(list(scores)).index for _ in range(count)])
                    for scores in (first, second)
                ),
            )
            for words, first, second in pairs
        ]

    words = "; ".join(f"scores {first} and {second}" for _, first, second in pairs)
    return Subject(name, GROUP, Claim.of(mechanism.cost), words, sample, _RUNS)


def _above_threshold() -> Subject:
    mechanism = AboveThreshold(epsilon=LEVEL, sensitivity=1, threshold=10)
    # Queries just below the threshold that must fail, and one at it that must not. By the exact laws
    # this pair tells half of the noise best at some ten thousand runs, by the event that its proof
    # bounds; that event is a view of its own, so that no run is spent on choosing it.
    low, last = 9, 10
    sides = [[low] * _QUERIES + [last], [low + 1] * _QUERIES + [last - 1]]

    def first_true(queries: list[int]) -> int:
        session = mechanism.start()
        return next(
            (place for place, value in enumerate(queries) if session.ask(value)), len(queries)
        )

    def sample(count: int) -> list[OutputView]:
        places = [np.array([first_true(side) for _ in range(count)]) for side in sides]
        return [
            OutputView("the first True", *places),
            OutputView(
                "True at the last", *((place == _QUERIES).astype(np.int64) for place in places)
            ),
        ]

    pair = f"{_QUERIES} queries of {low}, then one of {last}; {_QUERIES} of {low + 1}, then one of {last - 1}"
    return Subject("above threshold", GROUP, Claim.of(mechanism.cost), pair, sample, _SESSION_RUNS)


def _large_margin() -> Subject:
    mechanism = LargeMargin(epsilon=LEVEL, delta=SMALL_DELTA, sensitivity=1)
    # Two near the top, and one so far behind that it is as likely as not to be left out.
    behind = 1 - int(mechanism.thresholds(3)[1])
    sides = [np.array([1, 0, behind]), np.array([2, -1, behind - 1])]
    stops = _stop_chances(mechanism)
    chances = _weights(mechanism, sides)

    def tell(scores: NDArray[np.int64]) -> float:
        """The log-likelihood ratio of (m, r, index)."""
        top, width, drawn = mechanism._steps(scores, None)
        scale = float(mechanism.top_scale)
        log_ratio = (abs(top - int(sides[1][0])) - abs(top - int(sides[0][0]))) / scale
        known = [stops(top - int(side[2])) for side in sides]
        log_ratio += (
            np.log(known[0] / known[1]) if width == 2 else np.log((1 - known[0]) / (1 - known[1]))
        )
        return float(log_ratio + np.log(chances[0][drawn] / chances[1][drawn]))

    def sample(count: int) -> list[OutputView]:
        # What this one shows, a few runs show.
        released = [
            [mechanism.release(scores).index for _ in range(-(-count // 10))]
            for scores in ([1, 0], [0, 1])
        ]
        return [
            OutputView(
                "m, r and index", *(np.array([tell(side) for _ in range(count)]) for side in sides)
            ),
            OutputView("index", *(np.array(indices) for indices in released)),
        ]

    pair = f"scores {sides[0].tolist()} and {sides[1].tolist()}; scores [1, 0] and [0, 1]"
    return Subject(
        "large margin",
        GROUP,
        Claim.of(mechanism.cost, float(SMALL_DELTA)),
        pair,
        sample,
        _MARGIN_RUNS,
    )


def _stop_chances(mechanism: LargeMargin) -> Callable[[int], float]:
    """The chance that step 2 stops at r = 2, by the margin m - f(3): that of Z - G >= T -
    margin.
    """
    reach = np.arange(-600, 601)
    laws = [
        np.exp(-np.abs(reach) / float(scale))
        for scale in (mechanism.query_scale, mechanism.threshold_scale)
    ]
    both = np.convolve(laws[0] / laws[0].sum(), laws[1] / laws[1].sum())
    above = np.clip(np.cumsum(both[::-1])[::-1], 1e-9, 1 - 1e-9)
    bar = int(mechanism.thresholds(3)[1])

    def chance(margin: int) -> float:
        return float(above[int(np.clip(bar - margin + 1200, 0, len(above) - 1))])

    return chance


def _weights(mechanism: LargeMargin, sides: list[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    chances = []
    for side in sides:
        weights = np.exp((side - side.max()) * float(mechanism.rate))
        chances.append(np.maximum(weights / weights.sum(), 1e-300))
    return chances
