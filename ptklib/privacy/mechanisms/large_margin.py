"""Choose among very many candidates when few are near the top: the large margin mechanism.

After Chaudhuri, Hsu and Song, "The large margin mechanism for differentially private maximization"
(2014), on integer scores, with constants of our own and the proof below. The loss in score grows
with ln(r), r being how many candidates come within the margin of the best one, whatever the number
K of all candidates. The price is a delta, a third of epsilon for the choice itself, and a margin of
some hundred sensitivities/epsilon before it helps. Candidates that far behind have a weight of
nearly zero in the exponential mechanism too, so **for candidates that fit into memory
`ExponentialMechanism` at the same epsilon is usually the better choice**; this one is for papers
and plans that ask for it.

The mechanism, for scores f of sensitivity d; f(1) >= f(2) >= ... are the sorted scores, equal ones
in index order, and U_r is the set of the first r candidates in that order. f(K+1) = -infinity.

1. m = f(1) + X,                                     X ~ DLap(3d/epsilon)
2. r = the first r < K with m - f(r+1) + Z_r >= T_r + G, or K if there is none;
                                                     G ~ DLap(6d/epsilon), Z_r ~ DLap(12d/epsilon)
3. the exponential mechanism on U_r with rate epsilon/(6d); only its index is released.

Proof that it is (epsilon, delta)-DP, for neighbours D, D' (scores f, f'): every score moves by at
most d, in any direction.

*Steps 1 and 2 release (m, r) with 2 epsilon/3.* Sorted scores move by at most d, because f(r) = max
over r-sets of their minimum. So m is a Laplace release with epsilon/3, and given m the queries m -
f(r+1) have sensitivity d: step 2 is AboveThreshold with epsilon/3 (scales d/(epsilon/6) and
2d/(epsilon/6)) whose last query always succeeds.

*Step 3 is (epsilon/3, delta_3)-DP for those r whose margin M_r = f(1) - f(r+1) is at least*
t_r = 2d + (6d/epsilon) ln(r/delta_3). Let a = epsilon/(6d), U = U_r(D), U' = U_r(D'), |U| = |U'| = r. If i is in U but not
in U', there is a j in U' but not in U, and the order (ties by index: then x in U_r, y not in U_r still implies f(x) >= f(y))
gives f(i) <= f'(i) + d <= f'(j) + d <= f(j) + 2d <= f(r+1) + 2d.

- Such i are chosen on D with total probability at most r exp(a (f(r+1) + 2d)) / exp(a f(1)) = r
  exp(-a (M_r - 2d)) <= delta_3.
- For i in both: p_i/p'_i = exp(a (f(i) - f'(i))) W'/W <= exp(a d) W'/W. Pair the j in U' but not in
  U one to one with the i in U but not in U': f'(j) <= f(j) + d <= f(i) + d. The others: f'(j) <=
  f(j) + d. So W' <= exp(a d) W, and p_i/p'_i <= exp(2 a d) = exp(epsilon/3).

For r = K there is no such i, and the margin is infinite.

*A stop at a bad r has probability at most delta_2.* Let B = {r : M_r < t_r}, a fixed set given D. A
stop at r in B needs X + Z_r - G >= T_r - M_r > T_r - t_r = a1 + a2 + a3(r), so X > a1, or -G > a2,
or Z_r > a3(r). The integers a1, a2 and a3(r) are such that these have probability at most delta/4,
delta/4 and delta/(4 r (r+1)), which sum to at most 3 delta/4 =: delta_2.

*Together*, with delta_3 = delta/4, for any set S of outcomes, summing over r::

    P(S) <= P(r in B) + sum over r not in B of P(r) (exp(epsilon/3) P'(S | r) + delta_3)
         <= delta_2 + delta_3 + exp(epsilon) P'(S).

Rounding: t_r and the a's are rounded **up** to integers, with a margin above the error of float64,
which only makes stops at bad r rarer. The noise scales are exact and grow as 1/epsilon.

Reasons: those of `inputs` and `amounts`; AMOUNT_ZERO for delta = 0, for which there is no such
mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact
from ptklib.privacy.costs import ApproxCost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.gibbs import draw_indices
from ptklib.privacy.mechanisms.inputs import IntegerData, noise_scale, sensitivity_integer
from ptklib.privacy.mechanisms.selection import Selection, score_list
from ptklib.privacy.noise.sampler import discrete_laplace
from ptklib.privacy.noise.source import BitSource

__all__ = ["LargeMargin"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, init=False)
class LargeMargin:
    """One candidate with a high score; (epsilon, delta)-DP.

    *Unit*: that of the scores, integers. *Neighbours*: add or remove one unit of privacy (record or
    user). *Sensitivity*: each score moves by at most ``sensitivity`` between neighbours, in any
    direction. *Cost*: (epsilon, delta), by the proof in the module's docstring.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int
    top_scale: Fraction
    threshold_scale: Fraction
    query_scale: Fraction
    rate: Fraction
    cost: ApproxCost

    def __init__(self, *, epsilon: Number, delta: Number, sensitivity: int) -> None:
        """Check the parameters and fix the cost; no data yet."""
        level, loss, reach = (
            epsilon_exact(epsilon),
            delta_exact(delta),
            sensitivity_integer(sensitivity),
        )
        if loss == 0:
            raise InvalidInput(
                "AMOUNT_ZERO",
                "delta must be positive, got 0; use ExponentialMechanism for pure epsilon",
            )
        third, sixth = level / 3, level / 6
        keep(
            self,
            epsilon=level,
            delta=loss,
            sensitivity=reach,
            top_scale=noise_scale(reach / third, name="scale of the top score's noise"),
            threshold_scale=noise_scale(reach / sixth, name="scale of the threshold noise"),
            query_scale=noise_scale(2 * reach / sixth, name="scale of the query noise"),
            rate=third / (2 * reach),
            cost=ApproxCost(epsilon=level, delta=loss),
        )

    def thresholds(self, candidates: int) -> Integers:
        """T_r for r = 1 .. candidates - 1. Public: they depend on the parameters only."""
        r = np.arange(1, candidates, dtype=np.float64)
        part = float(self.delta / 4)
        margin = 2 * self.sensitivity + _ceiling(np.log(r / part) / float(self.rate))
        top = _tail_bound(self.top_scale, np.array([part]))
        bar = _tail_bound(self.threshold_scale, np.array([part]))
        return margin + top + bar + _tail_bound(self.query_scale, part / (r * (r + 1)))

    def release(self, scores: IntegerData, *, source: BitSource | None = None) -> Selection:
        """The chosen index; high scores are likely. Every call costs ``cost``."""
        return Selection(self._steps(score_list(scores), source)[2], self.cost)

    def _steps(self, data: Integers, source: BitSource | None) -> tuple[int, int, int]:
        """m, r and the index: what the proof is of. Only the index is released."""
        order = np.argsort(-data, kind="stable")
        top_score, width = self._narrowed(data[order], source)
        top = order[:width]
        return top_score, width, int(top[draw_indices(data[top], self.rate, 1, source=source)[0]])

    def _narrowed(self, ranked: Integers, source: BitSource | None) -> tuple[int, int]:
        """Steps 1 and 2: m, and how many of the ranked candidates go to step 3.

        Private too, and released nowhere.
        """
        top_noise = discrete_laplace(1, self.top_scale, source=source)
        bar_noise = discrete_laplace(1, self.threshold_scale, source=source)
        query_noise = discrete_laplace(ranked.size - 1, self.query_scale, source=source)
        margins = ranked[0] - ranked[1:] + top_noise
        stops = np.flatnonzero(margins + query_noise >= self.thresholds(ranked.size) + bar_noise)
        return int(ranked[0] + top_noise[0]), int(stops[0]) + 1 if stops.size else ranked.size


def _tail_bound(scale: Fraction, chance: NDArray[np.float64]) -> Integers:
    """The least integer a, or slightly more, with P(DLap(scale) > a) = q**(a+1)/(1+q) <= chance; q
    = exp(-1/scale).

    Chances are at most 1/4, so the logarithm is well away from 0.
    """
    size = float(scale)
    return _ceiling(-size * np.log(chance * (1 + math.exp(-1 / size)))) - 1


def _ceiling(values: NDArray[np.float64]) -> Integers:
    """Rounded up, after adding more than a few operations in float64 can have lost."""
    return np.ceil(values + np.abs(values) * 2.0**-40 + 2.0**-20).astype(np.int64)
