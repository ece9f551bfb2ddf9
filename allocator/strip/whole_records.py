"""Strip plans of a handful of PTKs, to the last record: an integer program over all configurations.

With w_c whole records in configuration c (a set of PTKs, each at one option, that a record can
carry and to which nobody can be added) and x_ij = 1 when PTK i takes option j: sum_{c has (i, j)}
w_c >= n_ij x_ij and sum_j x_ij = 1; sum_c w_c is least. Only where there are few configurations and
small numbers, so that HiGHS settles it at once and its tolerances cannot matter.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from allocator.effort import Effort
from allocator.strip.branching import PackedOptions
from allocator.strip.packing import Packed
from allocator.table import Ints, OptionTable

__all__ = ["is_small", "settled"]

_CONFIGURATIONS = 3000
_RECORDS = 10_000_000
_NODES = 2000


def is_small(table: OptionTable, total: int) -> bool:
    """True when all configurations can be listed."""
    return prod(len(row) + 1 for row in table.rows) <= _CONFIGURATIONS and total <= _RECORDS


def settled(
    table: OptionTable, best: PackedOptions, bound: int, effort: Effort, *, below: int | None = None
) -> tuple[PackedOptions, int]:
    """The shortest plan and its length as bound; what was given where the solver does not finish.

    With ``below`` only plans of fewer records are looked for; where there is none, the bound says
    so.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_array

    total = best.packed.total if below is None else min(below, best.packed.total)
    allowed = table.samples <= total - 1
    rows = [[j for j in range(len(row)) if allowed[i, j]] for i, row in enumerate(table.rows)]
    if not all(rows):
        return best, total
    columns = _columns(table, rows)
    effort.spend(5e6 + 1e5 * len(columns))
    places = {pair: k for k, pair in enumerate((i, j) for i, row in enumerate(rows) for j in row)}
    served = lil_array((len(places), len(columns) + len(places)))
    for c, column in enumerate(columns):
        for i, j in enumerate(column):
            if j >= 0:
                served[places[i, int(j)], c] = 1
    once = lil_array((len(rows), len(columns) + len(places)))
    for (i, j), k in places.items():
        served[k, len(columns) + k] = -float(table.samples[i, j])
        once[i, len(columns) + k] = 1
    goal = np.concatenate([np.ones(len(columns)), np.zeros(len(places))])
    answer = milp(
        goal,
        constraints=[
            LinearConstraint(served.tocsr(), 0, np.inf),
            LinearConstraint(once.tocsr(), 1, 1),
            LinearConstraint(lil_array(goal[None, :]).tocsr(), bound, total - 1),
        ],
        integrality=np.ones(len(goal)),
        bounds=Bounds(0, np.concatenate([np.full(len(columns), total), np.ones(len(places))])),
        options={"node_limit": _NODES, "mip_rel_gap": 0.0, **effort.time_limit},
    )
    if answer.status == 2:
        return best, total
    if answer.x is None:
        return best, bound
    packed_options = _found(table, rows, columns, np.rint(answer.x).astype(np.int64), places)
    if packed_options is None:
        return best, bound
    return packed_options, packed_options.packed.total if answer.status == 0 else bound


def _columns(table: OptionTable, rows: list[list[int]]) -> list[tuple[int, ...]]:
    """Configurations to which nobody can be added."""
    fits = []
    for column in product(*([-1, *row] for row in rows)):
        load = sum(table.rows[i][j].demand for i, j in enumerate(column) if j >= 0)
        room = table.capacity - load
        if room >= 0 and not any(
            j < 0 and any(table.rows[i][k].demand <= room for k in rows[i])
            for i, j in enumerate(column)
        ):
            fits.append(column)
    return fits


def _found(
    table: OptionTable,
    rows: list[list[int]],
    columns: list[tuple[int, ...]],
    values: Ints,
    places: dict[tuple[int, int], int],
) -> PackedOptions | None:
    """The plan, if it is one in integers."""
    widths, options = values[: len(columns)], values[len(columns) :]
    choice = np.array(
        [next((j for j in row if options[places[i, j]] == 1), -1) for i, row in enumerate(rows)]
    )
    used = np.flatnonzero(widths > 0)
    if (choice < 0).any() or not len(used):
        return None
    members = np.array(
        [[columns[c][i] == choice[i] for i in range(len(rows))] for c in used], dtype=bool
    )
    if (widths[used] @ members < table.samples[np.arange(len(rows)), choice]).any():
        return None
    filled = members.any(axis=1)
    return PackedOptions(choice, Packed(widths[used][filled], members[filled]))
