"""From a PTK's profile to what a plan may choose from. Levels that do not reach the target are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from allocator.currency import Offer
from allocator.problem import Option
from profiler.analytic import Profile
from ptklib.privacy.amounts import show
from ptklib.privacy.filters import Demand

__all__ = ["to_offers", "to_options"]


def to_options(profile: Profile, demand_of_level: Callable[[Fraction], int]) -> tuple[Option, ...]:
    """Scalar options: ``demand_of_level(epsilon)`` in the units of the problem. Levels print as `amounts.show` does."""
    return tuple(Option(show(level), demand_of_level(level), samples) for level, samples in _reached(profile))


def to_offers(profile: Profile, demand_of_level: Callable[[Fraction], Demand]) -> tuple[Offer, ...]:
    """Offers in a filter's currency: ``demand_of_level`` is ``filter.demand(ptk.cost(epsilon, delta))``."""
    return tuple(Offer(show(level), samples, demand_of_level(level)) for level, samples in _reached(profile))


def _reached(profile: Profile) -> Iterator[tuple[Fraction, int]]:
    for level, samples in zip(profile.levels, profile.samples, strict=True):
        if samples is not None:
            yield level, samples
