"""Invent three days of taxi rides (rides.parquet) and a few trips that want features (trips.csv).

    python make_rides.py

The rides are made up, and the same every time. Traffic is slow at 8 and at 18 o'clock; the airport
is far and dear.
"""

from __future__ import annotations

import csv
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FIRST_DAY = datetime(2026, 3, 1)
DAYS = 3
RIDES_PER_DAY = 20_000
FARES = {
    "airport": 55.0,
    "centre": 14.0,
    "harbour": 22.0,
    "north": 18.0,
    "south": 17.0,
    "west": 25.0,
}


def rides() -> pa.Table:
    """All rides, in the order of their times."""
    random = np.random.default_rng(7)
    count = DAYS * RIDES_PER_DAY
    seconds = np.sort(random.uniform(0, DAYS * 86_400, count))
    hour = seconds / 3600 % 24
    rush = np.exp(-((hour - 8) ** 2) / 3) + np.exp(-((hour - 18) ** 2) / 5)
    speed = np.clip(random.normal(42 - 22 * rush, 6), 3, 79)
    zones = np.array(list(FARES))
    zone = random.choice(zones, count, p=[0.1, 0.35, 0.1, 0.15, 0.15, 0.15])
    fare = np.clip(random.normal([FARES[name] for name in zone.tolist()], 4), 3, 99)
    start = np.datetime64(FIRST_DAY, "ms")
    return pa.table(
        {
            "pickup_at": pa.array(
                start + (seconds * 1000).astype("timedelta64[ms]"), pa.timestamp("ms")
            ),
            "zone": zone,
            "speed_kmh": speed,
            "fare": fare,
        }
    )


def main() -> None:
    """Write both files."""
    pq.write_table(rides(), "rides.parquet")
    zones = list(FARES)
    with open("trips.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["trip", "pickup_at", "zone"])
        for trip in range(8):
            pickup = FIRST_DAY + timedelta(days=DAYS, hours=3 * trip)
            writer.writerow([trip, pickup.isoformat(sep=" "), zones[trip % len(zones)]])
    print(f"wrote rides.parquet ({DAYS} days, {RIDES_PER_DAY} rides each) and trips.csv (8 trips)")


if __name__ == "__main__":
    main()
