"""What other ways of accounting say of the same training: for comparison and for planning.

**None of these is a cost**, and none can become one: a `PlanningEstimate` is no number and no
`Cost`, so neither a filter nor an amount takes it. Use ``run.cost`` (`runs`).

`zcdp_of_reshuffling`    rho of zCDP, turned into epsilon by rho + 2 sqrt(rho log(1/delta)): valid
                         but loose; the exact Gaussian profile of the same run is below it
`zcdp_of_sampling`       rho = q^2/sigma^2 for each sampled step, in a limited range of orders. An
                         *empirical* bound that nobody has proved; and the condition it was tried
                         under, q <= 1/(16 sigma), is soon left: ``in_tried_range`` says so
`moments_accountant`     the moments of the sampled Gaussian at whole orders up to 32, and the
                         conversion of its first publication: valid for Poisson batches, not tight
`strong_composition`     amplified (epsilon, delta) steps under the strong composition theorem

Names and formulas are those of Yu, Liu, Pu, Gursoy & Truex, "Differentially private model
publishing for deep learning" (2019). No data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, show
from ptklib.privacy.schedules.runs import ReshuffledRun, SampledRun

__all__ = [
    "PlanningEstimate",
    "moments_accountant",
    "strong_composition",
    "zcdp_of_reshuffling",
    "zcdp_of_sampling",
]

_MOST_MOMENT = 32


@dataclass(frozen=True, kw_only=True)
class PlanningEstimate:
    """An epsilon to plan with, at a delta; never to be charged."""

    method: str
    planned_epsilon: float
    delta: Fraction
    proved: bool
    in_tried_range: bool = True


def zcdp_of_reshuffling(run: ReshuffledRun, delta: Number) -> PlanningEstimate:
    """Theorem 2 and Proposition 1: epochs add up to rho = sum of 1/(2 sigma^2)."""
    chance = _some(delta)
    rho = float(run.mu_squared) / 2
    return PlanningEstimate(
        method="zCDP of reshuffling",
        planned_epsilon=_of_rho(rho, chance),
        delta=chance,
        proved=True,
    )


def zcdp_of_sampling(run: SampledRun, delta: Number) -> PlanningEstimate:
    """Theorem 3 with P(q, sigma) = q^2/sigma^2, orders up to the least sigma^2 log(1/(q sigma)) +
    1 of all steps.
    """
    chance, rate = _some(delta), float(run.rate)
    sigmas = [float(sigma) for sigma in run.sigmas]
    rho = sum(run.steps * (rate / sigma) ** 2 for sigma in sigmas)
    most = min(sigma**2 * math.log(1 / (rate * sigma)) + 1 for sigma in sigmas)
    if most <= 1:
        raise InvalidInput(
            "ESTIMATE_OUT_OF_RANGE",
            f"this estimate needs rate times sigma below 1, got rate {rate:g} and sigma up to "
            f"{max(sigmas):g}: use the run's cost",
        )
    if math.log(1 / chance) <= rho * (most - 1) ** 2:
        epsilon = _of_rho(rho, chance)
    else:
        epsilon = rho * most + math.log(1 / chance) / (most - 1)
    return PlanningEstimate(
        method="zCDP of sampling",
        planned_epsilon=epsilon,
        delta=chance,
        proved=False,
        in_tried_range=all(rate <= 1 / (16 * sigma) for sigma in sigmas),
    )


def moments_accountant(run: SampledRun, delta: Number) -> PlanningEstimate:
    """The least, over whole moments, of (log moment + log(1/delta)) / moment (Abadi et al.
    2016).
    """
    chance = _some(delta)
    moments = np.arange(1, _MOST_MOMENT + 1, dtype=np.float64)
    total = run.cost.renyi(moments + 1) * moments
    return PlanningEstimate(
        method="moments accountant",
        planned_epsilon=float(np.min((total + math.log(1 / chance)) / moments)),
        delta=chance,
        proved=True,
    )


def strong_composition(run: SampledRun, delta: Number) -> PlanningEstimate:
    """Equal steps: each (e, d) by the classical bound sigma = sqrt(2 log(1.25/d)) / e, amplified to
    (log(1 + q (exp(e) - 1)), q d), and k of them composed to (e sqrt(2 k log(1/d')) + k e (exp(e) -
    1), k q d + d').

    The delta is shared equally: q d = d' = delta / (k + 1).
    """
    chance, rate, steps = _some(delta), float(run.rate), run.total_steps
    if len(set(run.sigmas)) > 1:
        raise InvalidInput(
            "ESTIMATE_OUT_OF_RANGE",
            "strong composition is stated for equal steps, got a schedule: use the run's cost",
        )
    share = float(chance) / (steps + 1)
    whole = math.sqrt(2 * math.log(1.25 * rate / share)) / float(run.sigmas[0])
    amplified = math.log1p(rate * math.expm1(whole))
    epsilon = amplified * math.sqrt(2 * steps * math.log(1 / share))
    epsilon += steps * amplified * math.expm1(amplified)
    return PlanningEstimate(
        method="strong composition",
        planned_epsilon=epsilon,
        delta=chance,
        # The classical bound is stated for steps with an epsilon below 1.
        proved=whole < 1,
    )


def _of_rho(rho: float, delta: Fraction) -> float:
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def _some(delta: Number) -> Fraction:
    chance = delta_exact(delta)
    if chance == 0:
        raise InvalidInput(
            "ESTIMATE_OUT_OF_RANGE",
            f"an estimate needs a delta above 0, got {show(chance)}",
        )
    return chance
