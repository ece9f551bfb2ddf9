"""Requests of single blocks: problem (5), as values.

Blocks have budgets and arrive; queries come one after the other, each costs ``cost`` at every block
it is given and takes at most ``limit`` blocks. ``significance[i][j]`` is what block i is worth to
query j; 0 means that it is not eligible. Block i is there from query number ``arrives`` on (the
first query has number 0). Wanted is the largest sum of significance over pairs within the budgets.

The JSON form is closed; amounts are integers from 0 to 2**62 - 1, ids are texts or integers::

    {"blocks": [{"id": "monday", "budget": 100, "arrives": 0}],
     "queries": [{"id": "q1", "cost": 10, "limit": 2}],
     "significance": [[7]]}

``arrives`` may be left out (0). ``outlook`` may say what is promised of the stream beforehand:
``{"queries": 300, "ratios": [0.5, 80]}``, the number of queries and the range of significance per
unit of cost, each null where nothing is promised. Without it the instance is its own promise: its
number of queries, and its range of ratios.

Reasons: SCHEDULE_INVALID, SCHEDULE_TOO_LARGE, SCHEDULE_DUPLICATE_ID.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.problem.outlook import Outlook
from allocator.scheduling.problem.reading import (
    MAX_AMOUNT,
    Identity,
    fields,
    identities,
    invalid,
    listed,
    too_large,
    whole,
)

__all__ = ["MAX_PAIRS", "Singles"]

MAX_PAIRS = 50_000_000

_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Singles:
    """One instance. Arrays are in the order of the lists, and read-only.

    In ``significance`` every pair that can never be granted is 0: the query comes before the block,
    costs more than its budget or takes no block.
    """

    block_ids: tuple[Identity, ...]
    query_ids: tuple[Identity, ...]
    budget: _Ints
    arrives: _Ints
    cost: _Ints
    limit: _Ints
    significance: _Ints
    promised: Outlook | None = field(default=None)

    def __post_init__(self) -> None:
        """Shapes agree; pairs that cannot be are 0."""
        blocks, queries = len(self.block_ids), len(self.query_ids)
        shapes = (self.budget.shape, self.arrives.shape, self.cost.shape, self.limit.shape)
        if shapes != ((blocks,), (blocks,), (queries,), (queries,)):
            raise invalid("blocks and queries must have as many amounts as ids")
        if self.significance.shape != (blocks, queries):
            raise invalid(
                f"significance must have a row per block and a number per query ({blocks} x {queries}), got "
                f"{' x '.join(map(str, self.significance.shape))}"
            )
        clean = self.significance.copy()
        clean[np.arange(queries)[None, :] < self.arrives[:, None]] = 0
        clean[self.cost[None, :] > self.budget[:, None]] = 0
        clean[:, self.limit == 0] = 0
        clean.flags.writeable = False
        object.__setattr__(self, "significance", clean)

    @property
    def outlook(self) -> Outlook:
        """What is promised; where the form promises nothing, the instance promises itself."""
        if self.promised is not None:
            return self.promised
        worth = self.significance[:, self.cost > 0]
        cost = self.cost[self.cost > 0]
        most = float((worth.max(axis=0, initial=0) / cost).max(initial=0.0))
        least = np.where(worth > 0, worth, np.iinfo(np.int64).max).min(
            axis=0, initial=np.iinfo(np.int64).max
        )
        some = least < np.iinfo(np.int64).max
        if not some.any():
            return Outlook(requests=len(self.query_ids))
        return Outlook(
            requests=len(self.query_ids),
            least_ratio=float((least[some] / cost[some]).min()),
            most_ratio=most,
        )

    @classmethod
    def from_json(cls, body: Any) -> Singles:
        """Read the form of the module's docstring."""
        given = fields("the problem", body, ("blocks", "queries", "significance"), ("outlook",))
        blocks = [
            fields(f"blocks[{i}]", block, ("id", "budget"), ("arrives",))
            for i, block in enumerate(listed("blocks", given["blocks"]))
        ]
        queries = [
            fields(f"queries[{j}]", query, ("id", "cost", "limit"))
            for j, query in enumerate(listed("queries", given["queries"]))
        ]
        if len(blocks) * len(queries) > MAX_PAIRS:
            raise too_large("blocks times queries", len(blocks) * len(queries), MAX_PAIRS)
        return cls(
            block_ids=identities("blocks", [block["id"] for block in blocks]),
            query_ids=identities("queries", [query["id"] for query in queries]),
            budget=_amounts("blocks", "budget", blocks),
            arrives=_amounts("blocks", "arrives", [{"arrives": 0, **block} for block in blocks]),
            cost=_amounts("queries", "cost", queries),
            limit=_amounts("queries", "limit", queries),
            significance=_table(given["significance"], len(blocks), len(queries)),
            promised=_outlook(given["outlook"]) if given.get("outlook") is not None else None,
        )

    def as_json(self) -> dict[str, Any]:
        """The JSON form (pairs that cannot be are 0)."""
        body: dict[str, Any] = {
            "blocks": [
                {"id": name, "budget": budget, "arrives": arrives}
                for name, budget, arrives in zip(
                    self.block_ids, self.budget.tolist(), self.arrives.tolist(), strict=True
                )
            ],
            "queries": [
                {"id": name, "cost": cost, "limit": limit}
                for name, cost, limit in zip(
                    self.query_ids, self.cost.tolist(), self.limit.tolist(), strict=True
                )
            ],
            "significance": self.significance.tolist(),
        }
        if self.promised is not None:
            ratios = (self.promised.least_ratio, self.promised.most_ratio)
            body["outlook"] = {
                "queries": self.promised.requests,
                "ratios": None if None in ratios else list(ratios),
            }
        return body


def _amounts(what: str, name: str, rows: list[dict[str, Any]]) -> _Ints:
    return np.array(
        [whole(f"{what}[{k}].{name}", row[name]) for k, row in enumerate(rows)], dtype=np.int64
    )


def _table(body: Any, blocks: int, queries: int) -> _Ints:
    rows = listed("significance", body)
    if len(rows) != blocks:
        raise invalid(f"significance must have a row per block ({blocks}), got {len(rows)} rows")
    table = np.zeros((blocks, queries), dtype=np.int64)
    for i, row in enumerate(rows):
        if len(listed(f"significance[{i}]", row)) != queries:
            raise invalid(
                f"significance[{i}] must have a number per query ({queries}), got {len(row)}"
            )
        if not set(map(type, row)) <= {int} or (
            row and not 0 <= min(row) <= max(row) <= MAX_AMOUNT
        ):
            for j, value in enumerate(row):
                whole(f"significance[{i}][{j}]", value)
        table[i] = row
    return table


def _outlook(body: Any) -> Outlook:
    given = fields("outlook", body, (), ("queries", "ratios"))
    queries, ratios = given.get("queries"), given.get("ratios")
    if queries is not None:
        whole("outlook.queries", queries)
    if ratios is None:
        return Outlook(requests=queries)
    numbers = listed("outlook.ratios", ratios)
    if (
        len(numbers) != 2
        or any(type(number) not in (int, float) or not math.isfinite(number) for number in numbers)
        or not 0 < numbers[0] <= numbers[1]
    ):
        raise invalid(f"outlook.ratios must be two numbers, 0 < least <= most, got {ratios!r:.60}")
    return Outlook(requests=queries, least_ratio=float(numbers[0]), most_ratio=float(numbers[1]))
