"""How many samples to hold, and for how long: the N and T that a plan needs.

A plan counts the samples PTKs train on. The window must also hold the profile slice, and records
arrive unevenly and are spread over slices by chance, so a margin is added on top:

    N = ceil(total_samples * (1 + margin) / (1 - profile_share)),      T = ceil(N / records_per_second), in whole blocks.

The rate is public or differentially private (an operator's estimate before any data is touched, DP
counts of sealed blocks later): nothing here looks at data.

Reason: RECOMMENDATION_IMPOSSIBLE (no plan, a share that leaves nothing, a rate or a block of zero),
and those of `amounts`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from allocator.plan import Plan
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact

__all__ = ["DEFAULT_MARGIN", "Recommendation", "recommend"]

DEFAULT_MARGIN = Fraction(1, 10)


@dataclass(frozen=True)
class Recommendation:
    """Hold ``samples`` records, which arrive in ``window_seconds``.

    ``within_n_max``: the policy allows as many.
    """

    samples: int
    window_seconds: int
    within_n_max: bool
    text: str

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def recommend(
    plan: Plan,
    *,
    records_per_second: Number,
    profile_share: Number = 0,
    margin: Number = DEFAULT_MARGIN,
    block_seconds: int = 1,
    n_max: int | None = None,
) -> Recommendation:
    """The window for a plan; rounded up to whole samples and whole blocks."""
    rate = exact(records_per_second, name="records_per_second")
    share = exact(profile_share, name="profile_share")
    spare = exact(margin, name="margin")
    if plan.total_samples is None:
        raise _impossible(f"the plan must exist, got {plan.status}: see its explanation")
    if share >= 1:
        raise _impossible("profile_share must be below 1: nothing would be left to train on")
    if rate == 0 or type(block_seconds) is not int or block_seconds < 1:
        raise _impossible(
            "records_per_second and block_seconds must be positive: no window is long enough"
        )
    samples = math.ceil(plan.total_samples * (1 + spare) / (1 - share))
    blocks = max(1, math.ceil(samples / rate / block_seconds))
    seconds = blocks * block_seconds
    within = n_max is None or samples <= n_max
    text = f"Hold {samples} samples in a window of {seconds} seconds ({_human(seconds)})."
    if not within:
        text += f" That is more than the {n_max} that the policy allows: allow more, or take a smaller margin."
    return Recommendation(samples=samples, window_seconds=seconds, within_n_max=within, text=text)


def _impossible(message: str) -> InvalidInput:
    return InvalidInput("RECOMMENDATION_IMPOSSIBLE", message)


def _human(seconds: int) -> str:
    for name, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {name}"
    return f"{seconds} s"
