"""How long training a PTK takes, against the exact method without privacy: one bar for each kind.

A module ``benchmarks/ptk_speed/<kind>.py`` has ``WHAT`` (the two things compared), ``LIMIT`` and
``rounds(say)``, which gives pairs of seconds, ours and the baseline's, taken one after the other in
one process. The bar is on the median of their ratios. A kind that is required and has no module, or
whose module fails or gives too few rounds, is a broken bar, never left out.
"""

from __future__ import annotations

import importlib
import pkgutil
import statistics
from typing import Any

from benchmarks import ptk_speed
from benchmarks.bars import Bar, Report, Say, at_most, broken

# The most that the median ratio may be. A module may ask more of itself, not less.
REQUIRED = {
    "clusters": 2.0,
    "counts": 1.5,
    "covariance": 1.5,
    "embeddings": 1.3,
    "forest": 2.0,
    "quantiles": 1.5,
    "statistics": 1.5,
}
LEAST_ROUNDS = 5


def kinds() -> list[str]:
    """The required kinds, and any other that has a module."""
    found = {
        module.name
        for module in pkgutil.iter_modules(ptk_speed.__path__)
        if not module.name.startswith("_")
    }
    return sorted(found | set(REQUIRED))


def run(say: Say) -> Report:
    report = Report()
    rows: list[dict[str, Any]] = []
    for kind in kinds():
        say(kind)
        bar, row = _measure(kind, say)
        report.bars.append(bar)
        rows += row
    report.figures["median seconds"] = rows
    return report


def _measure(kind: str, say: Say) -> tuple[Bar, list[dict[str, Any]]]:
    limit = REQUIRED.get(kind)
    try:
        module = importlib.import_module(f"benchmarks.ptk_speed.{kind}")
        limit = min(float(module.LIMIT), limit or float(module.LIMIT))
        pairs = [(float(ours), float(theirs)) for ours, theirs in module.rounds(say)]
    except Exception as error:  # One kind that fails must not hide the others.
        return broken(f"{kind}: {type(error).__name__}: {error}", limit or 0.0), []
    if len(pairs) < LEAST_ROUNDS:
        return broken(f"{kind}: {len(pairs)} rounds, {LEAST_ROUNDS} are needed", limit), []
    ratios = [ours / theirs for ours, theirs in pairs]
    row = {
        "kind": kind,
        "ours_s": round(statistics.median(ours for ours, _ in pairs), 4),
        "baseline_s": round(statistics.median(theirs for _, theirs in pairs), 4),
        "ratio": round(statistics.median(ratios), 3),
        "least": round(min(ratios), 3),
        "most": round(max(ratios), 3),
        "rounds": len(pairs),
    }
    return at_most(f"{kind}: {module.WHAT} (median ratio)", statistics.median(ratios), limit), [row]
