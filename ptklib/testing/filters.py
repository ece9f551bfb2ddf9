"""`check_filter`: does this privacy filter keep its contract? For any filter, ours or a third
party's.

Every check has a name, and says what it found when it fails. The central one
(``keeps_its_promise``) fills the filter with random sequences of costs whose worst cases are known
exactly, and computes the delta that the pair of worst cases really has at the promised epsilon.
That accountant shares nothing with the filters: it convolves privacy-loss distributions on a grid
and **rounds every loss down**, so what it reports is a lower bound of the truth, and an accusation
is a proof (up to the sequences tried: passing is evidence, not a proof).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import MAX_EPSILON, NANO
from ptklib.privacy.costs import ApproxCost, Cost, GaussianCost, LaplaceCost, PureCost
from ptklib.privacy.filters.base import LOSS_LIMIT, Filter

__all__ = ["CHECKS", "FailedCheck", "check_filter", "findings", "least_delta"]

Floats = NDArray[np.float64]
_CELLS = 1 << 14
_TINY = PureCost(epsilon=Fraction(3, 10 * NANO))


@dataclass(frozen=True)
class FailedCheck:
    """A check that failed, and why."""

    check: str
    problem: str


class _Broken(Exception):
    """Raised inside a check with the explanation."""


class _Unbounded(Cost):
    """A cost about which nothing is known."""

    kind: ClassVar[str] = "_unbounded"

    def renyi(self, orders: Floats) -> Floats:
        return np.full(orders.shape, np.inf)


def check_filter(candidate: Filter, *, seed: int = 0) -> None:
    """Run every check; raise an AssertionError that names and explains each failure."""
    failed_checks = findings(candidate, seed=seed)
    if failed_checks:
        lines = "\n".join(f"  {failed.check}: {failed.problem}" for failed in failed_checks)
        raise AssertionError(
            f"{type(candidate).__name__} breaks the contract of a filter:\n{lines}"
        )


def findings(candidate: Filter, *, seed: int = 0) -> list[FailedCheck]:
    """What failed; empty when all is well. The same seed gives the same random cases."""
    failed_checks = []
    for check in CHECKS:
        try:
            check(candidate, np.random.default_rng(seed))
        except _Broken as broken:
            failed_checks.append(FailedCheck(check.__name__, str(broken)))
        except Exception as error:  # a filter that fails where it should answer is broken too
            failed_checks.append(
                FailedCheck(check.__name__, f"raised {type(error).__name__}: {error}")
            )
    return failed_checks


def demand_is_whole(candidate: Filter, rng: np.random.Generator) -> None:
    """A demand is ``width`` ints, from 0 to the ceiling, and the same every time."""
    for cost in _usable(candidate, rng):
        demand = candidate.demand(cost)
        if len(demand) != candidate.width or any(type(units) is not int for units in demand):
            raise _Broken(f"demand of {cost} must be {candidate.width} ints, got {demand}")
        if any(not 0 <= units <= top for units, top in zip(demand, candidate.ceiling, strict=True)):
            raise _Broken(f"demand of {cost} must be within 0 and the ceiling, got {demand}")
        if demand != candidate.demand(cost):
            raise _Broken(f"demand of {cost} must not change")


def demand_rounds_up(candidate: Filter, rng: np.random.Generator) -> None:
    """A cost far below one unit still demands one wherever costs of its kind demand anything."""
    large, tiny = (
        candidate.demand(PureCost(epsilon=candidate.epsilon / 10)),
        candidate.demand(_TINY),
    )
    if any(units > 0 and least == 0 for units, least in zip(large, tiny, strict=True)):
        raise _Broken(
            "a cost of a third of a nano must demand at least one unit wherever a large one does, "
            f"got {tiny}"
        )
    for cost in _usable(candidate, rng):
        single, double = candidate.demand(cost), candidate.demand(cost + cost)
        whole = zip(single, double, candidate.ceiling, strict=True)
        if any(min(2 * a, top) < b for a, b, top in whole):
            raise _Broken(
                f"twice the demand of {cost} must cover the demand of two of it: {single}, {double}"
            )


def demand_is_monotone(candidate: Filter, rng: np.random.Generator) -> None:
    """A larger cost never demands less."""
    levels = sorted(
        Fraction(int(n), NANO) for n in rng.integers(1, math.floor(candidate.epsilon * NANO), 200)
    )
    demands = [candidate.demand(PureCost(epsilon=level)) for level in levels]
    for level, less, more in zip(levels, demands, demands[1:], strict=False):
        if any(a > b for a, b in zip(less, more, strict=True)):
            raise _Broken(
                f"demand must not fall as epsilon rises above {level}: {less}, then {more}"
            )
    for cost in _usable(candidate, rng):
        if any(
            a > b
            for a, b in zip(candidate.demand(cost), candidate.demand(cost + _TINY), strict=True)
        ):
            raise _Broken(f"adding a cost to {cost} must not lower its demand")


def admits_is_monotone(candidate: Filter, rng: np.random.Generator) -> None:
    """A point that refuses a charge refuses it with more loss, or more demand; only their sum
    counts.
    """
    losses = _losses(candidate, rng, 400)
    for cost in _usable(candidate, rng):
        demand = np.array(candidate.demand(cost), dtype=np.int64)
        more = rng.integers(0, np.array(candidate.ceiling, dtype=np.int64) // 10 + 2)
        plain = candidate.admits(losses, demand)
        if (candidate.admits(losses + more, demand) & ~plain).any():
            raise _Broken(f"a point with more loss admits {cost} where one with less does not")
        if (candidate.admits(losses, demand + more) & ~plain).any():
            raise _Broken(f"a point admits more than {cost} where it does not admit {cost}")
        if (candidate.admits(losses + demand, np.zeros_like(demand)) != plain).any():
            raise _Broken(
                f"only loss + demand may count, but moving {cost} from one to the other changes "
                "the answer"
            )
        one_by_one = [bool(candidate.admits(row[None, :], demand)[0]) for row in losses[:50]]
        if one_by_one != plain[:50].tolist():
            raise _Broken("many points at once must be judged as each alone")


def keeps_its_promise(candidate: Filter, rng: np.random.Generator) -> None:
    """Whatever sequence was admitted, its true delta at epsilon is at most the promised one."""
    for _ in range(6):
        costs = _filled(candidate, rng, _usable(candidate, rng))
        least = least_delta(costs, float(candidate.epsilon))
        if least > float(candidate.delta) * (1 + 1e-9) + 1e-12:
            raise _Broken(
                f"{len(costs)} admitted costs have delta >= {least:.3g} at epsilon "
                f"{float(candidate.epsilon):g}, "
                f"promised {float(candidate.delta):.3g}; the first are {costs[:3]}"
            )


def refuses_unknown_costs(candidate: Filter, rng: np.random.Generator) -> None:  # noqa: ARG001
    """A cost without a bound is refused with COST_UNSUPPORTED, alone or in a sum."""
    for cost in (_Unbounded(), _Unbounded() + PureCost(epsilon=candidate.epsilon / 10)):
        try:
            demand = candidate.demand(cost)
        except InvalidInput as error:
            if error.reason != "COST_UNSUPPORTED":
                raise _Broken(
                    "a cost without a bound must be refused as COST_UNSUPPORTED, got "
                    f"{error.reason}"
                ) from error
        else:
            raise _Broken(f"a cost without a bound must be refused, got the demand {demand}")


def survives_json(candidate: Filter, rng: np.random.Generator) -> None:
    """The JSON form, through text, gives an equal filter with the same answers."""
    body = candidate.as_json()
    try:
        again = type(candidate).from_json(json.loads(json.dumps(body)))
    except (InvalidInput, TypeError, KeyError) as error:
        raise _Broken(f"its own JSON form cannot be read back: {error}") from error
    losses = _losses(candidate, rng, 200)
    for cost in _usable(candidate, rng):
        demand = candidate.demand(cost)
        if (
            again.demand(cost) != demand
            or (again.admits(losses, demand) != candidate.admits(losses, demand)).any()
        ):
            raise _Broken(f"read back from JSON it judges {cost} differently")
    if again.as_json() != body or again != candidate:
        raise _Broken("read back from JSON it is a different filter")


def quota_is_never_looser(candidate: Filter, rng: np.random.Generator) -> None:
    """A scaled filter has the same demands and admits nothing that the filter refuses."""
    losses = _losses(candidate, rng, 400)
    for share in (Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 1000)):
        quota = candidate.scaled(share)
        for cost in _usable(candidate, rng):
            demand = candidate.demand(cost)
            if quota.demand(cost) != demand:
                raise _Broken(f"a share of {share} must have the same demand for {cost}")
            if (quota.admits(losses, demand) & ~candidate.admits(losses, demand)).any():
                raise _Broken(f"a share of {share} admits {cost} where the whole does not")
    empty = np.zeros((1, candidate.width), dtype=np.int64)
    most = candidate.demand(PureCost(epsilon=candidate.left(empty[0].tolist())))
    if candidate.scaled(Fraction(1, 2)).admits(empty, most)[0]:
        raise _Broken("a share of 1/2 admits the largest charge that the whole admits")


def never_overflows(candidate: Filter, rng: np.random.Generator) -> None:
    """Losses and demands at the ends of int64 are refused, and sums stay inside."""
    top = np.iinfo(np.int64).max
    zero = np.zeros(candidate.width, dtype=np.int64)
    for loss, demand in (
        (top, 0),
        (LOSS_LIMIT + 1, 0),
        (0, top),
        (top, top),
        (LOSS_LIMIT, LOSS_LIMIT),
    ):
        if candidate.admits((zero + loss)[None, :], zero + demand)[0]:
            raise _Broken(f"loss {loss} with demand {demand} in every coordinate must be refused")
    if max(candidate.ceiling) >= LOSS_LIMIT:
        raise _Broken(f"the ceiling must be below 2**62, got {max(candidate.ceiling)}")
    if candidate.epsilon < MAX_EPSILON / 2:
        huge = candidate.demand(PureCost(epsilon=MAX_EPSILON))
        if candidate.admits(zero[None, :], huge)[0]:
            raise _Broken(f"a cost of epsilon {MAX_EPSILON} must be refused by a fresh point")
    one_dead = _losses(candidate, rng, candidate.width)
    one_dead[np.arange(candidate.width), np.arange(candidate.width)] = LOSS_LIMIT + 1
    if candidate.admits(one_dead, zero).any():
        raise _Broken("a point with one coordinate above 2**62 must admit nothing")


def left_is_exact(candidate: Filter, rng: np.random.Generator) -> None:
    """What is left is admitted, and one nano more is not."""
    for _ in range(5):
        costs = _filled(candidate, rng, _usable(candidate, rng))
        costs = costs[: int(rng.integers(0, len(costs) + 1))]
        loss = np.zeros(candidate.width, dtype=np.int64)
        for cost in costs:
            loss += np.array(candidate.demand(cost), dtype=np.int64)
        left = candidate.left(loss.tolist())
        if (left * NANO).denominator != 1:
            raise _Broken(f"left must be whole nanos, got {left}")
        if (
            left > 0
            and not candidate.admits(loss[None, :], candidate.demand(PureCost(epsilon=left)))[0]
        ):
            raise _Broken(f"left says {left} but that is not admitted at {loss.tolist()}")
        more = left + Fraction(1, NANO)
        if (
            more <= MAX_EPSILON
            and candidate.admits(loss[None, :], candidate.demand(PureCost(epsilon=more)))[0]
        ):
            raise _Broken(f"left says {left} but a nano more is admitted at {loss.tolist()}")


Check = Callable[[Filter, np.random.Generator], None]

CHECKS: tuple[Check, ...] = (
    demand_is_whole,
    demand_rounds_up,
    demand_is_monotone,
    admits_is_monotone,
    keeps_its_promise,
    refuses_unknown_costs,
    survives_json,
    quota_is_never_looser,
    never_overflows,
    left_is_exact,
)


def least_delta(costs: Sequence[Cost], epsilon: float) -> float:
    """A lower bound of the true delta at ``epsilon`` of pure, approx, Laplace and Gaussian costs
    together.

    Losses are rounded down to a grid, those above it to its top, and those below it are dropped:
    all of these lower the result.
    """
    reach = 4 * epsilon + 1e-9
    grid = np.linspace(-reach, reach, 2 * _CELLS + 1)
    total = np.zeros(grid.shape)
    total[_CELLS] = 1.0
    kept = 1.0
    for cost in costs:
        kept *= 1 - float(cost.slack())
        total = signal.fftconvolve(total, _losses_of(cost, grid))
        total[3 * _CELLS] += total[3 * _CELLS + 1 :].sum()
        total = np.maximum(total[_CELLS : 3 * _CELLS + 1], 0)
    above = grid > epsilon
    return float(1 - kept + kept * (total[above] * -np.expm1(epsilon - grid[above])).sum())


def _losses_of(cost: Cost, grid: Floats) -> Floats:
    """The mass of the privacy loss of the cost's worst pair in each cell [grid_i, grid_i+1), at its
    lower end.
    """
    edges = np.append(grid[1:], np.inf)
    if isinstance(cost, GaussianCost):
        mu_squared = float(cost.mu_squared())
        upper = stats.norm.cdf(edges, loc=mu_squared / 2, scale=math.sqrt(mu_squared))
        return np.diff(
            upper, prepend=stats.norm.cdf(grid[0], loc=mu_squared / 2, scale=math.sqrt(mu_squared))
        )
    basic = cost.basic()
    assert basic is not None, f"no worst case known for {cost.kind}"
    loss = float(basic[0])
    upper = (
        _laplace_cdf(edges, loss) if isinstance(cost, LaplaceCost) else _response_cdf(edges, loss)
    )
    first = (
        _laplace_cdf(grid[:1], loss)
        if isinstance(cost, LaplaceCost)
        else _response_cdf(grid[:1], loss)
    )
    return np.diff(upper, prepend=first[0])


def _response_cdf(edges: Floats, loss: float) -> Floats:
    """P(privacy loss < edge) of randomized response: -loss with probability 1/(1 + exp(loss)), else
    loss.
    """
    low = 1 / (1 + math.exp(loss))
    return np.where(edges > loss, 1.0, np.where(edges > -loss, low, 0.0))


def _laplace_cdf(edges: Floats, loss: float) -> Floats:
    """P(privacy loss < edge) of Laplace noise: exp((edge - loss)/2)/2 between -loss and loss, with
    atoms at both.
    """
    inner = np.exp(np.minimum(edges - loss, 0.0) / 2) / 2
    return np.where(edges > loss, 1.0, np.where(edges > -loss, inner, 0.0))


def _usable(candidate: Filter, rng: np.random.Generator) -> list[Cost]:
    """Costs of random sizes, of the kinds this filter takes."""
    epsilon = float(candidate.epsilon)
    sizes = [
        Fraction(float(s)).limit_denominator(10**6)
        for s in epsilon * np.exp(rng.uniform(-4.5, -0.7, 6))
    ]
    sizes = [max(size, Fraction(1, NANO)) for size in sizes]
    costs: list[Cost] = [PureCost(epsilon=size) for size in sizes[:2]]
    costs += [LaplaceCost(scale=1, sensitivity=size) for size in sizes[2:4]]
    costs += [GaussianCost(sigma=1, sensitivity=size / 2) for size in sizes[4:]]
    if candidate.delta > 0:
        small = max(Fraction(candidate.delta / 1000).limit_denominator(10**18), Fraction(1, 10**18))
        costs.append(ApproxCost(epsilon=sizes[0], delta=small))
    return [cost for cost in costs if _takes(candidate, cost)]


def _takes(candidate: Filter, cost: Cost) -> bool:
    try:
        candidate.demand(cost)
    except InvalidInput:
        return False
    return True


def _losses(candidate: Filter, rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Random losses around the capacity."""
    top = np.array(candidate.ceiling, dtype=np.float64) * 1.1
    scale = rng.uniform(0, 1, (rows, 1)) * rng.uniform(0.5, 1, (rows, candidate.width))
    return np.asarray((scale * top).astype(np.int64))


def _filled(
    candidate: Filter, rng: np.random.Generator, costs: Sequence[Cost], most: int = 300
) -> list[Cost]:
    """Random costs until the filter refuses ten in a row; a few kinds at a time, so that sequences
    are of one character.
    """
    few = [
        costs[i]
        for i in rng.choice(
            len(costs), size=min(len(costs), int(rng.integers(1, 4))), replace=False
        )
    ]
    loss = np.zeros((1, candidate.width), dtype=np.int64)
    admitted: list[Cost] = []
    refused = 0
    while refused < 10 and len(admitted) < most:
        cost = few[int(rng.integers(len(few)))]
        demand = np.array(candidate.demand(cost), dtype=np.int64)
        if candidate.admits(loss, demand)[0]:
            admitted.append(cost)
            loss = loss + demand
        else:
            refused += 1
    return admitted
