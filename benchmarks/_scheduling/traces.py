"""Traces of tasks over windows of blocks, in the JSON form of the command, from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["curves", "mice_and_elephants"]


def mice_and_elephants(
    seed: int,
    *,
    timeout: float | None = 117.2,
    length: float = 300.0,
    every: float = 10.0,
    gap: float = 0.078125,
    mice: float = 0.75,
    wide: int = 10,
) -> dict[str, Any]:
    """PrivateKube's multi-block workload: a block every ten seconds, tasks at random times that
    want a hundredth or a tenth of the last block or of the last ten.
    """
    rng = np.random.default_rng([seed, 11])
    blocks = [
        {"id": i, "capacity": 100, "arrives_s": i * every} for i in range(int(length / every))
    ]
    time = 0.0
    tasks: list[dict[str, Any]] = []
    while True:
        time += float(rng.exponential(gap))
        if time >= length:
            break
        last = min(int(time / every), len(blocks) - 1)
        span = 1 if rng.random() < mice else wide
        tasks.append(
            {
                "id": f"t{len(tasks)}",
                "time_s": round(time, 6),
                "first": max(0, last - span + 1),
                "last": last,
                "demand": 1 if rng.random() < mice else 10,
            }
        )
    return {"blocks": blocks, "tasks": tasks, "timeout_s": timeout}


def curves(
    seed: int, *, blocks: int = 90, tasks: int = 20_000, timeout: float | None = 20.0
) -> dict[str, Any]:
    """A workload like Alibaba's: Renyi curves of twelve orders from several mechanisms, sizes over
    orders of magnitude, windows of the last one to many blocks; a block a day.
    """
    rng = np.random.default_rng([seed, 12])
    orders = np.array([1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 16, 32, 64])
    capacity = np.maximum(0, 10 - np.log(1e7) / (orders - 1))
    unit = 1_000_000
    cap = [int(c * unit) for c in capacity]
    out = []
    times = np.sort(rng.uniform(0, blocks, tasks))
    for j, time in enumerate(times):
        size = float(np.exp(rng.normal(-2.8, 1.3)))
        kind = rng.random()
        if kind < 0.5:
            curve = size**2 * orders / 2
        elif kind < 0.8:
            b = 1 / min(size * 1.5, 5.0)
            curve = np.log(
                orders / (2 * orders - 1) * np.exp((orders - 1) / b)
                + (orders - 1) / (2 * orders - 1) * np.exp(-orders / b)
            ) / (orders - 1)
        else:
            curve = size**2 * orders / 2 * (1 + 0.3 * np.maximum(0, np.log(orders)) ** 2)
        last = int(time)
        span = int(min(last + 1, max(1, rng.lognormal(1.0, 1.0))))
        out.append(
            {
                "id": j,
                "time_s": float(time),
                "first": last - span + 1,
                "last": last,
                "demand": [max(1, int(np.ceil(d * unit))) for d in curve],
            }
        )
    return {
        "blocks": [{"id": i, "capacity": cap, "arrives_s": float(i)} for i in range(blocks)],
        "tasks": out,
        "timeout_s": timeout,
    }
