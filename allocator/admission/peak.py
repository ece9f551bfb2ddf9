"""What partitions demand together, as the filter counts, and whether it admits all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allocator.admission.coordinates import nothing
from allocator.admission.reach import exact_sum
from allocator.plan import Plan
from ptklib.privacy.filters import Demand, Filter

__all__ = ["members_of", "peak_of"]


def peak_of(
    privacy_filter: Filter,
    loss: Sequence[int],
    demands: NDArray[np.int64],
    members: NDArray[np.bool_],
) -> Demand | None:
    """The largest demand of any partition, per component; None when the filter does not admit one
    of them.

    ``demands`` by PTK, as vectors of the filter; ``members`` by partition and PTK.
    """
    if not len(members):
        return nothing(privacy_filter)
    ceiling = np.array(privacy_filter.ceiling, dtype=np.int64)
    # Saturated like any demand: the ceiling is above the capacity, and int64 holds it.
    sums = [
        [min(a, b) for a, b in zip(exact_sum(demands[row]), ceiling.tolist(), strict=True)]
        for row in members
    ]
    loss_row = np.array([loss], dtype=np.int64)
    for total in sums:
        if not bool(privacy_filter.admits(loss_row, np.array(total, dtype=np.int64))[0]):
            return None
    return tuple(max(column) for column in zip(*sums, strict=True))


def members_of(plan: Plan) -> NDArray[np.bool_]:
    """Who trains where: by partition and assignment."""
    place = {assignment.id: k for k, assignment in enumerate(plan.assignments)}
    members = np.zeros((len(plan.partitions), len(place)), dtype=bool)
    for row, partition in zip(members, plan.partitions, strict=True):
        row[[place[name] for name in partition.members]] = True
    return members
