"""Windows of blocks: sound answers, bounds, and a default that needs no tuning."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest

from allocator.scheduling.solve import read, solve
from allocator.scheduling.verify import faults
from allocator.scheduling.windows.names import DEFAULT, POLICIES
from benchmarks._scheduling.traces import curves, mice_and_elephants


def clock() -> float:
    return 0.0


def body(seed: int, orders: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, orders])
    m, n = int(rng.integers(1, 5)), int(rng.integers(0, 9))

    def amount(most: int) -> Any:
        if orders == 1:
            return int(rng.integers(0, most))
        return rng.integers(0, most, orders).tolist()

    tasks = []
    for j in range(n):
        first = int(rng.integers(0, m))
        tasks.append(
            {
                "id": f"t{j}",
                "time_s": float(rng.uniform(0, 10)),
                "first": f"b{first}",
                "last": f"b{int(rng.integers(first, m))}",
                "demand": amount(8),
                "value": int(rng.integers(0, 4)),
            }
        )
    return {
        "blocks": [
            {"id": f"b{i}", "capacity": amount(20), "arrives_s": float(rng.uniform(0, 8))}
            for i in range(m)
        ],
        "tasks": tasks,
        "timeout_s": [None, 0, 3.5][int(rng.integers(0, 3))],
    }


def rows(amount: Any) -> list[int]:
    return amount if isinstance(amount, list) else [amount]


def best_of_all(form: dict[str, Any]) -> int:
    place = {block["id"]: i for i, block in enumerate(form["blocks"])}
    timeout = math.inf if form["timeout_s"] is None else form["timeout_s"]
    able = []
    for task in form["tasks"]:
        window = range(place[task["first"]], place[task["last"]] + 1)
        if all(form["blocks"][i]["arrives_s"] <= task["time_s"] + timeout for i in window):
            able.append((window, rows(task["demand"]), task["value"]))
    best = 0
    for many in range(len(able) + 1):
        for chosen in itertools.combinations(able, many):
            fits = True
            for i, block in enumerate(form["blocks"]):
                loads = [demand for window, demand, _ in chosen if i in window]
                sums = [sum(load[k] for load in loads) for k in range(len(rows(block["capacity"])))]
                if loads and not any(
                    a <= b for a, b in zip(sums, rows(block["capacity"]), strict=True)
                ):
                    fits = False
            if fits:
                best = max(best, sum(worth for _, _, worth in chosen))
    return best


@pytest.mark.parametrize("orders", [1, 3])
@pytest.mark.parametrize("name", [*sorted(POLICIES), "optimal"])
def test_answers_are_sound_on_instances_of_all_sorts(name: str, orders: int) -> None:
    for seed in range(40):
        form = body(seed, orders)
        answer = solve(read(form), policy=name, clock=clock).as_json()
        assert faults(form, answer) == ()
        best = best_of_all(form)
        assert answer["value"] <= best <= answer["upper_bound"]
        if name == "optimal" and orders == 1:
            assert answer["value"] == best


def test_the_default_needs_no_tuning() -> None:
    problem = read(mice_and_elephants(5, length=100.0))
    best = solve(problem, policy="optimal", clock=clock).value
    answer = solve(problem, clock=clock)
    assert answer.policy == DEFAULT
    assert answer.value >= 0.99 * best
    assert solve(problem, policy="fcfs", clock=clock).value < 0.75 * best


def test_curves_of_many_orders() -> None:
    form = curves(2, blocks=8, tasks=250, timeout=3.0)
    problem = read(form)
    best = solve(problem, policy="optimal", clock=time.monotonic, time_limit_seconds=5)
    answer = solve(problem, clock=clock)
    assert faults(form, answer.as_json()) == ()
    assert answer.value >= 0.95 * best.upper_bound


def test_the_verifier_notices_what_is_wrong() -> None:
    form = mice_and_elephants(5, length=20.0)
    answer = solve(read(form), clock=clock).as_json()
    assert faults(form, answer) == ()
    assert faults(form, {**answer, "value": answer["value"] + 1})
    assert faults(form, {**answer, "upper_bound": answer["value"] - 1})
    assert faults(form, {**answer, "assignment": [*answer["assignment"], "nobody"]})
    assert faults(form, {**answer, "assignment": [task["id"] for task in form["tasks"]]})
    twice = [*answer["assignment"], answer["assignment"][0]]
    assert faults(form, {**answer, "assignment": twice})
