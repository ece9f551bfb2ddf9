"""Training embeddings: activities first, then tastes by turns, each from noisy sums alone.

1. *Items*: count and sum of each item. They give the level, and the activity of each item.
2. *Users*: count and sum of residuals of each user, for her activity (event level only).
3. *Tastes*, by turns. Residuals are clipped once; what users and items add up is residual times the
   features of the partner. Event level: users on the features of items (random ones to begin with),
   items on those of users, and so on, users last. User level: what a user's records say of her is
   worked out for her alone, released nowhere, and enters only through what her records add to their
   items.

Between two sums features are made uncorrelated (`hpf.whitened`), so that no factor repeats another.
This is subspace iteration on the matrix of residuals: the part of the variational steps of Poisson
factorization that needs the data.

With a previous state its features are the first ones, and its sums, turned as the features turn,
are added to the new ones.

**Proof note.** Everything here is a function of releases of the plan (`hpf_plan` has unit,
sensitivity and cost), of the previous state and of random start features, but for: the residual of
a record, which depends on that record and on releases; and, at user level, what depends on the
records of one user and on releases. Both are cut to the bounds of the plan, as whole numbers,
before they are summed. Start features need variety, not secrecy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.noise.source import BitSource, require_secure
from ptklib.ptk import Arrays
from ptklib.ptks.embeddings.events import Integers, Interactions
from ptklib.ptks.embeddings.factorization import (
    RESOLUTION,
    SPREAD,
    balance,
    information,
    shrunk,
    times,
    variance_of,
    whitened,
    whole,
)
from ptklib.ptks.embeddings.releases import COUNT_UNITS, SQUARE_UNITS, STEPS, EmbeddingReleases
from ptklib.ptks.embeddings.side import Side

__all__ = [
    "Training",
    "activity_of",
    "best_guess",
    "level_of",
    "own_activity",
    "own_tastes",
    "spread_of",
]

# Of the level before any data: uniform over the range.
_LEVEL_VARIANCE = 1 / 12
# Rates are positive: a level below this share of the range is taken as this.
_LEAST_LEVEL = 1e-3
# A user's own mean and tastes are shrunk as by this many records at the mean.
_OWN_RECORDS = 5.0
# Of the tastes of a user whose history is projected.
_OWN_VARIANCE = 0.01
# Squares and records behind the spread are kept in units of so many records.
_SPREAD_RECORDS = 200.0

Floats = NDArray[np.float64]
State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Training:
    """One training on some events with the releases of a plan.

    ``floor`` is the lower bound over the range: a value of share z of the range has the rate floor
    + z, in ranges.
    """

    events: Interactions
    plan: EmbeddingReleases
    clip: float
    rounds: int
    tastes: int
    floor: float
    noise: BitSource | None

    def run(self, previous: Arrays | None) -> State:
        """The arrays of the state; with those of users at event level. Cost: that of the plan."""
        before = {} if previous is None else dict(previous)
        counts, level, state = self._item_activity(before)
        if self.plan.records == 1:
            self._by_turns(state, before, counts, level)
        else:
            self._items_alone(state, before, counts, level)
        return state

    def _item_activity(self, before: State) -> tuple[Floats, float, State]:
        """The level and what is known of each item's activity; and the counts and the level of this
        window alone.

        Residuals are taken from the level of their window: a shift of all values is not a taste.
        """
        counts, sums, noise = self._counted(self.events.item_totals(), 1 / (2 * STEPS))
        whole_noise = noise * float(np.sqrt(len(counts)))
        fresh = _pair(information(np.array([[sums.sum()]]), np.array([counts.sum()]), whole_noise))[
            0
        ]
        old = before.get("level", np.zeros(2))
        state: State = {"level": fresh + old}
        # What was before counts as half a record: it matters only where this window tells nothing.
        level = level_of(
            {"level": fresh + old * min(1.0, 0.5 / max(float(old[1]), 0.5))}, self.floor
        )
        middle = level - self.floor - 0.5
        # Read later as sums above the level, so the noise of the count enters as well.
        noise = float(np.hypot(noise, middle * float(self.plan.activity.sigma) / COUNT_UNITS))
        state["item_counts"] = _added(counts, before.get("item_counts"))
        state["item_activity"] = _added(
            _pair(information(sums[:, None], counts, noise)), before.get("item_activity")
        )
        return counts, level, state

    def _user_activity(self, state: State, before: State, level: float) -> Floats:
        """What is known of each user's activity; and the counts of this window alone."""
        residuals = self._residuals(state, level, np.zeros(len(self.events.starts) - 1))
        every, told, noise = self._counted(self.events.user_totals(residuals), self.clip / STEPS)
        counts, sums = every[:-1], told[:-1]
        above = information(sums[:, None], counts, noise)
        # From above the level to above the middle of the range: the level of the next window may be
        # another.
        sums = sums + (level - self.floor - 0.5) * np.maximum(counts, 0.0)
        state["user_counts"] = _added(counts, before.get("user_counts"))
        found = information(sums[:, None], counts, noise)
        state["user_activity"] = _added(_pair(found), before.get("user_activity"))
        # What the activity of users will explain of the squares is not chance.
        explained = float(variance_of(above[0], above[1])[0])
        records = max(float(counts.sum()), 0.0)
        squares = float(told[-1]) * self.clip * STEPS / SQUARE_UNITS - records * explained
        state["spread"] = _added(
            np.array([squares, records]) / _SPREAD_RECORDS, before.get("spread")
        )
        return counts

    def _by_turns(self, state: State, before: State, item_counts: Floats, level: float) -> None:
        """Users on items, items on users, ..., users last."""
        user_counts = self._user_activity(state, before, level)
        matrix = self._residuals(state, level, activity_of(state, "user", self.floor))
        items = self._side("item", item_counts, state, before)
        users = self._side("user", user_counts, state, before)
        units, echo = whole(self._start(before, len(item_counts))), None
        for step in range(2 * self.rounds + 1):
            learner, partner, sums = (
                (users, items, matrix) if step % 2 == 0 else (items, users, matrix.T)
            )
            learner.learn(
                *self._measured(sums @ units), *balance(units / RESOLUTION, partner.counts), echo
            )
            if step == 2 * self.rounds:
                break
            made = learner.features()
            echo = learner.echo(made, units / RESOLUTION)
            learner.turn(made.axes)
            partner.turn(made.axes)
            units = whole(made.features)
        state["item_tastes"] = units / RESOLUTION
        state["item_sums"], state["item_weights"] = times(items.sums, made.axes), items.weights
        state["user_sums"], state["user_weights"] = users.sums, users.weights

    def _items_alone(self, state: State, before: State, item_counts: Floats, level: float) -> None:
        """Items on what the own records of their users say, several times."""
        state["spread"] = before.get("spread", np.zeros(2))
        events, items = self.events, self._side("item", item_counts, state, before)
        own = np.diff(events.starts).astype(np.float64)
        plain = self._residuals(state, level, np.zeros(len(own)))
        above = plain @ np.full(len(item_counts), self.clip / STEPS)
        matrix = self._residuals(state, level, own_activity(above, own))
        features = self._start(before, len(item_counts))
        for _ in range(self.rounds):
            tastes = own_direction(matrix @ features * (self.clip / STEPS), own)
            # The mean square of raw features is not known: a guess, which only scales what is
            # whitened anyway.
            items.learn(
                *self._measured(matrix.T @ whole(tastes)),
                1 / (2 * self.tastes),
                np.eye(self.tastes),
                None,
            )
            made = items.features()
            items.turn(made.axes)
            features = made.features
        state |= {
            "item_tastes": features,
            "item_sums": times(items.sums, made.axes),
            "item_weights": items.weights,
        }

    def _side(self, name: str, counts: Floats, state: State, before: State) -> Side:
        old = before.get(f"{name}_sums"), before.get(f"{name}_weights")
        return Side(counts, state[f"{name}_counts"], *old, spread_of(state))

    def _residuals(self, state: State, level: float, users: Floats) -> Any:
        """The matrix of whole residuals: each depends on its record, on releases, and on ``users``
        of its own user.
        """
        items = level + activity_of(state, "item", self.floor)
        return self.events.residuals(items, 1.0 + users / level, -self.floor, self.clip)

    def _start(self, before: State, items: int) -> Floats:
        """The last features, or random ones."""
        if "item_tastes" in before:
            return np.asarray(before["item_tastes"], dtype=np.float64)
        words = require_secure(self.noise).words(items * self.tastes).astype(np.float64)
        return whitened(words.reshape(items, self.tastes) * 2.0**-63 - 1.0, np.ones(items)).features

    def _counted(self, totals: Integers, unit: float) -> tuple[Floats, Floats, float]:
        """Noisy counts and sums, and the standard deviation of the noise of a sum.

        Cost: one `activity` release.
        """
        noisy = self.plan.activity.release(totals, source=self.noise).values
        counts: Floats = noisy[:, 0] / COUNT_UNITS
        sums: Floats = noisy[:, 1].astype(np.float64) * unit
        return counts, sums, float(self.plan.activity.sigma) * unit

    def _measured(self, sums: Floats) -> tuple[Floats, float]:
        """Sums on features with noise, and the standard deviation of it.

        Cost: one `tastes` release.
        """
        unit = self.clip / (STEPS * RESOLUTION)
        noisy = self.plan.tastes.release(sums.astype(np.int64), source=self.noise).values
        found: Floats = noisy.astype(np.float64) * unit
        return found, float(self.plan.tastes.sigma) * unit


