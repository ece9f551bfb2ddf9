"""Families of problems at which plans are at their worst: made from a seed, no file needed.

Where the families of `tests.allocator.families` ask for the ordinary, these ask for what an
operator meets in the tail. Demands have no large common divisor, so nothing fits together by
accident.

=========== ========================================================================================
jagged      measured with much noise: some options are far better per area than their neighbours
halves      demands a little above 1/2, 1/3 and 1/4 of the capacity, and fillers a little below
few         one or two options each, at any height, samples over two powers of ten
giant       jagged PTKs, and one that needs about as many records as all others together
equal       the same jagged profile for all
subset-sum  one option each, equal samples: who shares with whom is PARTITION
unreachable jagged, the cheap levels missing for most PTKs
mixed       each PTK from one of the others
grid        measured with noise at the same levels for all, down to very cheap ones: few PTKs that reach far
            decide which options all others may have
doubling    samples are powers of two, the cheap levels missing
cliffs      samples hardly fall with the demand, but for one step
clusters    a few PTKs that need forty times the samples of the others
groups      a few kinds of PTKs, many of each
squares     demands are squares of levels, as under Renyi accounting
over        options just over one k-th of the capacity, for several k
=========== ========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from allocator.problem import Option, Problem, PtkOptions

__all__ = ["CAPACITY", "HARD", "make_hard"]

CAPACITY = 1_000_000_000
_LEVELS = 8

_Rows = list[tuple[int, int]]
_Generator = np.random.Generator


def make_hard(family: str, ptks: int, seed: int) -> Problem:
    """A problem of that family."""
    generator = np.random.default_rng([seed, ptks, len(family), *family.encode()])
    rows = HARD[family](generator, ptks)
    return Problem(
        capacity=CAPACITY,
        n_max=None,
        ptks=tuple(
            PtkOptions(
                id=f"ptk{k:04d}",
                options=tuple(
                    Option(level=str(j), demand=d, samples=n) for j, (d, n) in enumerate(row)
                ),
            )
            for k, row in enumerate(rows)
        ),
    )


def _whole(share: float) -> int:
    return max(1, min(CAPACITY, round(share * CAPACITY)))


def _profile(generator: _Generator, *, first: int = 0, scale: float | None = None) -> _Rows:
    """n = a + c / eps, times noise, at levels of its own; a level that needs more than a cheaper
    one is never asked for.
    """
    shares = np.sort(np.exp(generator.uniform(np.log(0.01), 0.0, _LEVELS)))[first:]
    slope = float(np.exp(generator.normal(6, 1.2))) if scale is None else scale
    base = slope * float(generator.uniform(0, 4))
    noise = np.exp(generator.normal(0, 0.6, len(shares)))
    samples = np.minimum.accumulate(np.maximum(1, np.round((base + slope / shares) * noise)))
    return [(_whole(float(d)), int(n)) for d, n in zip(shares, samples, strict=True)]


def _jagged(generator: _Generator, ptks: int) -> list[_Rows]:
    return [_profile(generator) for _ in range(ptks)]


def _one_of_halves(generator: _Generator) -> _Rows:
    tiny = float(generator.uniform(1e-6, 2e-2))
    part = int(generator.choice([2, 3, 4, 7]))
    samples = int(np.exp(generator.normal(8.5, 0.7)))
    rows = [(_whole(1 / part + tiny), samples)]
    if generator.random() < 0.6:
        other = part + int(generator.integers(1, 3))
        rows.insert(0, (_whole(1 / other + tiny), int(samples * generator.uniform(1.1, 1.9))))
    if generator.random() < 0.3:
        rows.insert(0, (_whole(1 / 20 - tiny / 2), int(samples * generator.uniform(4, 12))))
    return rows


def _halves(generator: _Generator, ptks: int) -> list[_Rows]:
    return [_one_of_halves(generator) for _ in range(ptks)]


def _one_of_few(generator: _Generator) -> _Rows:
    low = float(generator.uniform(0.03, 0.6))
    samples = int(np.exp(generator.uniform(np.log(300), np.log(30_000))))
    rows = [(_whole(low), samples)]
    if generator.random() < 0.5:
        rows.append(
            (_whole(low * generator.uniform(1.2, 1.6)), int(samples / generator.uniform(1.1, 2)))
        )
    return rows


def _few(generator: _Generator, ptks: int) -> list[_Rows]:
    return [_one_of_few(generator) for _ in range(ptks)]


def _giant(generator: _Generator, ptks: int) -> list[_Rows]:
    rows = _jagged(generator, ptks - 1)
    area = sum(min(d * n for d, n in row) for row in rows) / CAPACITY
    share = float(generator.uniform(0.15, 0.6))
    long = [share, share * 1.3, share * 1.6]
    factors = (1.1, 0.9, 0.75)
    giant = [
        (_whole(one), max(1, round(area * float(generator.uniform(0.8, 1.3)) * factor)))
        for one, factor in zip(long, factors, strict=True)
    ]
    return [giant, *rows]


def _equal(generator: _Generator, ptks: int) -> list[_Rows]:
    return [_profile(generator, scale=1000.0)] * ptks


def _subset_sum(generator: _Generator, ptks: int) -> list[_Rows]:
    samples = int(generator.integers(5_000, 50_000))
    return [[(_whole(float(generator.uniform(0.18, 0.42))), samples)] for _ in range(ptks)]


def _unreachable(generator: _Generator, ptks: int) -> list[_Rows]:
    return [_profile(generator, first=int(generator.integers(2, _LEVELS))) for _ in range(ptks)]


def _mixed(generator: _Generator, ptks: int) -> list[_Rows]:
    makers: tuple[Callable[[], _Rows], ...] = (
        lambda: _profile(generator),
        lambda: _one_of_halves(generator),
        lambda: _one_of_few(generator),
        lambda: _profile(generator, first=int(generator.integers(2, _LEVELS))),
    )
    return [makers[int(generator.integers(len(makers)))]() for _ in range(ptks)]


def _measured(generator: _Generator, shares: NDArray[np.float64], slope: float) -> _Rows:
    """n = a + c / eps with little noise."""
    base = slope * float(generator.uniform(0, 4))
    noise = np.exp(generator.normal(0, 0.4, len(shares)))
    samples = np.minimum.accumulate(np.maximum(1, np.round((base + slope / shares) * noise)))
    return [(_whole(float(d)), int(n)) for d, n in zip(shares, samples, strict=True)]


def _slope(generator: _Generator) -> float:
    return float(np.exp(generator.normal(6, 1.2)))


def _grid(generator: _Generator, ptks: int) -> list[_Rows]:
    shares = np.geomspace(
        float(generator.choice([0.005, 0.02])), 1.0, int(generator.integers(5, 12))
    )
    return [_measured(generator, shares, _slope(generator)) for _ in range(ptks)]


def _doubling(generator: _Generator, ptks: int) -> list[_Rows]:
    shares = np.array([0.05, 0.1, 0.2, 0.5, 1.0])[int(generator.integers(0, 3)) :]
    rows = [_measured(generator, shares, _slope(generator)) for _ in range(ptks)]
    return [[(d, 1 << int(n).bit_length()) for d, n in row] for row in rows]


def _one_cliff(generator: _Generator) -> _Rows:
    shares = np.sort(np.exp(generator.uniform(np.log(0.02), 0.0, _LEVELS)))
    level, cliff = float(np.exp(generator.normal(8, 0.7))), int(generator.integers(0, _LEVELS))
    high = np.where(np.arange(_LEVELS) < cliff, generator.uniform(3, 10, _LEVELS), 1.0)
    samples = level * (1 + generator.uniform(0, 0.1, _LEVELS)) * high
    samples = np.minimum.accumulate(np.round(samples))
    return [(_whole(float(d)), int(n)) for d, n in zip(shares, samples, strict=True)]


def _cliffs(generator: _Generator, ptks: int) -> list[_Rows]:
    return [_one_cliff(generator) for _ in range(ptks)]


def _clusters(generator: _Generator, ptks: int) -> list[_Rows]:
    rows = []
    for _ in range(ptks):
        scale = 20_000.0 if generator.random() < 0.2 else 500.0
        shares = np.sort(np.exp(generator.uniform(np.log(0.01), 0.0, _LEVELS - 1)))
        rows.append(_measured(generator, shares, scale * float(generator.uniform(0.8, 1.25))))
    return rows


def _groups(generator: _Generator, ptks: int) -> list[_Rows]:
    kinds = [_profile(generator) for _ in range(int(generator.integers(2, 7)))]
    return [kinds[int(generator.integers(len(kinds)))] for _ in range(ptks)]


def _squares(generator: _Generator, ptks: int) -> list[_Rows]:
    levels = np.geomspace(0.05, 1.0, int(generator.integers(5, 11)))
    rows = [_measured(generator, levels, _slope(generator)) for _ in range(ptks)]
    return [
        [(_whole(float(level) ** 2), n) for level, (_, n) in zip(levels, row, strict=True)]
        for row in rows
    ]


def _one_over(generator: _Generator) -> _Rows:
    count = int(generator.integers(1, 5))
    parts = np.sort(generator.choice(np.arange(2, 10), size=count, replace=False))[::-1]
    samples = float(np.exp(generator.normal(8.5, 0.5)))
    return [
        (
            _whole(1 / int(part) + float(generator.choice([1e-7, 1e-4, 5e-3]))),
            max(1, int(samples * int(part) / int(parts[-1]) * generator.uniform(0.7, 1.2))),
        )
        for part in parts
    ]


def _over(generator: _Generator, ptks: int) -> list[_Rows]:
    return [_one_over(generator) for _ in range(ptks)]


HARD: dict[str, Callable[[_Generator, int], list[_Rows]]] = {
    "jagged": _jagged,
    "halves": _halves,
    "few": _few,
    "giant": _giant,
    "equal": _equal,
    "subset-sum": _subset_sum,
    "unreachable": _unreachable,
    "mixed": _mixed,
    "grid": _grid,
    "doubling": _doubling,
    "cliffs": _cliffs,
    "clusters": _clusters,
    "groups": _groups,
    "squares": _squares,
    "over": _over,
}
