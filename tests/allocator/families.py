"""Families of problems that plans are tried on: made from a seed, no file needed.

========== =========================================================================================
taxi       the profiles of the paper's table: mostly light statistics, a few hungry clusters
heavy      n = a + c / eps, with c over several powers of ten
near-equal all PTKs almost alike
powers     demands and samples are powers of two
partition  one or two options each, demands around half of the capacity: who shares with whom is all that matters
gaps       heavy, with the cheapest levels unreachable for many PTKs
noisy      measured profiles: steps where the smooth curve has none, many levels of equal samples
distinct   every PTK has demands of its own: no two are alike
========== =========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from allocator.problem import Option, Problem, PtkOptions

__all__ = ["CAPACITY", "FAMILIES", "make"]

CAPACITY = 1_000_000
_LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

_Draw = tuple[list[int], list[int]]


def make(family: str, ptks: int, seed: int, *, levels: int = 7) -> Problem:
    """A problem of that family."""
    generator = np.random.default_rng([seed, ptks, sorted(FAMILIES).index(family)])
    made = []
    for k in range(ptks):
        demands, samples = FAMILIES[family](generator, levels)
        options = tuple(
            Option(
                level=f"{d / CAPACITY:g}" if len(set(demands)) == len(demands) else f"{place}",
                demand=d,
                samples=n,
            )
            for place, (d, n) in enumerate(zip(demands, samples, strict=True))
        )
        made.append(PtkOptions(id=f"ptk{k:04d}", options=options))
    return Problem(capacity=CAPACITY, n_max=None, ptks=tuple(made))


def _grid(levels: int) -> list[int]:
    chosen = _LEVELS if levels == len(_LEVELS) else np.geomspace(0.01, 1.0, levels)
    return [round(one * CAPACITY) for one in chosen]


def _curve(base: float, slope: float, demands: list[int]) -> list[int]:
    return [max(1, round(base + slope * CAPACITY / d)) for d in demands]


def _taxi(generator: np.random.Generator, levels: int) -> _Draw:
    demands = _grid(levels)
    slope = generator.choice(
        [2.0, 12.0, 30.0, 170.0, 400.0, 44000.0, 70000.0], p=[0.2, 0.2, 0.2, 0.15, 0.1, 0.1, 0.05]
    )
    return demands, _curve(
        slope * generator.uniform(0, 20), slope * generator.uniform(0.7, 1.4), demands
    )


def _heavy(generator: np.random.Generator, levels: int) -> _Draw:
    demands = _grid(levels)
    slope = float(np.exp(generator.normal(6, 2)))
    return demands, _curve(float(np.exp(generator.normal(7, 1.5))), slope, demands)


def _near_equal(generator: np.random.Generator, levels: int) -> _Draw:
    demands = _grid(levels)
    return demands, _curve(
        5000 * generator.uniform(0.99, 1.01), 1000 * generator.uniform(0.99, 1.01), demands
    )


def _powers(generator: np.random.Generator, levels: int) -> _Draw:
    demands = [CAPACITY >> (levels - 1 - k) for k in range(levels)]
    first = int(generator.integers(8, 18))
    falls = np.cumsum(generator.integers(0, 2, levels))
    return demands, [1 << max(0, first - int(fall)) for fall in falls]


def _partition(generator: np.random.Generator, levels: int) -> _Draw:
    tall = int(generator.integers(CAPACITY // 4, 2 * CAPACITY // 3))
    samples = int(generator.integers(10_000, 12_000))
    if generator.random() < 0.5:
        return [tall], [samples]
    low = int(tall * generator.uniform(0.5, 0.9))
    return [low, tall], [int(samples * generator.uniform(1.05, 1.8)), samples]


def _gaps(generator: np.random.Generator, levels: int) -> _Draw:
    demands, samples = _heavy(generator, levels)
    first = int(generator.integers(0, levels - 1))
    return demands[first:], samples[first:]


def _noisy(generator: np.random.Generator, levels: int) -> _Draw:
    demands, samples = _heavy(generator, levels)
    # A doubling profile knows n up to a power of two, and a later level never needs more.
    doubled = [2 ** int(np.ceil(np.log2(one * generator.uniform(0.6, 1.6) + 1))) for one in samples]
    return demands, np.minimum.accumulate(doubled).tolist()


def _distinct(generator: np.random.Generator, levels: int) -> _Draw:
    demands = sorted(
        {int(one) for one in np.exp(generator.uniform(np.log(5_000), np.log(CAPACITY), levels))}
    )
    return demands, _curve(
        float(np.exp(generator.normal(7, 1))), float(np.exp(generator.normal(6, 1.5))), demands
    )


FAMILIES: dict[str, Callable[[np.random.Generator, int], _Draw]] = {
    "taxi": _taxi,
    "heavy": _heavy,
    "near-equal": _near_equal,
    "powers": _powers,
    "partition": _partition,
    "gaps": _gaps,
    "noisy": _noisy,
    "distinct": _distinct,
}