def level_of(state: Arrays, floor: float) -> float:
    """The mean rate, in ranges."""
    told, weight = (float(one) for one in state["level"])
    middle = 0.5 + told / (weight + SPREAD / _LEVEL_VARIANCE)
    return max(_LEAST_LEVEL, floor + min(max(middle, 0.0), 1.0))


def activity_of(state: Arrays, side: str, floor: float) -> Floats:
    """How far the mean of each user or item is above the level, in ranges."""
    told, weights = state[f"{side}_activity"].T
    above = told - (level_of(state, floor) - floor - 0.5) * weights
    return best_guess(above[:, None], weights, SPREAD)[:, 0]


def spread_of(state: Arrays) -> float:
    """The variance of a residual, as a share of the squared range; `SPREAD` counts as
    `_SPREAD_RECORDS` records.
    """
    squares, records = (float(one) for one in state["spread"])
    found = (squares + SPREAD) / (max(records, 0.0) + 1.0)
    return min(max(found, SPREAD / 10), 4 * SPREAD)


def best_guess(sums: Floats, weights: Floats, spread: float) -> Floats:
    """From (h, J) and v alone."""
    return shrunk(sums, weights, variance_of(sums, weights, spread), spread)


def own_activity(above: Floats, counts: Floats) -> Floats:
    """How far a user's values are above what is expected of their items, from her own records."""
    return above / (counts + _OWN_RECORDS)


