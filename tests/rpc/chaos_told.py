"""What everybody saw while things were killed, and the PTKs it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LATE_PTK", "PTKS", "Told"]

_KEYS = [{"kind": "integers", "column": "hour", "first": 0, "last": 23}]
PTKS: Mapping[str, dict[str, Any]] = {
    "hour-speed": {
        "keys": _KEYS,
        "statistics": ["mean"],
        "value": "speed",
        "lower": 0.0,
        "upper": 60.0,
    },
    "hour-rides": {"keys": _KEYS, "statistics": ["count"]},
}
# Registered while things are being killed.
LATE_PTK = "late-rides"


@dataclass(kw_only=True)
class Told:
    """What everybody saw. ``wrong`` is what must never happen, in words."""

    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    # Seconds from the moment a victim answers again until a read and a change succeed.
    back_seconds: dict[str, list[float]] = field(default_factory=dict)
    # The same from the kill on, with the time for which the victim was left dead and its start.
    outage_seconds: dict[str, list[float]] = field(default_factory=dict)
    down: list[tuple[str, float, float]] = field(default_factory=list)
    calls: list[tuple[float, float, str]] = field(default_factory=list)
    rows_by_day: Counter[int] = field(default_factory=Counter)
    archived: list[int] = field(default_factory=list)
    batches: int = 0
    windows: int = 0
    repeated: int = 0
    heard: dict[str, list[int]] = field(default_factory=dict)
    follows: dict[str, str] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
