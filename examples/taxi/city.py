"""A synthetic city and its taxi rides, in order of event time.

The city is drawn from one seed and is the same everywhere: zones with a place, a popularity and a
character (offices, homes, nightlife, airport). Rides are drawn from the city and a seed of their
own:

* *when*: rush hours on working days, late nights on weekends, quiet Sundays;
* *where from*: zones by popularity and by what people do there at that hour; *where to*: nearer
  zones more often;
* *how fast*: by zone and hour, slowest in the middle of the city at rush hour; a trip meets the
  traffic at both ends;
* *how long*: distance over speed plus a start-up time, log-normal noise on both; *how much*: a
  meter with surcharges.

Two fleets drive in it. They meet the same traffic, but the second one serves other zones and drives
a little slower: what is learned from the first is useful to the second, and not the whole truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["DAY_MS", "FIRST_DAY_MS", "GREEN", "YELLOW", "ZONES", "City", "Fleet"]

# Thursday, 1 January 2026: also the first day of a week counted from 1970, so weeks and windows
# begin together.
FIRST_DAY_MS = 1_767_225_600_000
DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
_FIRST_WEEKDAY = 3

_CHARACTERS = {
    "office": ("Exchange", "Guildhall", "Assembly", "Chancery", "Foundry", "Customs"),
    "home": (
        "Elms",
        "Orchard",
        "Hillside",
        "Millpond",
        "Vineyard",
        "Parkside",
        "Old Town",
        "Brickfields",
        "Lakeside",
    ),
    "night": ("Theatre", "Canal", "Harbour", "Arcade", "Market"),
    "edge": ("Airport", "Fairground", "Stadium", "Docks"),
}
ZONES: tuple[str, ...] = tuple(name for names in _CHARACTERS.values() for name in names)
_CHARACTER = np.repeat(np.arange(4), [len(names) for names in _CHARACTERS.values()])

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Fleet:
    """Who drives: where its customers are (a factor for each character of zone), how fast, how
    unevenly.
    """

    name: str
    serves: tuple[float, float, float, float]
    pace: float
    spread: float


YELLOW = Fleet("yellow", serves=(1.0, 1.0, 1.0, 1.0), pace=1.0, spread=0.18)
GREEN = Fleet("green", serves=(0.5, 1.8, 0.8, 1.2), pace=0.93, spread=0.21)


class City:
    """The city that a seed gives. `rides` draws from it; the city itself never changes."""

    def __init__(self, seed: int = 2026) -> None:
        """Places in km around the centre, popularity, and the speed in km/h of every zone at every
        hour of the week.
        """
        rng = np.random.default_rng([seed, 0])
        count = len(ZONES)
        radius = np.array([2.0, 5.5, 3.0, 11.0])[_CHARACTER] * rng.uniform(0.5, 1.3, count)
        angle = rng.uniform(0, 2 * np.pi, count)
        self.places: Floats = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        self.popularity: Floats = np.array([1.6, 0.8, 1.3, 0.7])[_CHARACTER] * rng.lognormal(
            0, 0.45, count
        )
        apart = np.linalg.norm(self.places[:, None] - self.places[None], axis=2)
        # A trip inside a zone goes somewhere too.
        self.distances: Floats = 1.3 * apart + np.eye(count) * 1.4
        self.speeds: Floats = self._speeds(rng, radius)
        self.demand: Floats = _demand()

    def _speeds(self, rng: np.random.Generator, radius: Floats) -> Floats:
        """[weekend, hour, zone]: free flow, less what the rush hours and the nightlife take from
        each zone.
        """
        hours = np.arange(24)
        free = (17 + 2.6 * radius) * rng.lognormal(0, 0.1, len(ZONES))
        jam = np.exp(-radius / 7) * rng.uniform(0.45, 0.75, len(ZONES))
        # Each zone has its own worst hour, near everybody's.
        morning = _hump(hours[:, None], 8.3 + rng.normal(0, 0.7, len(ZONES)), 1.7)
        evening = _hump(hours[:, None], 17.6 + rng.normal(0, 0.9, len(ZONES)), 2.3)
        night = _hump(hours[:, None], 23.0, 2.5) * (_CHARACTER == 2)
        day = 0.35 * _hump(hours[:, None], 13.0, 4.0)
        working = 1 - jam * np.clip(0.9 * morning * (_CHARACTER != 2) + evening + day, 0, 1)
        weekend = 1 - jam * np.clip(0.4 * evening + day + 0.8 * night, 0, 1)
        found: Floats = free * np.stack([working, weekend])
        return found

    def rides(
        self, count: int, *, first_day: int, days: int, seed: int, fleet: Fleet = YELLOW
    ) -> pa.Table:
        """``count`` rides of ``days`` days, in order of pickup.

        The same arguments give the same rides, to the last bit.
        """
        rng = np.random.default_rng([seed, 1, first_day])
        weekday = (np.arange(first_day, first_day + days) + _FIRST_WEEKDAY) % 7
        by_hour = self.demand[weekday].reshape(-1)
        slot = np.repeat(np.arange(len(by_hour)), rng.multinomial(count, by_hour / by_hour.sum()))
        pickup_ms = (
            FIRST_DAY_MS + first_day * DAY_MS + slot * _HOUR_MS + rng.integers(0, _HOUR_MS, count)
        )
        pickup_ms.sort()
        hour, weekend = slot % 24, (weekday[slot // 24] >= 5).astype(np.int64)
        start, stop = self._ends(rng, hour, weekend, fleet)
        distance = np.clip(self.distances[start, stop] * rng.lognormal(0, 0.16, count), 0.4, 40)
        # Half of the way in the traffic of each end.
        traffic = 2 / (1 / self.speeds[weekend, hour, start] + 1 / self.speeds[weekend, hour, stop])
        driving = 60 * distance / (traffic * fleet.pace * rng.lognormal(0, fleet.spread, count))
        minutes = np.clip(driving + rng.lognormal(np.log(1.5), 0.5, count), 1, 120)
        surcharge = 2.5 * ((hour >= 20) | (hour < 5)) + 6.0 * (
            (start == _AIRPORT) | (stop == _AIRPORT)
        )
        fare = np.round(np.clip(3.2 + 1.7 * distance + 0.42 * minutes + surcharge, 4, 150), 2)
        return pa.table(
            {
                "pickup_time": pa.array(pickup_ms, pa.timestamp("ms")),
                "pickup_zone": _named(start),
                "dropoff_zone": _named(stop),
                "distance_km": distance,
                "duration_min": minutes,
                "speed_kmh": np.clip(60 * distance / minutes, 0, 80),
                "fare": fare,
                "note": pa.nulls(count, pa.string()),
            }
        )

    def _ends(
        self, rng: np.random.Generator, hour: Integers, weekend: Integers, fleet: Fleet
    ) -> tuple[Integers, Integers]:
        """Pickup and drop-off zones, by what each character of zone sends out and draws in at that
        hour.
        """
        served = self.popularity * np.array(fleet.serves)[_CHARACTER]
        near = np.exp(-self.distances / 6.0)
        start, stop = np.empty(len(hour), np.int64), np.empty(len(hour), np.int64)
        # Rides of one hour of the day are drawn together.
        for place in np.unique(hour + 24 * weekend):
            rows = np.flatnonzero(hour + 24 * weekend == place)
            sends, draws = _habits(int(place) % 24, bool(place >= 24))
            weights = served * sends[_CHARACTER]
            start[rows] = rng.choice(len(ZONES), len(rows), p=weights / weights.sum())
            to = near * served * draws[_CHARACTER]
            steps = np.cumsum(to / to.sum(axis=1, keepdims=True), axis=1)
            drawn = (rng.random(len(rows))[:, None] > steps[start[rows]]).sum(axis=1)
            stop[rows] = np.minimum(drawn, len(ZONES) - 1)
        return start, stop


_AIRPORT = ZONES.index("Airport")


def _hump(hours: Floats | Integers, middle: Floats | float, width: float) -> Floats:
    """A bell over the clock, which goes round."""
    away = np.abs(hours - middle)
    away = np.minimum(away, 24 - away)
    found: Floats = np.exp(-((away / width) ** 2) / 2)
    return found


def _demand() -> Floats:
    """[weekday, hour]: how many rides, relative to each other."""
    hours = np.arange(24)
    working = (
        0.25 + _hump(hours, 8.5, 1.8) + 0.5 * _hump(hours, 13, 3) + 1.2 * _hump(hours, 18.3, 2.4)
    )
    weekend = 0.25 + 0.7 * _hump(hours, 14, 4) + 1.1 * _hump(hours, 23.5, 2.6)
    busy = np.array([0.95, 1.0, 1.0, 1.05, 1.2, 1.15, 0.8])
    found: Floats = np.stack([working] * 5 + [weekend] * 2) * busy[:, None]
    return found


def _habits(hour: int, weekend: bool) -> tuple[Floats, Floats]:
    """What offices, homes, nightlife and the edge send out and draw in."""
    at = float(hour)
    morning = 0.0 if weekend else float(_hump(np.array([at]), 8.3, 2.0)[0])
    evening = float(_hump(np.array([at]), 18.0, 2.5)[0]) * (0.3 if weekend else 1.0)
    night = float(_hump(np.array([at]), 23.5, 3.0)[0]) * (1.6 if weekend else 0.8)
    sends = np.array(
        [0.5 + 2.0 * evening, 0.6 + 2.2 * morning + 0.5 * night, 0.4 + 2.0 * night, 0.9]
    )
    draws = np.array(
        [0.4 + 2.2 * morning, 0.6 + 1.8 * evening + 1.2 * night, 0.5 + evening + 1.2 * night, 0.9]
    )
    return sends, draws


def _named(places: Integers) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(places, pa.int32()), pa.array(ZONES, pa.string())
    )
