"""Profiles from a closed form: samples needed at each privacy level, from public numbers alone,
hence free.

A PTK that has one answers ``analytic_profile``; the others must be profiled on data, which costs. A
profile is monotone: a larger epsilon never needs more samples, because adding the noise of a
smaller one would reach the target as well. Where a closed form is not quite monotone (roundings),
the larger level is lowered to what the smaller one needs; such a level costs more than one that
needs as little, so no plan is worse off or better off for it.

``promised`` is the loss that the state stays within with probability ``confidence``: the target
itself here; a profiler that estimates from data may promise less than was asked.

Reasons: PROFILE_UNAVAILABLE (no closed form), PROFILE_INVALID (levels or answers that make no
profile), those of `amounts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, exact, show

__all__ = ["ANALYTIC", "Analytic", "Profile", "profile"]

ANALYTIC = "analytic"


class Analytic(Protocol):
    """What a PTK must answer here; `ptklib.ptk.Ptk` does."""

    def analytic_profile(
        self,
        target: float,
        levels: Sequence[Number],
        delta: Number = 0,
        *,
        records_per_unit: int = 1,
    ) -> tuple[int | None, ...] | None:
        """Samples needed at each level, None where the target is out of reach; None without a
        closed form.
        """


@dataclass(frozen=True)
class Profile:
    """Samples needed to reach a target at each level (rising epsilons); None: not reachable
    there.
    """

    levels: tuple[Fraction, ...]
    samples: tuple[int | None, ...]
    promised: Fraction
    confidence: Fraction
    source: str = ANALYTIC
    ptk_id: str | None = None

    def __post_init__(self) -> None:
        """Levels rise, samples fall."""
        if not self.levels or list(self.levels) != sorted(set(self.levels)):
            raise _invalid("levels must be epsilons in rising order, at least one")
        if len(self.samples) != len(self.levels):
            raise _invalid(
                f"samples must be as many as levels ({len(self.levels)}), got {len(self.samples)}"
            )
        if not all(
            sample is None or (type(sample) is int and sample > 0) for sample in self.samples
        ):
            raise _invalid(f"samples must be positive integers or None, got {self.samples!r:.100}")
        if not 0 < self.confidence < 1 or self.promised < 0:
            raise _invalid("confidence must be between 0 and 1, and what is promised not negative")
        known = [sample for sample in self.samples if sample is not None]
        if self.samples[len(self.samples) - len(known) :] != tuple(known) or known != sorted(
            known, reverse=True
        ):
            raise _invalid(
                "samples must not grow with epsilon, and what one level reaches every larger one "
                "must reach"
            )

    def as_json(self) -> dict[str, Any]:
        """The JSON form; exact."""
        return {
            "levels": [show(level) for level in self.levels],
            "samples": list(self.samples),
            "promised": show(self.promised),
            "confidence": show(self.confidence),
            "source": self.source,
            "ptk_id": self.ptk_id,
        }

    @classmethod
    def from_json(cls, body: Any) -> Profile:
        """Read the form of ``as_json``."""
        wanted = {"levels", "samples", "promised", "confidence", "source", "ptk_id"}
        if not isinstance(body, dict) or set(body) != wanted:
            raise _invalid(
                f"a profile must be an object with the fields {', '.join(sorted(wanted))}"
            )
        if not isinstance(body["levels"], list) or not isinstance(body["samples"], list):
            raise _invalid("levels and samples must be lists")
        return cls(
            levels=tuple(epsilon_exact(level, name="level") for level in body["levels"]),
            samples=tuple(body["samples"]),
            promised=exact(body["promised"], name="promised"),
            confidence=exact(body["confidence"], name="confidence"),
            source=str(body["source"]),
            ptk_id=body["ptk_id"],
        )


def profile(
    ptk: Analytic,
    target: Number,
    levels: Sequence[Number],
    delta: Number = 0,
    records_per_unit: int = 1,
    *,
    ptk_id: str | None = None,
    confidence: Number = "0.95",
) -> Profile:
    """The profile of a PTK with a closed form; refuses one without (PROFILE_UNAVAILABLE). Reads no
    data, costs nothing.

    ``confidence`` is recorded: it must be the one the PTK's closed form is made for.
    """
    wanted = exact(target, name="target")
    grid = tuple(epsilon_exact(level, name="level") for level in levels)
    samples = ptk.analytic_profile(
        float(wanted), grid, delta_exact(delta), records_per_unit=records_per_unit
    )
    if samples is None:
        raise InvalidInput(
            "PROFILE_UNAVAILABLE",
            f"a PTK of kind {getattr(ptk, 'kind', type(ptk).__name__)} has no closed form for its "
            "samples: "
            "profile it on data, or state its samples at each level yourself",
            ptk_id=ptk_id,
        )
    if len(samples) != len(grid):
        raise _invalid(
            f"a PTK must answer for each of the {len(grid)} levels, got {len(samples)} answers"
        )
    return Profile(
        levels=grid,
        samples=_falling(samples),
        promised=wanted,
        confidence=exact(confidence, name="confidence"),
        ptk_id=ptk_id,
    )


def _falling(samples: Sequence[int | None]) -> tuple[int | None, ...]:
    kept: list[int | None] = []
    for sample in samples:
        before = kept[-1] if kept else None
        kept.append(before if sample is None else sample if before is None else min(sample, before))
    return tuple(kept)


def _invalid(message: str) -> InvalidInput:
    return InvalidInput("PROFILE_INVALID", message)
