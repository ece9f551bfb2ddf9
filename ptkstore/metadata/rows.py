"""What the metadata store returns: frozen values, never rows of the database.

JSON columns come back as plain Python values, a fresh copy each time. ``*_ms`` are milliseconds
since the epoch as the caller told them; None where it did not. ``id`` is given by the store and
grows within its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "BlockRow",
    "CycleRow",
    "Delivery",
    "Event",
    "Outline",
    "PlanRow",
    "ProfileRow",
    "PtkRow",
    "StateRow",
    "StepRow",
    "StreamRow",
    "Subscription",
]


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A stream and its specification."""

    name: str
    spec: Any
    created_ms: int | None


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block.

    ``status`` is open, sealed or expired; ``dp_count`` its published count, or None before that.
    """

    stream: str
    name: str
    start_ms: int
    end_ms: int
    window: int
    status: str
    dp_count: int | None


@dataclass(frozen=True, slots=True)
class PtkRow:
    """A registered PTK with its newest configuration. ``etag`` grows with every change. It has a
    ``target`` or, of best effort, an ``epsilon``.
    """

    id: int
    name: str
    stream: str
    kind: str
    config_version: int
    config: Any
    target: float | None
    train_every: int
    status: str
    reason: str
    suggestion: Any
    etag: int
    created_ms: int | None
    updated_ms: int | None
    # Over which windows its states are: the text of an `Over`.
    over: str = "all"
    epsilon: str | None = None

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> PtkRow:
        """From its columns: in the table the target of one of best effort is 0."""
        target = row["target"] if row["epsilon"] is None else None
        return cls(**{**row, "target": target})


class Outline(NamedTuple):
    """What a PTK is searched and sorted by. The target is 0 where it has none."""

    id: int
    name: str
    stream: str
    kind: str
    status: str
    target: float


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Samples needed at each level for one configuration and target: public metadata, no data."""

    id: int
    ptk: int
    config_version: int
    target: float
    levels: Any
    samples: Any
    source: str
    created_ms: int | None


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan for one window of a stream."""

    id: int
    stream: str
    window: int
    status: str
    body: Any
    created_ms: int | None


@dataclass(frozen=True, slots=True)
class CycleRow:
    """The work on one window.

    ``status`` is RUNNING until it is finished; ``body`` is None until then.
    """

    id: int
    stream: str
    window: int
    status: str
    body: Any
    started_ms: int | None
    finished_ms: int | None


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of a cycle that is done."""

    id: int
    cycle: int
    step: str
    body: Any
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class StateRow:
    """One version of a PTK: where its bytes are in the lake, and its certificate."""

    ptk: int
    version: int
    cycle: int
    digest: str
    manifest: Any
    window: int
    created_ms: int
    # VALIDATED, NOT_SHOWN or NOT_TESTED; empty where no validator was asked.
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, in the outbox. Ids grow in the order of the commits."""

    id: int
    kind: str
    subject: str
    body: Any
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """How far a subscriber is: every event up to ``event`` was handed to it."""

    subscriber: str
    event: int
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """An endpoint that wants to hear of a PTK."""

    id: int
    ptk: int
    endpoint: str