def own_direction(sums: Floats, counts: Floats) -> Floats:
    """Of length below 1: the direction of a user's own sums, shorter the more of it may be
    chance.
    """
    square = np.einsum("nk,nk->n", sums, sums) + counts * SPREAD
    found: Floats = sums / np.sqrt(np.maximum(square, 1e-30))[:, None]
    return found


def own_tastes(sums: Floats, counts: Floats, state: Arrays) -> Floats:
    """A user's tastes from sums of her own residuals times the tastes of items, shrunk where those
    are mostly noise.
    """
    weights, spread = state["item_weights"], spread_of(state)
    share = np.maximum(state["item_counts"], 0.0)
    share = share / max(float(share.sum()), 1e-30)
    variance = variance_of(state["item_sums"], weights, spread)
    certain = share @ (weights[:, None] / (weights[:, None] + spread / variance))
    square = float(share @ np.square(state["item_tastes"]).mean(axis=1))
    found: Floats = certain * sums / (counts * square + spread / _OWN_VARIANCE)[:, None]
    return found


def _added(new: Floats, old: Floats | None) -> Floats:
    return new if old is None else new + old


def _pair(found: tuple[Floats, Floats]) -> Floats:
    """(h, J) of one number per row, side by side."""
    return np.column_stack(found)
