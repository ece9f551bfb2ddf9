"""DP models beside what others make of the same records at the same price.

Parts, each a module of `benchmarks._models` with its own account of what it does: `accounting` (what
a training costs), `speed` (the engine beside itself without privacy), `rides` (linear regression),
`people` (logistic regression), `digits` (MNIST by public features), `decays` (noise that falls) and
`patients` (the cancer data).

Without ``--data``, tabular parts use invented records of the same form, and those that need MNIST or
the cancer data are left out and say so. ``--sample`` takes fewer seeds.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks._models import accounting, decays, digits, patients, people, rides, speed
from benchmarks.bars import Report, Say


def run(say: Say, data: Path | None = None, *, sample: bool = False) -> Report:
    """All parts."""
    whole = Report()
    for part in (
        accounting.report(say),
        speed.report(say, sample),
        rides.report(say, data, sample),
        people.report(say, data, sample),
        digits.report(say, data, sample),
        patients.report(say, data, sample),
        decays.report(say, data, sample),
    ):
        whole.bars += part.bars
        whole.figures |= part.figures
    return whole
