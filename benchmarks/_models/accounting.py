"""What a training costs, by every way of accounting: after 400 epochs at rate 0.01 and noise 6, at
a delta of 1e-5, beside the published numbers.
"""

from __future__ import annotations

from fractions import Fraction

from benchmarks.bars import Report, Say, at_most
from ptklib.privacy.schedules.calibration import Accounting, epsilon_under
from ptklib.privacy.schedules.estimates import (
    moments_accountant,
    strong_composition,
    zcdp_of_reshuffling,
    zcdp_of_sampling,
)
from ptklib.privacy.schedules.runs import ReshuffledRun, SampledRun

__all__ = ["report"]

_DELTA = Fraction(1, 100_000)
_RATE, _SIGMA, _EPOCHS = Fraction(1, 100), Fraction(6), 400
_PUBLISHED = {
    "zCDP of reshuffling": 21.5,
    "strong composition": 34.3,
    "zCDP of sampling": 2.37,
    "moments accountant": 1.67,
}
# Numbers that were read off a figure.
_MOST_OFF = 0.02


def report(say: Say) -> Report:
    """Figures, and a bar for each published one."""
    steps = int(_EPOCHS / _RATE)
    sampled = SampledRun(rate=_RATE, steps=steps, sigmas=(_SIGMA,))
    reshuffled = ReshuffledRun(sigmas=(_SIGMA,) * _EPOCHS)
    estimates = {
        "zCDP of reshuffling": zcdp_of_reshuffling(reshuffled, _DELTA),
        "strong composition": strong_composition(sampled, _DELTA),
        "zCDP of sampling": zcdp_of_sampling(sampled, _DELTA),
        "moments accountant": moments_accountant(sampled, _DELTA),
    }
    made = Report()
    rows: list[dict[str, object]] = []
    for name, published in _PUBLISHED.items():
        epsilon = estimates[name].planned_epsilon
        off = abs(epsilon / published - 1)
        rows.append({"accounting": name, "epsilon": round(epsilon, 3), "published": published})
        what = f"400 epochs, q 0.01, sigma 6, {name}: relative distance to the published epsilon"
        made.bars.append(at_most(what, off, _MOST_OFF))
    best = epsilon_under(sampled.cost, _DELTA, Accounting.PLD)
    renyi = epsilon_under(sampled.cost, _DELTA, Accounting.RENYI)
    exact = epsilon_under(reshuffled.cost, _DELTA)
    rows += [
        {"accounting": "Renyi curve, sampled (certified)", "epsilon": round(renyi, 3)},
        {"accounting": "loss distribution, sampled (certified)", "epsilon": round(best, 3)},
        {"accounting": "Gaussian profile, reshuffled (certified)", "epsilon": round(exact, 3)},
    ]
    made.bars.append(
        at_most(
            "loss distribution over the moments accountant",
            best / estimates["moments accountant"].planned_epsilon,
            1.0,
        )
    )
    made.figures["accounting"] = rows
    say(f"accounting: {rows}")
    return made
