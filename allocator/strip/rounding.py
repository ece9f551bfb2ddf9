"""Whole records for a fractional plan with one option per PTK.

The whole parts of the widths stay, but for a few records of each; what is then missing is a small
problem in small numbers over the configurations that are known, which HiGHS settles, as a rule to
the rounded-up length of the fractional plan. Where it does not, what is missing is packed at the
end. Checked in integers: the solver's answer is only a suggestion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.strip.configurations import Configurations, StripRelaxation
from allocator.strip.packing import Packed, pack
from allocator.table import Ints, OptionTable

__all__ = ["in_records"]

# Records of each configuration that are given back.
_BACK = 4
_NODES = 300
# For more PTKs the last few records are not worth the work.
_FEW = 130
_STEPS = 4e7


def in_records(
    table: OptionTable,
    choice: Ints,
    configurations: Configurations,
    relaxed: StripRelaxation,
    effort: Effort,
    *,
    settle: bool = True,
) -> Packed | None:
    """A plan with these options, close to the relaxed one in length; the last records of it are
    looked for where it should ``settle`` them.
    """
    rows = np.arange(len(table))
    samples, demands = table.samples[rows, choice], table.demands[rows, choice]
    widths = np.floor(relaxed.widths + 1e-6).astype(np.int64)
    members = relaxed.columns >= 0
    packed = _packed_at_the_end(widths, members, samples, demands, table.capacity)
    goal = int(np.ceil(relaxed.bound - 1e-6))
    if not settle or len(table) > _FEW or packed.total <= goal:
        return packed
    widths = np.maximum(widths - _BACK, 0)
    missing = np.maximum(samples - widths @ members, 0)
    served = configurations.serving(choice)
    served = np.unique(np.concatenate([served, members]), axis=0)
    counts = _settled(served, missing, goal - int(widths.sum()), effort)
    if counts is None:
        return packed
    widths, members = np.concatenate([widths, counts]), np.concatenate([members, served])
    if (widths @ members < samples).any() or int(widths.sum()) >= packed.total:
        return packed
    kept = widths > 0
    return Packed(widths[kept], members[kept])


def _settled(served: NDArray[np.bool_], missing: Ints, least: int, effort: Effort) -> Ints | None:
    """How many records of each configuration cover what is missing, as few as are found."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    effort.spend(_STEPS)
    active = missing > 0
    matrix = csr_array(served[:, active].T.astype(np.float64))
    goal = np.ones(len(served))
    answer = milp(
        goal,
        constraints=[
            LinearConstraint(matrix, missing[active], np.inf),
            LinearConstraint(csr_array(goal[None, :]), least, np.inf),
        ],
        integrality=goal,
        bounds=Bounds(0, float(missing.max(initial=0))),
        options={"node_limit": _NODES, "mip_rel_gap": 0.0, **effort.time_limit},
    )
    return None if answer.x is None else np.rint(answer.x).astype(np.int64)


def _packed_at_the_end(
    widths: Ints, members: NDArray[np.bool_], samples: Ints, demands: Ints, capacity: int
) -> Packed:
    left = np.maximum(samples - widths @ members, 0)
    if left.any():
        waiting = left > 0
        length = max(int(left.max()), int(sum(map(int, left * 1.0 * demands / max(1, capacity)))))
        rest = None
        while rest is None:
            rest = pack(length, left[waiting], demands[waiting], capacity)
            length += max(1, length // 8)
        wide = np.zeros((len(rest.widths), len(samples)), dtype=bool)
        wide[:, waiting] = rest.members
        widths, members = np.concatenate([widths, rest.widths]), np.concatenate([members, wide])
    kept = widths > 0
    return Packed(widths[kept], members[kept])
