"""Training embeddings: the level first, then activities, then tastes by turns, each from noisy sums
alone.

1. *The level* (event level only): the number of records, the sum of their values and of squares.
   They say how the rest of the budget is divided (`budget`), and whether tastes are bought at all.
2. *Items*: count and sum of each item, for its activity (`activities`, `rows`).
3. *Users*: count and sum of residuals of each user, for her activity (event level only); then how
   activities work together (`trust`).
4. *Tastes*, by turns. Residuals are clipped once; what users and items add up is residual times the
   features of the partner. Event level: users on the features of items (random ones to begin with),
   items on those of users, and so on, users last; with the sums go the products of the features, so
   that each row is read by what it met (`grams`). User level: what a user's records say of her is
   worked out for her alone, released nowhere, and enters only through what her records add to their
   items.
5. *Trust* (event level only): how far tastes predict records that they were not learned from
   (`trust`). Tastes that do not are not used.

Between two sums features are made uncorrelated (`whitened`), so that no factor repeats another.
This is subspace iteration on the matrix of residuals: the part of the variational steps of Poisson
factorization that needs the data.

With a previous state its features are the first ones, and its sums, turned as the features turn,
are added to the new ones.

**Proof note.** Everything here is a function of releases of the plan (`releases` has unit,
sensitivity and cost), of the previous state and of random start features, but for: the residual of
a record, which depends on that record and on releases, and so does what tastes predict of it; and,
at user level, what depends on the records of one user and on releases. All are cut to the bounds of
the plan, as whole numbers, before they are summed. Start features need variety, not secrecy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.noise.source import BitSource, require_secure
from ptklib.ptk import Arrays
from ptklib.ptks.embeddings.activities import Level, Reading, both, keep, left_by
from ptklib.ptks.embeddings.budget import LEVEL, Prospect, Shares, items_first, of_users, shares_of
from ptklib.ptks.embeddings.events import EventTable, Integers
from ptklib.ptks.embeddings.factorization import (
    RESOLUTION,
    balance,
    information,
    moment_of,
    times,
    variance_of,
    whitened,
    whole,
)
from ptklib.ptks.embeddings.grams import products_of
from ptklib.ptks.embeddings.reading import (
    SPREAD_RECORDS,
    activity_of,
    best_guess,
    level_of,
    own_activity,
    own_direction,
    spread_of,
)
from ptklib.ptks.embeddings.releases import (
    COUNT_UNITS,
    GRAM_SCALE,
    SQUARE_UNITS,
    STEPS,
    EmbeddingReleases,
)
from ptklib.ptks.embeddings.side import Side
from ptklib.ptks.embeddings.trust import evidence, interplay_in, sums_of

__all__ = ["Training"]

Floats = NDArray[np.float64]
State = dict[str, NDArray[Any]]

_OF_TASTES = ("item_tastes", "item_sums", "user_sums")
# Below this part activities are as good as added up.
_LEAST_TOGETHER = 0.01


@dataclass(frozen=True)
class Training:
    """One training on some events with the releases of a plan.

    ``floor`` is the lower bound over the range: a value of share z of the range has the rate floor
    + z, in ranges.
    """

    events: EventTable
    plan: EmbeddingReleases
    clip: float
    tastes: int
    floor: float
    noise: BitSource | None

    def run(self, previous: Arrays | None) -> State:
        """The arrays of the state; with those of users at event level. Cost: that of the plan."""
        before = {} if previous is None else dict(previous)
        state: State = {name: before.get(name, np.zeros(3)) for name in ("interplay", "trust")}
        state["values"] = np.array(before.get("values", np.zeros(2)))
        if self.plan.records > 1:
            return self._of_users(state, before)
        counts, sums, noise = self._counted(self.events.level_totals(), 1 / (2 * STEPS), LEVEL)
        level = self._level(state, before, counts[:1], sums[:1], noise)
        sizes = len(self.events.starts) - 1, self.events.item_count
        squares = float(sums[1]) * STEPS / (2 * SQUARE_UNITS)
        state["values"] += np.array([squares, counts[0]]) / SPREAD_RECORDS
        known = Level(level - self.floor, float(counts[0]), squares, self.clip)
        parts = items_first(self.plan)
        reach = known.reach(self.plan, sizes[1], parts)
        flat = self.events.residuals(
            np.full(sizes[1], level), np.ones(sizes[0]), -self.floor, reach
        )
        totals = self.events.item_residuals(flat)
        items = self._counted(totals, reach / STEPS, parts)
        left = left_by(items, known.spread, level)
        older = float(before["item_counts"].sum()) if before else 0.0
        prospect = Prospect(max(float(counts[0]), 1.0), max(older, 0.0), sizes, left)
        learned = _learned(before, self.tastes)
        shares = shares_of(self.plan, prospect, self.clip, learned)
        if shares.items_again:
            again = self._counted(totals, reach / STEPS, shares.items_again)
            items = both(items, again)
        keep(state, before, "item", items, known, items[2] * STEPS / reach)
        reach = known.reach(self.plan, sizes[0], shares.users)
        users = self._user_activity(state, before, known, reach, shares.users)
        self._interplay(state, level, shares)
        if shares.updates:
            together = interplay_in(state["interplay"]) if learned < self.tastes else 1.0
            flat = self._residuals(
                state, level, activity_of(state, "user", self.floor), together=together
            )
            turns = replace(self, tastes=learned)
            turns._by_turns(state, _cut(before, learned), (users, items[0]), flat, shares)
            for name in _OF_TASTES:
                state[name] = np.pad(state[name], ((0, 0), (0, self.tastes - learned)))
        else:
            self._without(state, before, sizes)
        return state

    def _of_users(self, state: State, before: State) -> State:
        """Training at user level."""
        parts, update = of_users(self.plan)
        counts, sums, noise = self._counted(self.events.item_totals(), 1 / (2 * STEPS), parts)
        everything = np.array([counts.sum()]), np.array([sums.sum()])
        level = self._level(state, before, *everything, noise * float(np.sqrt(len(counts))))
        # Sums above the level, so the noise of the count enters as well.
        middle, sigma = level - self.floor - 0.5, noise * 2 * STEPS
        noise = float(np.hypot(noise, middle * sigma / COUNT_UNITS))
        told = counts, sums - middle * counts, noise
        known = Level(level - self.floor, 0.0, 0.0, self.clip)
        keep(state, before, "item", told, known, sigma)
        self._items_alone(state, before, counts, level, update)
        return state

    def _level(
        self, state: State, before: State, counts: Floats, sums: Floats, noise: float
    ) -> float:
        """That of this window, from which residuals are taken: a shift of all values is no taste."""
        fresh = _pair(information(sums[:, None], counts, noise))[0]
        old = before.get("level", np.zeros(2))
        state["level"] = fresh + old
        # What was before counts as half a record: it matters only where this window tells nothing.
        return level_of(
            {"level": fresh + old * min(1.0, 0.5 / max(float(old[1]), 0.5))}, self.floor
        )

    def _user_activity(
        self, state: State, before: State, known: Level, reach: float, parts: int
    ) -> Floats:
        """What is known of each user's activity; and the counts of this window alone."""
        users = np.zeros(len(self.events.starts) - 1)
        residuals = self._residuals(state, known.share + self.floor, users, reach=reach)
        every, told, noise = self._counted(self.events.user_totals(residuals), reach / STEPS, parts)
        counts, sums = every[:-1], told[:-1]
        above = information(sums[:, None], counts, noise)
        keep(state, before, "user", (counts, sums, noise), known, noise * STEPS / reach)
        # What the activity of users will explain of the squares is not chance.
        explained = float(variance_of(above[0], above[1])[0])
        records = max(float(counts.sum()), 0.0)
        squares = float(told[-1]) * reach * STEPS / SQUARE_UNITS - records * explained
        state["spread"] = _added(
            np.array([squares, records]) / SPREAD_RECORDS, before.get("spread")
        )
        return counts

    def _by_turns(
        self,
        state: State,
        before: State,
        counts: tuple[Floats, Floats],
        residuals: Any,
        shares: Shares,
    ) -> None:
        """Users on items, items on users, ..., users last; then how far that is true."""
        held = self.events.held_out()
        matrix, met = self.events.learned_from(residuals, held)
        users = self._side("user", counts[0], state, before)
        items = self._side("item", counts[1], state, before)
        units, echo = whole(self._start(before, len(counts[1]))), None
        for step in range(shares.updates):
            learner, partner, of_residuals, of_ones = (
                (users, items, matrix, met) if step % 2 == 0 else (items, users, matrix.T, met.T)
            )
            self._learn(learner, partner, (of_residuals, of_ones), units, echo, shares)
            if step == shares.updates - 1:
                break
            made = learner.features()
            echo = learner.echo(made, units / RESOLUTION)
            learner.turn(made.axes)
            partner.turn(made.axes)
            units = whole(made.features)
        state["item_tastes"] = units / RESOLUTION
        state["item_sums"], state["item_weights"] = times(items.sums, made.axes), items.weights
        state["user_sums"], state["user_weights"] = users.sums, users.weights
        state["trust"] = state["trust"] + self._trust(state, residuals, held, shares.trust)

    def _learn(
        self,
        learner: Side,
        partner: Side,
        sums_over: tuple[Any, Any],
        units: Floats,
        echo: Floats | None,
        shares: Shares,
    ) -> None:
        """One turn: noisy sums on the features of the partner, read by what each row met."""
        matrix, met = sums_over
        features = units / RESOLUTION
        if not shares.products:
            told = self._measured(matrix @ units, shares.update)
            learner.learn(*told, *balance(features, partner.counts), echo)
            return
        release = self.plan.tastes(shares.update, products=True)
        products = met @ (products_of(units) * GRAM_SCALE)
        both = np.hstack([matrix @ units, products]).astype(np.int64)
        noisy = release.release(both, source=self.noise).values.astype(np.float64)
        unit, sigma = self.clip / (STEPS * RESOLUTION), float(release.sigma)
        of_products = 1 / (GRAM_SCALE * RESOLUTION**2)
        moment = moment_of(features, partner.counts)
        learner.learn_evened(
            noisy[:, : self.tastes] * unit,
            sigma * unit,
            (noisy[:, self.tastes :] * of_products, sigma * of_products),
            moment,
            echo,
        )

    def _trust(
        self, state: State, residuals: Any, held: NDArray[np.bool_], parts: int
    ) -> NDArray[np.float64]:
        """How far tastes predict what they were not learned from. Cost: one `trust` release."""
        tastes = best_guess(state["user_sums"], state["user_weights"], spread_of(state))
        predicted = self.events.products(tastes, state["item_tastes"], held)
        return self._tested(state, residuals.data[held], predicted, parts)

    def _interplay(self, state: State, level: float, shares: Shares) -> None:
        """How activities of users and items work together. Cost: one `trust` release."""
        users, items = (activity_of(state, side, self.floor) for side in ("user", "item"))
        residuals = self._residuals(state, level, users)
        product = self.events.products(
            users[:, None], items[:, None] / level, np.ones(len(residuals.data), dtype=np.bool_)
        )
        state["interplay"] = state["interplay"] + self._tested(
            state, residuals.data, product, shares.interplay
        )

    def _without(self, state: State, before: State, sizes: tuple[int, int]) -> None:
        """No tastes in this window: those from before, where there are any."""
        for side, size in zip(("user", "item"), sizes, strict=True):
            state[f"{side}_sums"] = before.get(f"{side}_sums", np.zeros((size, self.tastes)))
            state[f"{side}_weights"] = before.get(f"{side}_weights", np.zeros(size))
        state["item_tastes"] = before.get("item_tastes", np.zeros((sizes[1], self.tastes)))

    def _tested(self, state: State, residuals: Floats, predicted: Floats, parts: int) -> Floats:
        """Evidence for a prediction, in ranges, of whole residuals. Cost: one `trust` release."""
        scale = STEPS / self.clip
        sums = sums_of(residuals, predicted * scale)
        release = self.plan.trust(parts)
        noisy = release.release(sums, source=self.noise).values[0]
        return evidence(noisy, float(release.sigma), spread_of(state) * scale * scale)

    def _items_alone(
        self, state: State, before: State, item_counts: Floats, level: float, parts: int
    ) -> None:
        """Items on what the own records of their users say, several times."""
        state["spread"] = before.get("spread", np.zeros(2))
        events, items = self.events, self._side("item", item_counts, state, before)
        own = np.diff(events.starts).astype(np.float64)
        plain = self._residuals(state, level, np.zeros(len(own)))
        above = plain @ np.full(len(item_counts), self.clip / STEPS)
        matrix = self._residuals(state, level, own_activity(above, own))
        features = self._start(before, len(item_counts))
        for _ in range(self.plan.rounds):
            tastes = own_direction(matrix @ features * (self.clip / STEPS), own)
            # The mean square of raw features is not known: a guess, which only scales what is
            # whitened anyway.
            items.learn(
                *self._measured(matrix.T @ whole(tastes), parts),
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

    def _residuals(
        self,
        state: State,
        level: float,
        users: Floats,
        *,
        reach: float | None = None,
        together: float = 1.0,
    ) -> Any:
        """The matrix of whole residuals: each depends on its record, on releases, and on ``users``
        of its own user. They are cut at ``reach``, or else at the clip.

        ``together`` is how much of the product of activities counts: with c of it they make
        level + a + b + c a b / level, which is (level/c + b) (1 + a c/level) + level - level/c.
        """
        part = max(together, _LEAST_TOGETHER)
        items = level / part + activity_of(state, "item", self.floor)
        zero = level - level / part - self.floor
        return self.events.residuals(items, 1.0 + users * (part / level), zero, reach or self.clip)

    def _start(self, before: State, items: int) -> Floats:
        """The last features, or random ones."""
        if "item_tastes" in before and np.any(before["item_tastes"]):
            return np.asarray(before["item_tastes"], dtype=np.float64)
        words = require_secure(self.noise).words(items * self.tastes).astype(np.float64)
        return whitened(words.reshape(items, self.tastes) * 2.0**-63 - 1.0, np.ones(items)).features

    def _counted(self, totals: Integers, unit: float, parts: int) -> Reading:
        """Noisy counts and sums, and the standard deviation of the noise of a sum.

        Cost: one `activity` release.
        """
        release = self.plan.activity(parts)
        noisy = release.release(totals, source=self.noise).values
        counts: Floats = noisy[:, 0] / COUNT_UNITS
        sums: Floats = noisy[:, 1].astype(np.float64) * unit
        return counts, sums, float(release.sigma) * unit

    def _measured(self, sums: Floats, parts: int) -> tuple[Floats, float]:
        """Sums on features with noise, and the standard deviation of it.

        Cost: one `tastes` release.
        """
        release = self.plan.tastes(parts, products=False)
        unit = self.clip / (STEPS * RESOLUTION)
        noisy = release.release(sums.astype(np.int64), source=self.noise).values
        measured: Floats = noisy.astype(np.float64) * unit
        return measured, float(release.sigma) * unit


def _learned(before: State, places: int) -> int:
    """How many tastes to learn: one less than there are places for, which says how activities work
    together; unless there is one place, or the state before has tastes in all of them.
    """
    full = "item_tastes" in before and np.any(before["item_tastes"][:, -1])
    return places if places == 1 or full else places - 1


def _cut(before: State, learned: int) -> State:
    """The state with so many tastes."""
    cut = {name: before[name][:, :learned] for name in _OF_TASTES if name in before}
    return before | cut


def _added(new: Floats, old: Floats | None) -> Floats:
    return new if old is None else new + old


def _pair(known: tuple[Floats, Floats]) -> Floats:
    """(h, J) of one number per row, side by side."""
    return np.column_stack(known)
