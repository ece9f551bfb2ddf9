"""Losses to test on: laws on some hundred points, so that samples of any size are quick to draw."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

__all__ = ["Population", "beta", "error_rate", "named", "stand_in", "taxi"]

Floats = NDArray[np.float64]

_COARSE, _FINE = 400, 200
_SECONDS = 9000.0


@dataclass(frozen=True, eq=False)
class Population:
    """A law of losses in [0, bound]."""

    name: str
    points: Floats
    weights: Floats
    bound: float = 1.0

    @property
    def mean(self) -> float:
        """The true loss."""
        return float(self.points @ self.weights)

    def draw(
        self, rng: np.random.Generator, records: int | NDArray[np.int64], runs: int
    ) -> NDArray[np.int64]:
        """How many records of each run have each loss."""
        return np.asarray(rng.multinomial(records, self.weights, size=runs))

    def at(self, mean: float) -> Population:
        """States that are better or worse: with this mean loss. The losses of better ones shrink;
        of worse ones some become the bound.
        """
        if mean <= self.mean:
            return Population(self.name, self.points * (mean / self.mean), self.weights, self.bound)
        worst = (mean - self.mean) / (self.bound - self.mean)
        points = np.append(self.points, self.bound)
        return Population(
            self.name, points, np.append(self.weights * (1 - worst), worst), self.bound
        )


def of_losses(name: str, losses: Floats) -> Population:
    """A law of means of neighbouring losses, finer where the large ones are."""
    known = np.sort(np.clip(losses, 0.0, 1.0))
    cut = int(len(known) * 0.98)
    groups = [*np.array_split(known[:cut], _COARSE), *np.array_split(known[cut:], _FINE)]
    weights = np.array([len(group) for group in groups], dtype=np.float64)
    return Population(name, np.array([group.mean() for group in groups]), weights / weights.sum())


def taxi(data: Path) -> Population:
    """Squared errors of the duration of rides (a share of 2.5 hours), by linear regression on 61
    binary features; of the rides that it was not fitted to.
    """
    table = pq.read_table(data / "taxi" / "yellow_2016H1_lonlat.parquet").to_pandas()
    seconds = table["trip_duration"].to_numpy(dtype=np.float64)
    places = {
        name: table[name].to_numpy(dtype=np.float64)
        for name in (
            "pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude",
        )
    }  # fmt: skip
    inside = (seconds > 0) & (seconds <= _SECONDS)
    for name, values in places.items():
        low, high = (-74.27, -73.65) if name.endswith("longitude") else (40.4, 40.923)
        inside &= (values >= low) & (values <= high)
    when = table["pickup_datetime"].dt
    east = (places["dropoff_longitude"] - places["pickup_longitude"]) * 84.4
    north = (places["dropoff_latitude"] - places["pickup_latitude"]) * 111.2
    distance = np.minimum(29, np.floor(2 * np.hypot(east, north))).astype(np.int64)
    blocks = [
        np.eye(24)[when.hour.to_numpy()],
        np.eye(7)[when.dayofweek.to_numpy()],
        np.eye(30)[distance],
    ]
    features, values = np.hstack(blocks)[inside], (seconds / _SECONDS)[inside]
    order = np.random.default_rng(0).permutation(len(values))
    half = len(values) // 2
    fitted, rest = order[:half], order[half:]
    state = np.linalg.lstsq(features[fitted], values[fitted], rcond=None)[0]
    return of_losses("taxi MSE", (features[rest] @ state - values[rest]) ** 2)


def stand_in() -> Population:
    """Squared errors that look like those of taxi rides: small ones, and a long tail."""
    rng = np.random.default_rng(7)
    errors = rng.standard_t(4, 100_000) * 0.03
    return of_losses("squared errors of a heavy tail", errors**2)


def beta(first: float, second: float) -> Population:
    """Losses between the ends, as log losses are."""
    rng = np.random.default_rng(8)
    return of_losses(f"beta({first:g}, {second:g})", rng.beta(first, second, 200_000))


def error_rate(rate: float) -> Population:
    """Right or wrong."""
    return Population(f"error rate {rate:g}", np.array([0.0, 1.0]), np.array([1 - rate, rate]))


def named() -> list[Population]:
    """Where a test may be at its worst."""
    even = np.linspace(0.0, 1.0, 101)
    rare = Population("rare huge losses", np.array([0.001, 1.0]), np.array([0.999, 0.001]))
    rare_large = Population(
        "a loss of 0.3 in 300", np.array([0.0, 0.3]), np.array([299 / 300, 1 / 300])
    )
    return [
        rare,
        rare_large,
        Population("all 0", np.array([0.0]), np.array([1.0])),
        Population("all 0.01", np.array([0.01]), np.array([1.0])),
        Population("all 0.3", np.array([0.3]), np.array([1.0])),
        Population("uniform", even, np.full(101, 1 / 101)),
        beta(0.5, 8),
        *(error_rate(rate) for rate in (0.01, 0.1, 0.25, 0.5)),
    ]
