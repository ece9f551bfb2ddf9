"""A profile of every kind of PTK on made-up data of realistic size, measured even where there is a
closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from examples.ptks.profile import CASES, Case
from profiler.measuring.bench import MemoryBench
from profiler.measuring.terms import ProfileTerms
from profiler.profiles import MeasuredProfile, measured_profile

__all__ = ["ROWS", "cases"]

ROWS = 400_000
_LEVELS = ("0.1", "0.2", "0.4", "0.7")
_PROBE = 60_000


def cases() -> Iterator[tuple[str, Callable[[int], MeasuredProfile]]]:
    """Kinds that can be imported, and their profiles."""
    for kind, make in sorted(CASES.items()):
        yield kind, lambda rows, make=make: _profile(make(), rows)  # type: ignore[misc]


def _profile(case: Case, rows: int) -> MeasuredProfile:
    rng = np.random.default_rng(0)
    delta = "1e-6" if case.ptk.tags.needs_delta else 0
    # A target that can be reached: a tenth above the loss of a training with hardly any noise.
    probe, unseen = (case.rows(_PROBE, rng).to_batches() for _ in range(2))
    loss = case.ptk.eval(case.ptk.train_dp(probe, epsilon=100, delta=delta), unseen)
    target = min(0.45, max(0.02, math.ceil(loss * 1100) / 1000))
    table = case.rows(rows, rng)
    terms = ProfileTerms.of(target, 1, delta=delta, n_max=16_384)
    bench = MemoryBench(table, rng.random(rows))
    return measured_profile(case.ptk, terms, _LEVELS, bench, rows, count=3)
