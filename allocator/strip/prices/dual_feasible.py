"""Lower bounds on plans that see how tall PTKs are: dual feasible functions, in every coordinate at
once, from arrays.

A function f from heights in [0, 1] to [0, 1] is *dual feasible* when heights that fit on a record
(sum x <= 1) have sum f(x) <= 1. Records are worth one each and a PTK at option j takes n_ij f(d_ij
/ D) of them, so no plan with the allowed options holds fewer than sum_i min_j n_ij f(d_ij / D)
records. The identity gives the area bound. Two families (Fekete and Schepers 1998) see what areas
do not:

==========  ========================================================================================
rounded     f(x) = x where (k + 1) x is whole, else floor((k + 1) x) / k: k + 1 PTKs a little above 1 / (k + 1) do not share a
            record
filled      f(x) = 0 below e, 1 above 1 - e, x between: above 1 - e nothing that counts fits beside a PTK
==========  ========================================================================================

Heights are compared as whole numbers, so no rounding lifts a value; sums of floats are lowered by
more than their error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Least", "heights", "least_within"]

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

_STEPS = 10
_EDGES = 24
_SAFE = 1e-9
_WIDE = 1 << 62
_NEVER = float("inf")


@dataclass(frozen=True)
class Least:
    """No plan holds fewer than ``bound`` records; ``choice`` are the options that need least by the
    function that says so.
    """

    bound: float
    choice: _Ints


def least_within(samples: _Ints, demands: _Ints, capacity: int, most: int) -> Least | None:
    """For plans whose PTKs train on at most ``most`` samples each; None when a PTK has no such
    option within the capacity.

    ``samples`` and ``demands`` by PTK and option.
    """
    allowed = (samples <= most) & (demands <= capacity)
    if not allowed.any(axis=1).all():
        return None
    if not len(samples) or capacity <= 0:
        return Least(0.0, np.where(allowed, demands, np.iinfo(np.int64).max).argmin(axis=1))
    needs = np.where(allowed, samples, 0).astype(np.float64)
    # By function, PTK and option.
    worth = np.where(allowed, needs * np.array(heights(demands, capacity, allowed)), _NEVER)
    bounds = worth.min(axis=2).sum(axis=1)
    best = int(bounds.argmax())
    return Least(float(bounds[best]) * (1 - _SAFE), worth[best].argmin(axis=1))


def heights(
    demands: _Ints, capacity: int, allowed: NDArray[np.bool_], *, steps: int = _STEPS
) -> list[_Floats]:
    """The identity and both families at all of these demands: ``rounded`` up to so many ``steps``,
    ``filled`` at edges that tell allowed demands apart.
    """
    plain = demands / capacity
    values = [plain]
    if int(demands.max()) >= _WIDE // (steps + 1) or capacity >= _WIDE // (steps + 1):
        return values
    for k in range(1, steps + 1):
        whole, rest = np.divmod((k + 1) * demands, capacity)
        values.append(np.where(rest == 0, plain, whole / k))
    values += [
        np.where(demands < edge, 0.0, np.where(demands > capacity - edge, 1.0, plain))
        for edge in _edges(demands[allowed], capacity)
    ]
    return values


def _edges(demands: _Ints, capacity: int) -> list[int]:
    """Heights up to one half at which `filled` is worth a look: those that there are, thinned
    out.
    """
    low = np.unique(
        np.concatenate(
            [demands[2 * demands <= capacity], capacity - demands[2 * demands > capacity] + 1]
        )
    )
    low = low[(low > 0) & (2 * low <= capacity)]
    if len(low) > _EDGES:
        low = low[np.linspace(0, len(low) - 1, _EDGES).astype(np.int64)]
    return [int(edge) for edge in low]
