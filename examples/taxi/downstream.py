"""A new team predicts how long a ride takes, with little data of its own: does it help to use the
PTKs?

Three ways to make features of the same rides of the new fleet, then the same ridge regression on
the logarithm of the minutes:

* **no PTK**: distance, hour, weekday and both zones, as indicators;
* **own statistics**: the same, and the statistics of the PTKs made from the team's own rides,
  without any noise (for training rides from the other folds only, or a ride would see its own
  answer);
* **PTK**: the same, and the features of the DP states of the other fleet: ``featurize(frame,
  states)``.

Each seed is another training set; a fraction of it is what the team has collected so far. All ways
see the same rides and are tested on the same held-out ones, so they are compared pair by pair. The
penalty is chosen by leave-one-out validation in every single case. Error: root mean squared error
of log minutes (RMSLE); 0.30 means about 30% off.

Nothing here reads the stream: the team's rides are its own, and states are DP.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from examples.taxi.city import GREEN, ZONES, City
from ptklib.columns.keys import Categories, TimePart
from ptklib.features import featurize
from ptklib.ptk import Ptk
from ptklib.state import State

__all__ = ["ARMS", "FRACTIONS", "NO_PTK", "OWN", "PTK", "SMALL", "Comparison", "Point", "compare"]

NO_PTK, OWN, PTK = "no PTK", "own statistics", "PTK"
ARMS = (NO_PTK, OWN, PTK)
FRACTIONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
# Up to here the team has little data, and PTKs must win.
SMALL = 0.01

_FOLDS = 5
_PENALTIES = np.geomspace(1e-3, 1e3, 13)
_TRUST = 10.0
_CONFIDENCE = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """One arm at one fraction: the error of each seed, their mean, and half the width of its 95%
    interval.
    """

    arm: str
    fraction: float
    rides: int
    errors: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.errors))

    @property
    def half_width(self) -> float:
        """Half the width of the 95% interval of the mean (Student)."""
        return _half_width(np.array(self.errors))


@dataclass(frozen=True)
class Comparison:
    """All points, and what they say."""

    points: tuple[Point, ...]
    train_rides: int
    test_rides: int
    seeds: int

    def point(self, arm: str, fraction: float) -> Point:
        """The point of an arm at a fraction."""
        return next(one for one in self.points if (one.arm, one.fraction) == (arm, fraction))

    @property
    def fractions(self) -> tuple[float, ...]:
        """The fractions compared, rising."""
        return tuple(sorted({one.fraction for one in self.points}))

    def gain(self, fraction: float, *, over: str = NO_PTK) -> tuple[float, float]:
        """By how much PTKs lower the error of ``over``, as a fraction of it: mean and half width of
        its paired 95% interval.
        """
        other = np.array(self.point(over, fraction).errors)
        gains = 1 - np.array(self.point(PTK, fraction).errors) / other
        return float(gains.mean()), _half_width(gains)

    def ptks_win_at(self, fraction: float) -> bool:
        """The whole 95% interval of the paired gain over no PTK is above zero."""
        mean, half = self.gain(fraction)
        return mean - half > 0

    @property
    def ptks_win_when_data_is_scarce(self) -> bool:
        """At every fraction up to `SMALL`."""
        return all(self.ptks_win_at(one) for one in self.fractions if one <= SMALL)


def compare(
    states: Sequence[State],
    *,
    city: City,
    first_day: int,
    train_rides: int = 20_000,
    test_rides: int = 10_000,
    seeds: int = 20,
    fractions: Sequence[float] = FRACTIONS,
) -> Comparison:
    """Train and test all arms.

    The team's rides start on ``first_day``: after the windows that the states were trained on.
    """
    test = city.rides(test_rides, first_day=first_day + 14, days=7, seed=30_000, fleet=GREEN)
    answer = _answer(test)
    plain, helped = _context(test), _helped(test, states)
    errors: dict[tuple[str, float], list[float]] = {}
    for seed in range(seeds):
        rides = city.rides(
            train_rides, first_day=first_day, days=14, seed=40_000 + seed, fleet=GREEN
        )
        # A fraction is a prefix of one random order: more data is more of the same.
        order = np.random.default_rng([seed, 3]).permutation(train_rides)
        for fraction in fractions:
            own = rides.take(pa.array(order[: _size(train_rides, fraction)]))
            label, context = _answer(own), _context(own)
            fold = np.arange(len(own)) % _FOLDS
            own_train, own_test = _own_statistics(own, fold, test, [one.ptk for one in states])
            for arm, train_part, test_part in (
                (NO_PTK, context[:, :0], plain[:, :0]),
                (OWN, own_train, own_test),
                (PTK, _helped(own, states), helped),
            ):
                model = _fit(np.hstack([context, train_part]), label)
                guess = _predict(model, np.hstack([plain, test_part]))
                errors.setdefault((arm, fraction), []).append(
                    float(np.sqrt(np.mean((guess - answer) ** 2)))
                )
    points = [
        Point(arm, fraction, _size(train_rides, fraction), tuple(errors[arm, fraction]))
        for arm in ARMS
        for fraction in fractions
    ]
    return Comparison(tuple(points), train_rides, test_rides, seeds)


def _size(rides: int, fraction: float) -> int:
    return max(2 * _FOLDS, round(rides * fraction))


def _answer(rides: pa.Table) -> Floats:
    found: Floats = np.log(rides["duration_min"].to_numpy())
    return found


def _context(rides: pa.Table) -> Floats:
    """What is known when a ride is ordered: log distance, and indicators of hour, weekday and
    zones.
    """
    columns = [
        np.log(rides["distance_km"].to_numpy())[:, None],
        rides["distance_km"].to_numpy()[:, None] / 10,
    ]
    for key in (
        TimePart(column="pickup_time", part="hour"),
        TimePart(column="pickup_time", part="weekday"),
        Categories(column="pickup_zone", values=ZONES),
        Categories(column="dropoff_zone", values=ZONES),
    ):
        codes = key.codes(rides[key.column].combine_chunks())
        columns.append(np.eye(key.size + 1)[codes][:, : key.size])
    return np.hstack(columns)


def _helped(rides: pa.Table, states: Sequence[State]) -> Floats:
    """The features of the published states."""
    names = [name for state in states for name in state.ptk.feature_names()]
    return _logs(featurize(rides, states).select(names))


def _own_statistics(
    own: pa.Table, fold: NDArray[np.int64], test: pa.Table, ptks: Sequence[Ptk]
) -> tuple[Floats, Floats]:
    """Features of the same PTKs, made without noise from the team's rides: a training ride's from
    the other folds.

    A test ride gets the mean over the same folds, so that both kinds of rides have features of the
    same kind.
    """
    train, tested = [], []
    for ptk in ptks:
        names = ptk.feature_names()
        inside, outside = np.empty((len(own), len(names))), np.zeros((len(test), len(names)))
        for number in range(_FOLDS):
            arrays = ptk.exact(own.filter(pa.array(fold != number)).to_batches())
            assert arrays is not None
            rows = np.flatnonzero(fold == number)
            inside[rows] = _logs(ptk.features(arrays, own.take(pa.array(rows))))
            outside += _logs(ptk.features(arrays, test)) / _FOLDS
        train.append(inside)
        tested.append(outside)
    return np.hstack(train), np.hstack(tested)


def _logs(features: pa.Table) -> Floats:
    """As logarithms: minutes are distance over speed, a sum of logarithms."""
    found: Floats = np.log(
        np.maximum(np.stack([one.to_numpy() for one in features.columns], axis=1), 1.0)
    )
    return found


@dataclass(frozen=True)
class _Model:
    centre: Floats
    scale: Floats
    weights: Floats
    intercept: float


def _fit(features: Floats, label: Floats) -> _Model:
    """Ridge regression with the penalty of least leave-one-out error, which has a closed form.

    The first column, log distance, is scaled up so that it is hardly shrunk: everybody knows that
    it matters, and a model that lacks PTKs must not look worse only because it may not trust the
    distance.

    With X = U S V', a ride's prediction by the model of all others is off by r / (1 - h), where r
    is its residual and h its leverage, the sum of (x v)^2 / (s^2 + penalty) over the columns v of
    V, and 1/n for the intercept.
    """
    centre = features.mean(axis=0)
    scale = np.where(_indicator(features), 1.0, np.maximum(features.std(axis=0), 1e-9))
    scale[0] /= _TRUST
    x, intercept = (features - centre) / scale, float(label.mean())
    y = label - intercept
    values, vectors = np.linalg.eigh(x.T @ x)
    shrink = 1 / (np.maximum(values, 0)[:, None] + _PENALTIES)
    turned = x @ vectors
    weights = (turned.T @ y)[:, None] * shrink
    leverage = np.square(turned) @ shrink + 1 / len(y)
    losses = np.square((y[:, None] - turned @ weights) / np.maximum(1 - leverage, 1e-6)).mean(
        axis=0
    )
    best = int(np.argmin(losses))
    return _Model(centre, scale, vectors @ weights[:, best], intercept)


def _indicator(features: Floats) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.all((features == 0) | (features == 1), axis=0)
    return found


def _predict(model: _Model, features: Floats) -> Floats:
    found: Floats = (features - model.centre) / model.scale @ model.weights + model.intercept
    return found


def _half_width(values: Floats) -> float:
    if len(values) < 2:
        return float("inf")
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return float(stats.t.ppf((1 + _CONFIDENCE) / 2, len(values) - 1)) * spread
