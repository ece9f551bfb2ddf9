"""What the allocator would change, in the terms of a store: a capacity is an E, an option a target.

The allocator speaks of amounts in one coordinate of the stream's filter. Under pure and basic
composition those are epsilons, so a larger capacity is a larger E; under others an E is tried, and
named where its filter has the room. An option that would fit becomes
the tightest target that has one, found by halving, for a few PTKs at most. Public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from allocator.admission.single import Settled
from allocator.plan import Change, Explanation
from ptklib.privacy.amounts import MAX_EPSILON, NANO, show
from ptklib.privacy.filters import Filter
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views.remedies import ADVICE, Remedy
from ptkstore.engine.plans.planning import Candidate, offers_of

__all__ = ["LOOSEST", "plan_remedies"]

# In thousandths. Losses are below one, so a target of one promises nothing.
LOOSEST = 999
_SUMS = ("pure", "basic")
# Each takes a few profiles in closed form.
_MOST_TARGETS = 3


def plan_remedies(
    spec: StreamSpec,
    privacy_filter: Filter,
    settled: Settled,
    told: Explanation | None,
    candidates: Sequence[Candidate],
    *,
    known: Mapping[str, float | None] = MappingProxyType({}),
) -> tuple[Remedy, ...]:
    """What would give these PTKs a plan: the changes of an explanation, as data.

    Targets that are ``known`` are not looked for again.
    """
    if told is None:
        return ()
    named = {candidate.row.name: candidate for candidate in candidates}
    options = [change for change in told.changes if change.kind == "option"]
    searched = options[:_MOST_TARGETS]

    def target(change: Change) -> float | None:
        name = change.ptk or ""
        if name in known:
            return known[name]
        room, coordinate = change.value, settled.coordinate
        if change not in searched or coordinate is None or not isinstance(room, int):
            return None
        newcomer = named[name]
        if newcomer.row.target is None:
            return None
        return _tightest(
            newcomer.row.target,
            lambda value: any(
                offer.demand[coordinate] <= room and offer.samples <= spec.n_max
                for offer in offers_of(spec, privacy_filter, newcomer, target=value).offers
            ),
        )

    return tuple(_remedy(spec, settled, change, target) for change in told.changes)


def _remedy(
    spec: StreamSpec,
    settled: Settled,
    change: Change,
    target: Callable[[Change], float | None],
) -> Remedy:
    if change.kind == "capacity":
        epsilon = _epsilon(spec, settled, change)
        text = (
            change.text
            if epsilon is None
            else f"Promise epsilon {_rounded_up(epsilon)} instead of "
            f"{show(Fraction(spec.policy.epsilon))}."
        )
        return Remedy(kind="epsilon", field="epsilon", value=epsilon, text=text)
    if change.kind == "n_max":
        text = (
            f"Hold up to {change.value:,} records of a window instead of {spec.n_max:,} (n_max), in "
            "windows long enough to have them."
        )
        return Remedy(kind="n_max", field="n_max", value=change.value, text=text)
    if change.kind == "option":
        value = target(change)
        text = (
            change.text
            if value is None
            else f"Loosen the target of {change.ptk} to {value:g}, an error of {value:.3%}.".replace(
                ".000%", "%"
            )
        )
        return Remedy(kind="target", ptk=change.ptk, field="target", value=value, text=text)
    if change.kind == "remove":
        return Remedy(kind="remove", ptk=change.ptk, text=change.text)
    return Remedy(kind=ADVICE, text=change.text)


def _epsilon(spec: StreamSpec, settled: Settled, change: Change) -> str | None:
    """The E that leaves as much as is needed; None where none is known.

    Where amounts are epsilons, that many more. Else the same number of units more, up to a
    thousandth, is tried: a Renyi divergence grows with E one to one at least. It counts only if
    the filter of that promise has the room.
    """
    coordinate = settled.coordinate
    if settled.problem is None or coordinate is None or not isinstance(change.value, int):
        return None
    units = change.value - settled.problem.capacity
    epsilon = Fraction(spec.policy.epsilon) + Fraction(units, NANO)
    if spec.policy.composition in _SUMS and coordinate == 0:
        return show(epsilon)
    epsilon = Fraction(math.ceil(epsilon * 1000), 1000)
    if units <= 0 or epsilon > MAX_EPSILON:
        return None
    now = spec.policy.filter()
    then = replace(spec.policy, epsilon=epsilon).filter()
    if _order(then, coordinate) != _order(now, coordinate):
        return None
    if then.capacity[coordinate] < now.capacity[coordinate] + units:
        return None
    return show(epsilon)


def _rounded_up(epsilon: str) -> str:
    """In thousandths: nobody promises more digits."""
    return f"{math.ceil(Fraction(epsilon) * 1000) / 1000:g}"


def _order(privacy_filter: Filter, coordinate: int) -> Fraction | None:
    """Of a Renyi filter: which orders it has follows from E."""
    orders: Sequence[Fraction | None] = getattr(privacy_filter, "orders", ())
    return orders[coordinate] if coordinate < len(orders) else None


def _tightest(target: float, fits: Callable[[float], bool]) -> float | None:
    """The tightest target in thousandths, looser than the present one, that fits; a looser target
    never needs more.
    """
    low, high = int(target * 1000), LOOSEST
    if low >= high or not fits(high / 1000):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle / 1000) else (middle, high)
    return high / 1000
