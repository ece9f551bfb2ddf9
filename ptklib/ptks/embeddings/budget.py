"""How one training divides its budget: how much for the level, for activities, for tastes and for
their test.

Tastes are bought only where they can be worth their price. Every number of every row costs noise, so
with few records for each user and item, or a small epsilon, tastes drown, and what is spent on them
is missing in activities. `shares_of` asks two things: whether a sum on features would be data to a
least part (`_WORTH`), and whether activities hardly suffer from what they do without (`_HARM`). The
answer hangs on public numbers (the budget, the sizes of the domains, the factors) and on what is
released before tastes in any case: the number of records, how far values differ, and how much of
that is the items' doing.

**Proof note.** Post-processing of releases. Whatever is decided, shares are at most `PARTS` together
(`Shares` refuses more), which is what the price says (`releases`). No decision makes a training
fail: what noise cannot be drawn for is not bought, or refused before there is data (`checked`).

Reasons: those of `mechanisms.release`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptklib.ptks.embeddings.releases import COUNT_UNITS, PARTS, STEPS, EmbeddingReleases

__all__ = [
    "LEVEL",
    "MOST_PRODUCTS",
    "Prospect",
    "Shares",
    "checked",
    "items_first",
    "of_users",
    "shares_of",
]

# The number of records and the sums of their values and squares, of all rows together: little noise.
LEVEL = 200
_TRUST = 300
# How activities work together, where that is all that is left to ask.
_INTERPLAY = 200
# The least part of a sum on features that is data: from a hundredth on, turns between users and items
# find what is common to all rows.
_WORTH = 0.01
# The most that activities may suffer, in squared error over the variance of what they leave.
_HARM = 0.006
# From here on noise is no matter, and more turns are better ones.
_PLENTY, _MORE_ROUNDS = 0.9, 5
# Products of features have noise, too: below this part they tell less than they cost. Those of more
# features would take more memory and time than they are worth.
_PRODUCTS_WORTH, MOST_PRODUCTS = 0.1, 15


@dataclass(frozen=True)
class Shares:
    """Parts of the budget, of each release of a training after the level."""

    items: int
    users: int
    items_again: int = 0
    updates: int = 0
    update: int = 0  # of each of them
    products: bool = False  # whether updates release products of features, too
    trust: int = 0  # of the test of tastes
    interplay: int = 0  # of how activities work together

    def __post_init__(self) -> None:
        """Never more than there is."""
        parts = (self.items, self.users, self.items_again, self.trust, self.interplay)
        turns = (self.updates, self.update)
        if min(*parts, *turns) < 0 or LEVEL + sum(parts) + self.updates * self.update > PARTS:
            raise AssertionError(f"shares {self} are not within {PARTS}")


@dataclass(frozen=True)
class Prospect:
    """What is known when it is decided whether to buy tastes.

    ``records`` are those of this window and ``older`` those of the windows before, ``sizes`` the
    numbers of users and items, and ``left`` is the variance that activities will leave, in squared
    ranges.
    """

    records: float
    older: float
    sizes: tuple[int, int]
    left: float


def items_first(plan: EmbeddingReleases) -> int:
    """The share of items, which are counted before it is decided."""
    return int((PARTS - LEVEL - _TRUST) * plan.share / 2)


def shares_of(plan: EmbeddingReleases, known: Prospect, clip: float, tastes: int) -> Shares:
    """All shares, that of `items_first` among them."""
    items, whole = items_first(plan), PARTS - LEVEL
    for_tastes, updates, interplay = _for_tastes(plan)
    worth = _worth(plan, known, clip, tastes, for_tastes // updates)
    bought = worth >= _WORTH and _harm(plan, known, items) <= _HARM
    if not _possible(plan) or not (bought or plan.always):
        users = (whole - _INTERPLAY) // 2
        again = whole - _INTERPLAY - users - items
        return Shares(items=items, users=users, items_again=again, interplay=_INTERPLAY)
    more = max(updates, 2 * _MORE_ROUNDS + 1)
    if worth >= _PLENTY and plan.draws_tastes(for_tastes // more, products=False):
        updates = more
    update = for_tastes // updates
    products = worth >= _PRODUCTS_WORTH and tastes <= MOST_PRODUCTS
    products = products and plan.draws_tastes(update, products=True)
    return Shares(items, items, 0, updates, update, products, _TRUST, interplay)


def of_users(plan: EmbeddingReleases) -> tuple[int, int]:
    """At user level: the share of items, and that of each of the updates."""
    items = int(PARTS * plan.share / 2)
    return items, (PARTS - items) // plan.rounds


def checked(plan: EmbeddingReleases) -> EmbeddingReleases:
    """The plan, if the noise of all that a training makes in any case can be drawn. It is refused
    before there is data, or else a budget would be spent on nothing.
    """
    if plan.records > 1:
        items, update = of_users(plan)
        plan.activity(items)
        plan.tastes(update, products=False)
        return plan
    plan.activity(min(LEVEL, items_first(plan)))
    plan.trust(_TRUST)
    for_tastes, updates, _ = _for_tastes(plan)
    if plan.always and for_tastes >= updates:
        plan.tastes(for_tastes // updates, products=False)
    return plan


def _for_tastes(plan: EmbeddingReleases) -> tuple[int, int, int]:
    """What there would be for tastes, for how many updates at least, and for how activities work
    together: a tenth, which can be drawn wherever tastes can.
    """
    left = PARTS - LEVEL - _TRUST - 2 * items_first(plan)
    return left - left // 10, 2 * plan.rounds + 1, left // 10


def _possible(plan: EmbeddingReleases) -> bool:
    """Whether there is a share for each update, with noise that can be drawn."""
    for_tastes, updates, _ = _for_tastes(plan)
    return for_tastes >= updates and plan.draws_tastes(for_tastes // updates, products=False)


def _worth(
    plan: EmbeddingReleases, known: Prospect, clip: float, tastes: int, update: int
) -> float:
    """The part of the variance of a sum on features that would be data: of a user or an item,
    whichever has the fewer records, if all had the same number.
    """
    if update < 1:
        return 0.0
    noise = clip * clip * plan.base**2 * PARTS / update
    # Beside their noise, k windows of n records tell as much as one of n sqrt(k).
    records = float(np.sqrt(known.records * (known.records + known.older)))
    data = records / max(known.sizes) / (2 * tastes) * known.left
    return data / (data + noise)


def _harm(plan: EmbeddingReleases, known: Prospect, items: int) -> float:
    """How much larger the squared error of activities would be with ``items`` parts for each side
    than with all for both, over what they leave.
    """
    # Of a sum of values, which are within half a range of the middle.
    unit = plan.base**2 * 0.25 * (1 + (COUNT_UNITS / STEPS) ** 2) * PARTS
    every = PARTS // 2
    worse = 0.0
    for size in known.sizes:
        records, older = known.records / size, known.older / size
        # What is known without this window: that rows differ about so much, and older sums.
        before = 4 / known.left + older / (known.left + unit / every / records)
        some, more = (
            1 / (before + records / (known.left + unit / parts / records))
            for parts in (items, every)
        )
        worse += some - more
    return worse / known.left
