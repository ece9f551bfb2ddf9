"""DP models beside what others make of the same records at the same price.

Parts, each a module of `benchmarks._models` with its own account of what it does: `accounting`
(what a training costs), `speed` (the engine beside itself without privacy), `rides` (linear
regression), `people` (logistic regression), `digits` (MNIST by public features), `decays` (noise
that falls) and `patients` (the cancer data).

Without ``--data``, tabular parts use invented records of the same form, and those that need MNIST
or the cancer data are left out and say so. ``--sample`` takes fewer seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import threadpoolctl  # type: ignore[import-untyped,unused-ignore]

from benchmarks._models import accounting, decays, digits, patients, people, rides, speed
from benchmarks.bars import Report, Say


def run(say: Say, data: Path | None = None, *, sample: bool = False) -> Report:
    """All parts."""
    whole = Report()
    parts: tuple[Callable[[], Report], ...] = (
        lambda: accounting.report(say),
        lambda: speed.report(say, sample),
        lambda: rides.report(say, data, sample),
        lambda: people.report(say, data, sample),
        lambda: digits.report(say, data, sample),
        lambda: patients.report(say, data, sample),
        lambda: decays.report(say, data, sample),
    )
    # Narrow products on several threads wait more than they work, and CPU time counts waiting.
    with threadpoolctl.threadpool_limits(1):
        for part in parts:
            made = part()
            whole.bars += made.bars
            whole.figures |= made.figures
    return whole
