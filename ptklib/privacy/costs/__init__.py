"""What a mechanism costs, as a value: sum it, convert it, print it, store it.

``base`` states what every cost answers; the kinds are in ``pure``, ``laplace``, ``gaussian``,
``sampled_run``, ``parallel``, ``stopping`` and ``sums``. All are frozen, hashable, validated at
construction and take keywords only. ``a + b`` composes; ``as_json`` and `cost_from_json` round-trip
exactly.

====================================  ====================================================  =======  =====
kind                                  what it is                                            basic    GDP
====================================  ====================================================  =======  =====
`PureCost`                            epsilon-DP                                            yes      yes
`ApproxCost`                          (epsilon, delta)-DP                                   yes      no
`ExponentialCost`                     exponential mechanism, bounded range                  yes      yes
`LaplaceCost`                         continuous Laplace noise                              yes      yes
`DiscreteLaplaceCost`                 Laplace noise on the integers                         yes      yes
`GaussianCost`                        Gaussian noise                                        no       yes
`ReshuffledGaussianCost`              Gaussian batch sums, one unamplified pass an epoch    no       yes
`GdpCost`                             mu-GDP                                                no       yes
`ZcdpCost`                            rho-zCDP                                              no       no
`SampledGaussianCost`                 Poisson-sampled Gaussian steps (DP-SGD)               no       no
`SampledRunCost`                      a run of such steps, each with its own noise          no       rate 1
`RenyiCost`                           a given Renyi curve                                   no       no
`BestOfNegativeBinomialCost`          the best of a random number of runs                   if all   no
`BestOfPoissonCost`                   the same, Poisson                                     no       no
`ParallelCost`                        costs on disjoint parts, of which a unit is in one    if all   if all
`Composed`                            a sum                                                 if all   if all
====================================  ====================================================  =======  =====

All have a Renyi curve. A cost without a basic form is made basic by choosing its delta:
``ApproxCost(epsilon=cost.epsilon(d), delta=d)``.
"""

from __future__ import annotations

from ptklib.privacy.costs.base import Cost, cost_from_json
from ptklib.privacy.costs.gaussian import (
    GaussianCost,
    GdpCost,
    ReshuffledGaussianCost,
    SampledGaussianCost,
    ZcdpCost,
)
from ptklib.privacy.costs.laplace import DiscreteLaplaceCost, LaplaceCost
from ptklib.privacy.costs.parallel import ParallelCost
from ptklib.privacy.costs.pure import ApproxCost, ExponentialCost, PureCost
from ptklib.privacy.costs.sampled_run import SampledRunCost
from ptklib.privacy.costs.stopping import BestOfNegativeBinomialCost, BestOfPoissonCost
from ptklib.privacy.costs.sums import Composed, RenyiCost

__all__ = [
    "ApproxCost",
    "BestOfNegativeBinomialCost",
    "BestOfPoissonCost",
    "Composed",
    "Cost",
    "DiscreteLaplaceCost",
    "ExponentialCost",
    "GaussianCost",
    "GdpCost",
    "LaplaceCost",
    "ParallelCost",
    "PureCost",
    "RenyiCost",
    "ReshuffledGaussianCost",
    "SampledGaussianCost",
    "SampledRunCost",
    "ZcdpCost",
    "cost_from_json",
]
