"""What the taxi company declares: its stream, the PTKs it keeps trained, and one that asks for too
much.

Everything here is public: bounds and domains come from the street map and the tariff, not from the
rides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from examples.taxi.city import FIRST_DAY_MS, ZONES
from ptklib.columns.keys import Categories, Key, TimePart
from ptklib.ledger.policy import Policy
from ptklib.ptks.statistics import Statistics
from ptkstore.api.columns import Column
from ptkstore.api.moments import iso
from ptkstore.api.stream_spec import StreamSpec

__all__ = [
    "DEFAULT_ROWS",
    "HELPFUL",
    "STREAM",
    "TOO_AMBITIOUS",
    "WINDOW_DAYS",
    "Wanted",
    "plant",
    "spec",
    "wanted",
]

STREAM = "rides"
WINDOW_DAYS = 7
# The stream that the targets below were chosen for; noise matters in proportion to what is counted.
DEFAULT_ROWS = 60_000
TOO_AMBITIOUS = "route-duration"
# What somebody who predicts durations would pick from the list of PTKs.
HELPFUL = ("hour-speed", "week-speed", "pickup-speed", "dropoff-speed", "zone-hour-duration")

_DAY_SECONDS = 86_400
_NOTE_BYTES = 40

_HOUR = TimePart(column="pickup_time", part="hour")
_WEEKDAY = TimePart(column="pickup_time", part="weekday")
_PICKUP = Categories(column="pickup_zone", values=ZONES)
_DROPOFF = Categories(column="dropoff_zone", values=ZONES)


@dataclass(frozen=True)
class Wanted:
    """A PTK somebody asks for: its configuration and the error that is promised, as a fraction of
    the value's range.
    """

    name: str
    ptk: Statistics
    target: float

    def registration(self) -> dict[str, Any]:
        """The arguments of ``Store.register``."""
        return {
            "name": self.name,
            "stream": STREAM,
            "kind": self.ptk.kind,
            "config": self.ptk.as_json(),
            "target": self.target,
        }


def wanted(rows: int = DEFAULT_ROWS) -> tuple[Wanted, ...]:
    """The PTKs for windows of ``rows`` rides; `TOO_AMBITIOUS` comes last.

    The longer, the more can be promised.
    """

    def one(name: str, target: float, keys: tuple[Key, ...], **more: Any) -> Wanted:
        scaled = round(target * DEFAULT_ROWS / rows, 4)
        return Wanted(name, Statistics(keys=keys, prefix=name.replace("-", "_"), **more), scaled)

    speed = {"statistics": ("mean",), "value": "speed_kmh", "lower": 0.0, "upper": 60.0}
    duration = {"statistics": ("mean",), "value": "duration_min", "lower": 0.0, "upper": 60.0}
    fare = {"statistics": ("mean", "variance"), "value": "fare", "lower": 0.0, "upper": 80.0}
    return (
        one("hour-speed", 0.03, (_HOUR,), **speed),
        one("week-speed", 0.08, (_WEEKDAY, _HOUR), **speed),
        one("pickup-speed", 0.03, (_PICKUP,), **speed),
        one("dropoff-speed", 0.03, (_DROPOFF,), **speed),
        one("zone-hour-duration", 0.1, (_PICKUP, _HOUR), **duration),
        one("zone-pickups", 0.01, (_PICKUP,), statistics=("count",)),
        one("zone-fare", 0.05, (_PICKUP,), **fare),
        one(TOO_AMBITIOUS, 0.01, (_PICKUP, _DROPOFF), **duration),
    )


def spec(rows: int = DEFAULT_ROWS) -> StreamSpec:
    """The stream: one-day blocks, windows of a week, 1-DP for every single ride."""
    return StreamSpec(
        name=STREAM,
        columns=(
            Column(name="pickup_time", type="timestamp[ms]", lower=iso(FIRST_DAY_MS)),
            Column(name="pickup_zone", type="dictionary", domain=ZONES),
            Column(name="dropoff_zone", type="dictionary", domain=ZONES),
            Column(name="distance_km", type="float64", lower=0.0, upper=40.0),
            Column(name="duration_min", type="float64", lower=0.0, upper=120.0),
            Column(name="speed_kmh", type="float64", lower=0.0, upper=80.0),
            Column(name="fare", type="float64", lower=0.0, upper=150.0),
            Column(name="note", type="string", upper=_NOTE_BYTES, nullable=True),
        ),
        time_column="pickup_time",
        # All PTKs are pure: epsilons add up exactly, and nothing is left to chance.
        policy=Policy(epsilon=1, delta=0),
        window_seconds=WINDOW_DAYS * _DAY_SECONDS,
        block_seconds=_DAY_SECONDS,
        # What the profile slice leaves of a window.
        n_max=rows * 9 // 10,
    )


def plant(rides: pa.Table, *, note: str, fare: float) -> pa.Table:
    """The rides with a canary in the middle: a note and a fare that must be nowhere once the window
    has expired.
    """
    place = len(rides) // 2
    notes = pa.array([None] * place + [note] + [None] * (len(rides) - place - 1), pa.string())
    fares = rides["fare"].to_numpy().copy()
    fares[place] = fare
    planted = rides.set_column(rides.schema.get_field_index("note"), "note", notes)
    return planted.set_column(rides.schema.get_field_index("fare"), "fare", pa.array(fares))
