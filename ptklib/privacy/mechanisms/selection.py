"""Choose one of several candidates by an integer score, and release only which one.

The candidates are public and in a public order; their scores come from the data. Neither score nor
margin of the winner is released.

Reasons: those of `inputs` and `amounts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import ApproxCost, ExponentialCost, PureCost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.gibbs import draw_indices
from ptklib.privacy.mechanisms.inputs import (
    IntegerData,
    integer_array,
    noise_scale,
    sensitivity_integer,
)
from ptklib.privacy.noise.sampler import geometric
from ptklib.privacy.noise.source import BitSource

__all__ = ["ExponentialMechanism", "NoisyMax", "Selection", "score_list"]


@dataclass(frozen=True)
class Selection:
    """The index of the chosen candidate, and what the choice cost."""

    index: int
    cost: ApproxCost | ExponentialCost | PureCost


def score_list(scores: IntegerData) -> NDArray[np.int64]:
    """Scores as a one-dimensional array, clamped as `inputs` says."""
    data = integer_array(scores, name="scores")
    if data.ndim != 1:
        raise InvalidInput("DATA_SHAPE_INVALID", f"scores must have one axis, got {data.ndim}")
    return data


@dataclass(frozen=True, init=False)
class ExponentialMechanism:
    """Candidate i with probability proportional to exp(rate * score_i), rate = epsilon / (2 *
    sensitivity), exactly.

    *Unit*: that of the scores, integers. *Neighbours*: add or remove one unit of privacy (record or
    user). *Sensitivity*: each score moves by at most ``sensitivity`` between neighbours, in any
    direction. *Cost*: ln(p_i/p'_i) = rate (s_i - s'_i) + ln(W'/W). The first term lies in an
    interval of width 2 rate sensitivity = epsilon and the second is the same for all i, so the
    range of the privacy loss is at most epsilon: epsilon-bounded range, which implies epsilon-DP
    and is what `ExponentialCost` means.
    """

    epsilon: Fraction
    sensitivity: int
    rate: Fraction
    cost: ExponentialCost

    def __init__(self, *, epsilon: Number, sensitivity: int) -> None:
        """Check the parameters and fix the cost; no data yet."""
        level, reach = epsilon_exact(epsilon), sensitivity_integer(sensitivity)
        keep(
            self,
            epsilon=level,
            sensitivity=reach,
            rate=level / (2 * reach),
            cost=ExponentialCost(epsilon=level),
        )

    def release(self, scores: IntegerData, *, source: BitSource | None = None) -> Selection:
        """The chosen index; high scores are likely. Every call costs ``cost``."""
        return Selection(
            int(draw_indices(score_list(scores), self.rate, 1, source=source)[0]), self.cost
        )


@dataclass(frozen=True, init=False)
class NoisyMax:
    """The candidate with the largest score plus geometric noise of scale ``2 * sensitivity /
    epsilon``; first of equals.

    *Unit*: that of the scores, integers. *Neighbours*: add or remove one unit of privacy (record or
    user). *Sensitivity*: each score moves by at most ``sensitivity`` between neighbours, in any
    direction. *Cost*: fix a candidate i and the noise of all others. Then i wins iff its noise G >=
    k, where k is the least integer with s_i + k > s_j + G_j for j < i and s_i + k >= s_j + G_j for
    j > i. For a neighbour the same holds with some k' <= k + 2 sensitivity. P(G >= k) = exp(-max(k,
    0)/scale), so P(G >= k') >= exp(-2 sensitivity/scale) P(G >= k) = exp(-epsilon) P(G >= k).
    Averaging over the noise of the others gives epsilon-DP. The rule for equals is part of k and
    integer thresholds are all there is, so nothing is lost to ties.
    """

    epsilon: Fraction
    sensitivity: int
    scale: Fraction
    cost: PureCost

    def __init__(self, *, epsilon: Number, sensitivity: int) -> None:
        """Check the parameters and fix the cost; no data yet."""
        level, reach = epsilon_exact(epsilon), sensitivity_integer(sensitivity)
        keep(
            self,
            epsilon=level,
            sensitivity=reach,
            scale=noise_scale(2 * reach / level),
            cost=PureCost(epsilon=level),
        )

    def release(self, scores: IntegerData, *, source: BitSource | None = None) -> Selection:
        """The chosen index; high scores are likely. Every call costs ``cost``."""
        data = score_list(scores)
        noise = geometric(data.shape, self.scale, source=source)
        # Gaps instead of scores: noise minus a gap of at most 2**61 cannot overflow.
        return Selection(int(np.argmax(noise - (data.max() - data))), self.cost)
