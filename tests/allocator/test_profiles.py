"""From a profile to a plan, and the public names of both packages."""

from __future__ import annotations

import importlib
import pkgutil
from fractions import Fraction

import pytest

import allocator
import profiler
from allocator.currency import PtkOffers, settle
from allocator.problem import Option
from allocator.profiles import to_offers, to_options
from profiler.analytic import Profile
from ptklib.privacy.amounts import NANO, ceil_units
from ptklib.privacy.costs import PureCost
from ptklib.privacy.filters import make_filter

PROFILE = Profile(
    levels=(Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)),
    samples=(None, 900, 200),
    promised=Fraction(1, 20),
    confidence=Fraction(19, 20),
)


def test_unreachable_levels_are_left_out() -> None:
    options = to_options(PROFILE, lambda level: ceil_units(level, NANO))
    assert options == (Option("0.1", 10**8, 900), Option("0.5", 5 * 10**8, 200))


def test_offers_are_priced_by_the_filter() -> None:
    privacy_filter = make_filter("renyi", 1, "1e-6")
    offers = to_offers(PROFILE, lambda level: privacy_filter.demand(PureCost(epsilon=level)))
    assert [one.level for one in offers] == ["0.1", "0.5"]
    settled = settle(privacy_filter, (0,) * privacy_filter.width, [PtkOffers("a", offers), PtkOffers("b", offers)])
    assert settled.plan.total_samples == 200


MODULES = sorted(
    module.name
    for package in (allocator, profiler)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
)


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_listed_sorted_and_there(name: str) -> None:
    module = importlib.import_module(name)
    public = module.__all__
    assert public == sorted(public, key=lambda one: (not one.isupper(), not one[0].isupper(), one))
    assert all(hasattr(module, one) for one in public)
