"""What a plan is asked for: a capacity, and for every PTK the options it may be given.

An option spends ``demand`` units of the capacity on every record it trains on, and reaches the
PTK's target with ``samples`` records. Units are the caller's (nano-epsilon, nano-RDP at one order,
nano-mu^2); everything here is an integer. A PTK without options cannot reach its target at any
profiled level: the problem is well formed, and infeasible.

The JSON form is exact and closed::

    {"capacity": 1000000, "n_max": null,
     "ptks": [{"id": "a", "options": [{"level": "0.01", "demand": 10000, "samples": 3005}]}]}

Reasons, in the order they are checked: PROBLEM_INVALID (a wrong type, an unknown or missing field,
a number out of range), PROBLEM_TOO_LARGE, PROBLEM_DUPLICATE_LEVEL (within one PTK),
PROBLEM_DUPLICATE_ID.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptklib.errors import InvalidInput

__all__ = [
    "MAX_AMOUNT",
    "MAX_OPTIONS",
    "MAX_PTKS",
    "MAX_SAMPLES",
    "Option",
    "Problem",
    "PtkOptions",
]

# Sums over the largest problem stay inside 64 bits: 20,000 * 10**14 samples; demands beyond the
# capacity never add up.
MAX_AMOUNT = (1 << 62) - 1
MAX_SAMPLES = 10**14
MAX_PTKS = 20_000
MAX_OPTIONS = 1000
_MAX_TEXT = 200


@dataclass(frozen=True)
class Option:
    """One way to train a PTK. ``level`` names it within its PTK (the epsilon, as text)."""

    level: str
    demand: int
    samples: int

    def __post_init__(self) -> None:
        """Types and ranges."""
        _text("level", self.level)
        _whole("demand", self.demand, 0, MAX_AMOUNT)
        _whole("samples", self.samples, 1, MAX_SAMPLES)

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"level": self.level, "demand": self.demand, "samples": self.samples}

    @classmethod
    def from_json(cls, body: Any) -> Option:
        """Read the form of ``as_json``."""
        return cls(**_fields("an option", body, ("level", "demand", "samples")))


@dataclass(frozen=True)
class PtkOptions:
    """The options of one PTK; possibly none."""

    id: str
    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        """Levels are unique."""
        _text("id", self.id)
        _items(f"the options of {self.id}", self.options, Option, MAX_OPTIONS)
        levels = [option.level for option in self.options]
        if len(set(levels)) != len(levels):
            raise InvalidInput(
                "PROBLEM_DUPLICATE_LEVEL",
                f"the levels of {self.id} must differ, got {_twice(levels)} twice",
                id=self.id,
            )

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"id": self.id, "options": [option.as_json() for option in self.options]}

    @classmethod
    def from_json(cls, body: Any) -> PtkOptions:
        """Read the form of ``as_json``."""
        fields = _fields("a PTK", body, ("id", "options"))
        return cls(
            id=fields["id"],
            options=tuple(map(Option.from_json, _listed("options", fields["options"]))),
        )


@dataclass(frozen=True)
class Problem:
    """Choose an option for every PTK. ``n_max`` bounds the samples held in all; None: no bound."""

    capacity: int
    n_max: int | None
    ptks: tuple[PtkOptions, ...]

    def __post_init__(self) -> None:
        """Ids are unique."""
        _whole("capacity", self.capacity, 0, MAX_AMOUNT)
        if self.n_max is not None:
            _whole("n_max", self.n_max, 1, MAX_SAMPLES)
        _items("ptks", self.ptks, PtkOptions, MAX_PTKS)
        ids = [ptk.id for ptk in self.ptks]
        if len(set(ids)) != len(ids):
            raise InvalidInput(
                "PROBLEM_DUPLICATE_ID", f"the ids of PTKs must differ, got {_twice(ids)} twice"
            )

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "capacity": self.capacity,
            "n_max": self.n_max,
            "ptks": [ptk.as_json() for ptk in self.ptks],
        }

    @classmethod
    def from_json(cls, body: Any) -> Problem:
        """Read the form of ``as_json``."""
        fields = _fields("a problem", body, ("capacity", "n_max", "ptks"))
        ptks = tuple(map(PtkOptions.from_json, _listed("ptks", fields["ptks"])))
        return cls(capacity=fields["capacity"], n_max=fields["n_max"], ptks=ptks)


def _invalid(message: str) -> InvalidInput:
    return InvalidInput("PROBLEM_INVALID", message)


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_TEXT or not value.isprintable():
        raise _invalid(
            f"{name} must be printable text of 1 to {_MAX_TEXT} characters, got {value!r:.60}"
        )


def _whole(name: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise _invalid(f"{name} must be an integer from {least} to {most}, got {value!r:.60}")


def _items(name: str, value: object, kind: type, most: int) -> None:
    if not isinstance(value, tuple) or not all(isinstance(item, kind) for item in value):
        raise _invalid(f"{name} must be a tuple of {kind.__name__}, got {value!r:.60}")
    if len(value) > most:
        raise InvalidInput(
            "PROBLEM_TOO_LARGE", f"{name} must be at most {most}, got {len(value)}", most=most
        )


def _listed(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _invalid(f"{name} must be a list, got {type(value).__name__}")
    return value


def _fields(what: str, body: object, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(body, dict) or set(body) != set(names):
        got = sorted(map(str, body)) if isinstance(body, dict) else type(body).__name__
        raise _invalid(
            f"{what} must be an object with the fields {', '.join(names)}, got {got!s:.200}"
        )
    return body


def _twice(texts: Sequence[str]) -> str:
    return next(text for text in texts if texts.count(text) > 1)
