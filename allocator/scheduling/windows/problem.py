"""Tasks that need every block of a window, as values.

Blocks arrive at times and have a capacity: an integer, or one per Renyi order. A task comes at
``time_s``, needs ``demand`` (as many numbers as capacities have) of every block from ``first`` to
``last`` and is worth ``value`` (1 where it is left out). It waits for ``timeout_s`` seconds (null
or left out: for ever) and is granted whole or not at all, at any moment from when all its blocks
are there. What a block has granted must fit: within its capacity, or in *some* order within the
capacity of that order. Wanted is the largest sum of values.

The JSON form is closed; amounts are integers from 0 to 2**62 - 1, times are seconds from 0 on::

    {"blocks": [{"id": 0, "capacity": 100, "arrives_s": 0.0}],
     "tasks": [{"id": "t", "time_s": 1.5, "first": 0, "last": 0, "demand": 10}],
     "timeout_s": 117.2}

``first`` and ``last`` (included) name blocks by id; a number that is nobody's id is a place in the
list, from 0. Tasks and blocks may come in any order of time; windows follow the list of blocks.

Reasons: SCHEDULE_INVALID, SCHEDULE_TOO_LARGE, SCHEDULE_DUPLICATE_ID.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.problem.reading import (
    Identity,
    fields,
    identities,
    invalid,
    listed,
    seconds,
    too_large,
    whole,
)

__all__ = ["MAX_CELLS", "Windows"]

# Tasks times the blocks of their windows.
MAX_CELLS = 20_000_000
_ORDERS = 64

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Windows:
    """One instance; arrays are in the order of the lists. ``capacity[i, k]`` and ``demand[j, k]``
    have one column per order.
    """

    block_ids: tuple[Identity, ...]
    task_ids: tuple[Identity, ...]
    capacity: _Ints
    arrives: _Floats
    time: _Floats
    first: _Ints
    last: _Ints
    demand: _Ints
    value: _Ints
    timeout: float

    @property
    def ready(self) -> _Floats:
        """When all blocks of each task are there and the task is."""
        peaks = [
            self.arrives[first : last + 1].max(initial=0.0)
            for first, last in zip(self.first.tolist(), self.last.tolist(), strict=True)
        ]
        return np.maximum(self.time, np.array(peaks, dtype=np.float64).reshape(len(self.time)))

    @property
    def deadline(self) -> _Floats:
        """The last moment at which each task may be granted."""
        return self.time + self.timeout

    @classmethod
    def from_json(cls, body: Any) -> Windows:
        """Read the form of the module's docstring."""
        given = fields("the problem", body, ("blocks", "tasks"), ("timeout_s",))
        blocks = [
            fields(f"blocks[{i}]", block, ("id", "capacity"), ("arrives_s",))
            for i, block in enumerate(listed("blocks", given["blocks"]))
        ]
        tasks = [
            fields(f"tasks[{j}]", task, ("id", "time_s", "first", "last", "demand"), ("value",))
            for j, task in enumerate(listed("tasks", given["tasks"]))
        ]
        ids = identities("blocks", [block["id"] for block in blocks])
        place = {name: i for i, name in enumerate(ids)}
        first = [_place(f"tasks[{j}].first", task["first"], place) for j, task in enumerate(tasks)]
        last = [_place(f"tasks[{j}].last", task["last"], place) for j, task in enumerate(tasks)]
        for j, (begin, end) in enumerate(zip(first, last, strict=True)):
            if begin > end:
                raise invalid(f"tasks[{j}].last must not be before its first")
        cells = sum(last) - sum(first) + len(first)
        if cells > MAX_CELLS:
            raise too_large("tasks times the blocks of their windows", cells, MAX_CELLS)
        shapes = [_orders(f"blocks[{i}].capacity", b["capacity"]) for i, b in enumerate(blocks)]
        needs = [_orders(f"tasks[{j}].demand", task["demand"]) for j, task in enumerate(tasks)]
        orders = max((len(shape) for shape in shapes), default=1)
        for what, rows in (("blocks[{}].capacity", shapes), ("tasks[{}].demand", needs)):
            for k, row in enumerate(rows):
                if len(row) not in (1, orders):
                    raise invalid(
                        f"{what.format(k)} must have {orders} numbers like the others, got {len(row)}"
                    )
        timeout = given.get("timeout_s")
        return cls(
            block_ids=ids,
            task_ids=identities("tasks", [task["id"] for task in tasks]),
            capacity=_table(shapes, orders),
            arrives=np.array(
                [
                    seconds(f"blocks[{i}].arrives_s", b.get("arrives_s", 0))
                    for i, b in enumerate(blocks)
                ]
            ),
            time=np.array(
                [seconds(f"tasks[{j}].time_s", t["time_s"]) for j, t in enumerate(tasks)]
            ),
            first=np.array(first, dtype=np.int64),
            last=np.array(last, dtype=np.int64),
            demand=_table(needs, orders),
            value=np.array(
                [whole(f"tasks[{j}].value", t.get("value", 1)) for j, t in enumerate(tasks)],
                dtype=np.int64,
            ),
            timeout=math.inf if timeout is None else seconds("timeout_s", timeout),
        )


def _place(what: str, name: object, place: dict[Identity, int]) -> int:
    if type(name) in (int, str) and name in place:
        return place[name]
    if type(name) is int and 0 <= name < len(place):
        return name
    raise invalid(f"{what} must be the id of a block or its place in the list, got {name!r:.60}")


def _orders(what: str, value: object) -> list[int]:
    if not isinstance(value, list):
        return [whole(what, value)]
    if not 1 <= len(value) <= _ORDERS:
        raise invalid(f"{what} must have 1 to {_ORDERS} numbers, got {len(value)}")
    return [whole(f"{what}[{k}]", number) for k, number in enumerate(value)]


def _table(rows: list[list[int]], orders: int) -> _Ints:
    table = np.zeros((len(rows), orders), dtype=np.int64)
    for k, row in enumerate(rows):
        table[k] = row if len(row) == orders else row * orders
    return table
