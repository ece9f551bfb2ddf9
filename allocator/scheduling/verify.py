"""Does an answer hold? Written for itself: no line is shared with what makes answers.

Works on the JSON forms, in plain integers. `faults` answers with sentences; an empty tuple means
sound. It checks what can be checked without solving anything: every pair or task is one that may be
granted, once, within budgets and limits; the value adds up; the bound and the gap agree with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["faults"]


def faults(problem: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with an answer to a problem, both in the forms of the command."""
    check = _windows if "tasks" in problem else _singles
    return (*check(problem, answer), *_numbers(answer))


def _singles(problem: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[str]:
    blocks = {block["id"]: (i, block) for i, block in enumerate(problem["blocks"])}
    queries = {query["id"]: (j, query) for j, query in enumerate(problem["queries"])}
    spent: Counter[Any] = Counter()
    given: Counter[Any] = Counter()
    seen: set[tuple[Any, Any]] = set()
    value = 0
    for block_id, query_id in answer["assignment"]:
        if block_id not in blocks or query_id not in queries:
            yield f"[{block_id!r}, {query_id!r}] names nobody"
            continue
        if (block_id, query_id) in seen:
            yield f"[{block_id!r}, {query_id!r}] is granted twice"
        seen.add((block_id, query_id))
        (i, block), (j, query) = blocks[block_id], queries[query_id]
        if block.get("arrives", 0) > j:
            yield f"{query_id!r} came before {block_id!r} arrived"
        if problem["significance"][i][j] <= 0:
            yield f"{block_id!r} is not eligible for {query_id!r}"
        spent[block_id] += query["cost"]
        given[query_id] += 1
        value += problem["significance"][i][j]
    for name, amount in spent.items():
        if amount > blocks[name][1]["budget"]:
            yield f"{name!r} spends {amount} of {blocks[name][1]['budget']}"
    for name, times in given.items():
        if times > queries[name][1]["limit"]:
            yield f"{name!r} is given {times} blocks, its limit is {queries[name][1]['limit']}"
    if value != answer["value"]:
        yield f"the value is {value}, not {answer['value']}"


def _windows(problem: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[str]:
    blocks = list(problem["blocks"])
    place = {block["id"]: i for i, block in enumerate(blocks)}
    tasks = {task["id"]: task for task in problem["tasks"]}
    timeout = problem.get("timeout_s")
    loads: list[list[list[int]]] = [[] for _ in blocks]
    value = 0
    for name, times in Counter(answer["assignment"]).items():
        if name not in tasks:
            yield f"{name!r} names nobody"
            continue
        if times > 1:
            yield f"{name!r} is granted {times} times"
        task = tasks[name]
        value += task.get("value", 1)
        first, last = (place.get(task[end], task[end]) for end in ("first", "last"))
        demand = task["demand"]
        for i in range(first, last + 1):
            loads[i].append(list(demand) if isinstance(demand, list) else [demand])
            if timeout is not None and blocks[i].get("arrives_s", 0) > task["time_s"] + timeout:
                yield f"{name!r} was gone before {blocks[i]['id']!r} arrived"
    for i, block in enumerate(blocks):
        capacity = block["capacity"]
        rooms = list(capacity) if isinstance(capacity, list) else [capacity]
        sums = [
            sum(load[k if len(load) > 1 else 0] for load in loads[i]) for k in range(len(rooms))
        ]
        if loads[i] and not any(used <= room for used, room in zip(sums, rooms, strict=True)):
            yield f"{block['id']!r} holds {sums}, more than {rooms} in every order"
    if value != answer["value"]:
        yield f"the value is {value}, not {answer['value']}"


def _numbers(answer: Mapping[str, Any]) -> Iterator[str]:
    value, bound = answer["value"], answer["upper_bound"]
    if bound < value:
        yield f"the bound {bound} is below the value {value}"
    expected = (bound - value) / bound if bound else 0.0
    if abs(answer["gap"] - expected) > 1e-9:
        yield f"the gap is {expected}, not {answer['gap']}"
