"""What every filter answers.

A filter guards ONE point of a stream: it says which costs the point may still carry, so that
everything an adaptive analyst ever learns through it is (epsilon, delta)-DP. What a point has
carried is its **loss**, a vector of ``width`` non-negative integers; a charge adds its **demand**,
a vector of the same width. The unit of each coordinate is the filter's business: nobody else adds
up anything but integers.

The contract, checked for any filter by `ptklib.testing.filters.check_filter`:

1. ``demand`` rounds up. It never exceeds ``ceiling``, which is above the capacity: a coordinate
   without a bound saturates there, is dead from then on, and int64 cannot overflow.
2. ``admits`` depends on loss + demand only, and falls as either rises. It is integer arithmetic, so
   every machine agrees.
3. A refused charge leaves no trace: the analyst may go on with smaller ones.
4. A cost with no valid bound in the filter's currency is refused (COST_UNSUPPORTED) and never
   approximated.
5. ``as_json`` keeps orders and capacities as integers and exact text; `filter_from_json` does not
   recompute them. A journal replays bit for bit whatever the floating-point library, or a later
   version of this package, would find.
6. ``scaled`` gives a quota: a share of the capacity with the *same* demands, hence usable beside
   the filter itself. A quota alone is no privacy claim.

Losses above `LOSS_LIMIT` in any coordinate admit nothing; loss + demand therefore stays below 2**63
for ever.

Reasons: COST_UNSUPPORTED, POLICY_INVALID_COMPOSITION, POLICY_INVALID_DELTA, POLICY_INVALID_EPSILON,
SHARE_INVALID, LOSS_INVALID, FILTER_INVALID, and those of `amounts`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import (
    MAX_EPSILON,
    NANO,
    Number,
    delta_exact,
    epsilon_exact,
    exact,
    show,
)
from ptklib.privacy.bisection import last_true
from ptklib.privacy.costs import Cost, PureCost

__all__ = ["LOSS_LIMIT", "Bools", "Demand", "Filter", "Ints", "check_delta", "unsupported"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Demand = tuple[int, ...]

LOSS_LIMIT = 1 << 62
_RECENT = 1024
# A quota below this share of a promise is a mistake, and integers would round it to nothing.
_MIN_SHARE = Fraction(1, NANO)


@dataclass(frozen=True, kw_only=True)
class Filter(ABC):
    """A privacy filter. Immutable; equal filters judge alike."""

    composition: str
    epsilon: Fraction
    delta: Fraction
    capacity: Demand
    ceiling: Demand
    share: Fraction = Fraction(1)
    _cached: Callable[[Cost], tuple[Demand, Ints]] = field(init=False, repr=False, compare=False)
    _room: Ints = field(init=False, repr=False, compare=False)
    _recent: dict[int, tuple[Cost, Ints]] = field(init=False, repr=False, compare=False)
    _lefts: Callable[[tuple[int, ...]], Fraction] = field(init=False, repr=False, compare=False)

    compositions: ClassVar[tuple[str, ...]]
    json_fields: ClassVar[frozenset[str]] = frozenset(
        {"composition", "epsilon", "delta", "share", "capacity", "ceiling"}
    )

    def __post_init__(self) -> None:
        """Check what came from a journal, and set up the cache of demands."""
        object.__setattr__(self, "epsilon", epsilon_exact(self.epsilon))
        object.__setattr__(self, "delta", delta_exact(self.delta))
        whole = all(type(n) is int and 0 <= n < LOSS_LIMIT for n in (*self.capacity, *self.ceiling))
        if (
            not whole
            or not self.capacity
            or len(self.capacity) != len(self.ceiling)
            or any(most >= top for most, top in zip(self.capacity, self.ceiling, strict=True))
        ):
            raise InvalidInput(
                "FILTER_INVALID",
                "capacity and ceiling must be equally many integers below 2**62, each capacity "
                "below its ceiling",
            )
        object.__setattr__(self, "_recent", {})
        object.__setattr__(self, "_room", np.array(self.capacity, dtype=np.int64))
        object.__setattr__(self, "_cached", lru_cache(maxsize=4096)(self._demand_and_row))
        object.__setattr__(self, "_lefts", lru_cache(maxsize=_RECENT)(self._fresh_left))

    @classmethod
    def _promised(
        cls, composition: str, epsilon: Fraction, delta: Fraction, capacity: Demand, **more: Any
    ) -> Self:
        """The filter of a policy: whole, and saturated just above its capacity."""
        return cls(
            composition=composition,
            epsilon=epsilon,
            delta=delta,
            capacity=capacity,
            ceiling=tuple(most + 1 for most in capacity),
            **more,
        )

    @property
    def width(self) -> int:
        """How many integers a loss has."""
        return len(self.capacity)

    @abstractmethod
    def fresh_demand(self, cost: Cost) -> Demand:
        """What ``demand`` answers, computed anew."""

    def _demand_and_row(self, cost: Cost) -> tuple[Demand, Ints]:
        demand = self.fresh_demand(cost)
        row = np.array(demand, dtype=np.int64)
        row.flags.writeable = False
        return demand, row

    def demand(self, cost: Cost) -> Demand:
        """What a charge of this cost adds to the loss of every point it covers; rounded up."""
        return self._cached(cost)[0]

    def demand_row(self, cost: Cost) -> Ints:
        """`demand` as an array. Shared: do not write to it."""
        # The same object comes again and again; hashing its fractions each time would cost more
        # than the look-up.
        recent = self._recent.get(id(cost))
        if recent is not None and recent[0] is cost:
            return recent[1]
        row = self._cached(cost)[1]
        if len(self._recent) >= _RECENT:
            self._recent.clear()
        self._recent[id(cost)] = (cost, row)
        return row

    def admits(self, losses: Ints, demand: Sequence[int] | Ints) -> Bools:
        """For each row of ``losses`` (n, width): would loss + demand still be within the
        promise?
        """
        rows = np.asarray(losses)
        asked = np.asarray(demand)
        if rows.ndim != 2 or rows.shape[1] != self.width or asked.shape != (self.width,):
            raise InvalidInput(
                "LOSS_INVALID",
                f"losses must have shape (n, {self.width}) and demand ({self.width},), got "
                f"{rows.shape} and {asked.shape}",
            )
        if rows.dtype != np.int64 or asked.dtype.kind != "i" or min(asked.tolist()) < 0:
            raise InvalidInput("LOSS_INVALID", "losses must be int64 and demands integers from 0")
        return self.judge(rows, asked)

    def judge(self, losses: Ints, demand: Ints) -> Bools:
        """`admits` without the checks, for a caller whose arrays have the right shape and type by
        construction.
        """
        if len(losses) == 1:
            return np.array([self.judge_one(losses[0].tolist(), demand.tolist())])
        # Capacity minus demand cannot overflow; loss plus demand could.
        admitted = self._judge(losses, demand, losses <= self._room - demand)
        return (
            admitted & ~(losses > LOSS_LIMIT).any(axis=1)
            if losses.max(initial=0) > LOSS_LIMIT
            else admitted
        )

    def judge_one(self, loss: list[int], demand: list[int]) -> bool:
        """`judge` for one point, in Python's integers, which do not overflow: faster than numpy for
        so few.
        """
        return all(map(_fits, loss, demand, self.capacity)) and max(loss) <= LOSS_LIMIT

    @abstractmethod
    def _judge(self, losses: Ints, demand: Ints, fits: Bools) -> Bools:
        """Combine ``fits`` (n, width), "this coordinate stays within its capacity", into one answer
        a row.
        """

    def left(self, loss: Sequence[int]) -> Fraction:
        """The largest `PureCost`, in whole nano-epsilon, that a point with this loss still admits;
        0 when none.
        """
        # Whoever is refused is told, and a block that is full refuses everybody at the same loss.
        return self._lefts(tuple(loss))

    def _fresh_left(self, loss: tuple[int, ...]) -> Fraction:
        row = np.array([loss], dtype=np.int64)

        def fits(nano: int) -> bool:
            demand = self.fresh_demand(PureCost(epsilon=Fraction(nano, NANO)))
            return bool(self.admits(row, demand)[0])

        return Fraction(last_true(fits, 0, MAX_EPSILON * NANO + 1), NANO)

    @abstractmethod
    def spent(self, loss: Sequence[int]) -> tuple[float, float]:
        """(epsilon, delta) that this loss amounts to.

        For people: an indication, never the basis of a decision.
        """

    def scaled(self, share: Number) -> Filter:
        """A quota: admits what would fit if every capacity were this share of what it is; same
        demands.
        """
        part = exact(share, name="share")
        if not _MIN_SHARE <= part <= 1:
            raise InvalidInput(
                "SHARE_INVALID", f"share must be between 1e-9 and 1, got {show(part)}"
            )
        changed: dict[str, Any] = self._parts(part)
        return replace(self, share=exact(self.share * part, name="share"), **changed)

    def _parts(self, share: Fraction) -> dict[str, Any]:
        """The integer fields that shrink with the share, rounded down."""
        return {"capacity": tuple(math.floor(most * share) for most in self.capacity)}

    def as_json(self) -> dict[str, Any]:
        """Exact, and complete: nothing is recomputed when it is read back."""
        return {
            "composition": self.composition,
            "epsilon": show(self.epsilon),
            "delta": show(self.delta),
            "share": show(self.share),
            "capacity": list(self.capacity),
            "ceiling": list(self.ceiling),
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Read the form of ``as_json``: recorded integers count, nothing is recomputed."""
        if set(body) != cls.json_fields:
            raise InvalidInput(
                "FILTER_INVALID",
                f"a filter must have the fields {sorted(cls.json_fields)}, got {sorted(body)}",
            )
        if body["composition"] not in cls.compositions:
            raise InvalidInput("FILTER_INVALID", f"composition must be one of {cls.compositions}")
        if not isinstance(body["capacity"], list) or not isinstance(body["ceiling"], list):
            raise InvalidInput("FILTER_INVALID", "capacity and ceiling must be lists of integers")
        return cls(
            composition=body["composition"],
            epsilon=epsilon_exact(body["epsilon"]),
            delta=delta_exact(body["delta"]),
            share=exact(body["share"], name="share"),
            capacity=tuple(body["capacity"]),
            ceiling=tuple(body["ceiling"]),
            **cls.extra_from_json(body),
        )

    @classmethod
    def extra_from_json(cls, body: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG003
        """The fields a subclass adds in ``as_json``, parsed."""
        return {}

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle and copy through the JSON form; the cache stays behind."""
        return (type(self).from_json, (self.as_json(),))


def check_delta(composition: str, delta: Fraction) -> None:
    """Refuse a promise without a delta, where the composition needs one."""
    if delta == 0:
        raise InvalidInput(
            "POLICY_INVALID_DELTA",
            f"{composition} composition must have delta > 0, got 0: use pure",
            field="delta",
        )


def unsupported(cost: Cost, composition: str, advice: str) -> InvalidInput:
    """The refusal of a cost that has no bound in this currency."""
    return InvalidInput(
        "COST_UNSUPPORTED",
        f"a cost of kind {cost.kind} has no bound under {composition} composition: {advice}",
        kind=cost.kind,
        composition=composition,
    )


def _fits(used: int, asked: int, most: int) -> bool:
    return used + asked <= most
