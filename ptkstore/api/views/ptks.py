"""PTKs as people see them: registrations, configurations, subscriptions, profiles and states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptkstore.api.views.remedies import Remedy
from ptkstore.api.views.view import View

__all__ = [
    "AppliedView",
    "ProfileView",
    "PtkConfig",
    "PtkPage",
    "PtkView",
    "Registration",
    "StateError",
    "StateView",
    "SubscriptionView",
]


@dataclass(frozen=True)
class Registration(View):
    """The answer to a registration or an update. ``status`` is ACTIVE, WAITING (for its profile) or
    REJECTED.

    ``reason`` is for people, ``nearest_target`` is the best target that would be accepted now,
    ``remedies`` what else would admit it, and ``changes`` their words. ``refining``: this is the best answer so far; the PTK is
    worked on in the background, and may be accepted yet or get a tighter ``nearest_target``. One of best
    effort has no ``planned_samples``: it gets what a window leaves.
    """

    name: str
    status: str
    reason: str = ""
    nearest_target: float | None = None
    changes: tuple[str, ...] = ()
    planned_epsilon: str | None = None
    planned_samples: int | None = None
    refining: bool = False
    remedies: tuple[Remedy, ...] = ()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Registration:
        """Read `as_json` back."""
        remedies = tuple(map(Remedy.from_json, body["remedies"]))
        return cls(**(body | {"changes": tuple(body["changes"]), "remedies": remedies}))


@dataclass(frozen=True)
class AppliedView(View):
    """What became of changes that were applied: the streams that were made, every PTK that was
    added or changed, and those that were retired.
    """

    streams: tuple[str, ...] = ()
    registrations: tuple[Registration, ...] = ()
    retired: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> AppliedView:
        """Read `as_json` back."""
        return cls(
            streams=tuple(body["streams"]),
            registrations=tuple(map(Registration.from_json, body["registrations"])),
            retired=tuple(body["retired"]),
        )


@dataclass(frozen=True)
class PtkView(View):
    """A registered PTK. It has a ``target`` or, of best effort, an ``epsilon``. ``status``: ACTIVE,
    WAITING, REJECTED, RETIRED or FAILED (its last training was lost).

    ``nearest_target`` and ``remedies`` (in words, ``changes``) are what would have admitted one that
    is REJECTED, as far as that is known; ``refining``: the store is still looking for better ones,
    and for a plan. ``over`` says of which windows its states are (`ptkstore.api.over`).
    """

    name: str
    stream: str
    kind: str
    config: dict[str, Any]
    config_version: int
    target: float | None
    train_every: int
    status: str
    reason: str
    latest_version: int | None
    nearest_target: float | None = None
    changes: tuple[str, ...] = ()
    refining: bool = False
    remedies: tuple[Remedy, ...] = ()
    over: str = "all"
    epsilon: str | None = None

    @property
    def asked(self) -> str:
        """What it is asked for, in a word or two: its target, or "best effort" with its epsilon."""
        return (
            f"{self.target:g}" if self.epsilon is None else f"best effort, epsilon {self.epsilon}"
        )


@dataclass(frozen=True)
class PtkPage(View):
    """A page of a search: how many PTKs were ``found``, of how many in ``total``."""

    ptks: tuple[PtkView, ...]
    found: int
    total: int
    page: int


@dataclass(frozen=True)
class PtkConfig(View):
    """A configuration that a PTK has or had."""

    version: int
    config: dict[str, Any]


@dataclass(frozen=True)
class SubscriptionView(View):
    """Who is told of a PTK's states, and up to which version that was done."""

    id: str
    ptk: str
    endpoint: str
    delivered_version: int


@dataclass(frozen=True)
class ProfileView(View):
    """Samples of a PTK at each level, None where its target is not reached. ``source``: analytic,
    measured, or none yet.

    ``promised`` is the loss that these samples keep with ``confidence``; ``measured`` are the
    results of the levels that were measured; ``needed_records`` is what a profile up to 4,096
    samples would take of a window, where there is none yet. One of best effort has none: its one level
    is the epsilon that it states, with the least samples that it trains on.
    """

    ptk: str
    status: str
    source: str
    levels: tuple[str, ...]
    samples: tuple[int | None, ...]
    promised: str | None = None
    confidence: str | None = None
    trainings: int = 0
    measured: tuple[dict[str, Any], ...] = ()
    made_ms: int | None = None
    needed_records: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class StateError(View):
    """The error that a state of best effort tells. It is ``at_most`` so much, and ``at_least`` where
    that is known, with ``confidence``. ``source``: "closed form" (public numbers: how far its noise
    takes it from what its records say) or "test" (the mean loss on records that its training did not
    touch; ``estimate`` is a guess of it). ``constant`` is the loss of the best constant, where an earlier
    profile of the same configuration has measured it.
    """

    source: str
    at_most: float
    confidence: str
    at_least: float | None = None
    estimate: float | None = None
    constant: float | None = None

    @property
    def text(self) -> str:
        """In a few words."""
        if self.estimate is None:
            told = f"at most {self.at_most:g}"
        else:
            told = f"{self.estimate:.3g} ({self.at_least or 0:g} to {self.at_most:g})"
        return told if self.constant is None else f"{told}, a constant {self.constant:.3g}"


@dataclass(frozen=True)
class StateView(View):
    """One version of a PTK in the lake. ``validation``: VALIDATED, NOT_SHOWN (given only to those
    who ask for it by its number) or NOT_TESTED with the reason; empty where its promise follows from
    public numbers. One of best effort has ``error`` instead of a promise: ESTIMATED by a test, or from
    public numbers; None where it could not be told.
    """

    name: str
    version: int
    digest: str
    window: int
    epsilon: str
    delta: str
    samples: int | None
    created_ms: int
    validation: str = ""
    validation_reason: str = ""
    error: StateError | None = None
