"""PTKs that ask for a place: with closed forms, or measured with samples that jump from level to
level.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from allocator.admission.coordinates import room_of, usable_coordinates
from allocator.admission.reach import least_in_each
from profiler.analytic import Profile
from profiler.levels import privacy_levels
from ptklib import registry
from ptkstore.api.goal import Goal
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.plans.planning import Candidate, fresh_loss, offers_of
from ptkstore.engine.plans.registrations import unwritten
from tests.engine import flights

__all__ = ["candidate", "least_of"]


def least_of(spec: StreamSpec, candidates: Sequence[Candidate]) -> list[int]:
    """No plan holds fewer samples: a bound for each coordinate that has one."""
    privacy_filter = spec.policy.filter()
    loss = fresh_loss(spec, privacy_filter)
    offers = [offers_of(spec, privacy_filter, one) for one in candidates]
    found = least_in_each(
        privacy_filter,
        room_of(privacy_filter, loss),
        offers,
        usable_coordinates(privacy_filter, loss),
    )
    return [one for one in found.values() if one]


def candidate(rng: random.Random, number: int, jagged: float) -> Candidate:
    """One with a closed form, or one whose measured samples jump from level to level."""
    if rng.random() >= jagged:
        keys = rng.choice(
            (
                [flights.of_carriers()],
                [flights.of_hours()],
                [flights.of_origins(), flights.of_hours()],
            )
        )
        config, target = flights.mean(*keys), 10 ** rng.uniform(-2, -0.5)
        row = unwritten(f"p{number}", "flights", "statistics", config, Goal(target))
        return Candidate(row, registry.make("statistics", config))
    levels = privacy_levels(1)
    size, samples = 10 ** rng.uniform(2.5, 5), list[int | None]()
    least = 10**9
    for level in levels:
        least = min(
            least, max(1, int(size / float(level) ** rng.uniform(0.5, 1.3) * rng.uniform(0.5, 1.5)))
        )
        samples.append(least)
    unreached = rng.choice((0, 0, 0, 2, 5))
    samples[:unreached] = [None] * unreached
    config = flights.PTKS[4][2]
    measured = Profile(levels, tuple(samples), Fraction(1, 2), Fraction(19, 20), source="measured")
    row = unwritten(f"p{number}", "flights", "clusters", config, Goal(0.5))
    return Candidate(row, registry.make("clusters", config), measured)
