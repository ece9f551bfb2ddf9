"""Reuse of profiles. What was released once may be read again for ever: post-processing, free.

The key is made of public metadata alone (kind, configuration, unit, stream, prices); whether
something is found under it tells nothing about data. A profile at one target says something about
others:

* samples whose training keeps a target t are enough, if not the fewest, for every t' >= t;
* "minimal risk above t" holds for every t' <= t.

Nothing else is carried over: a smaller target with a witness, or a level that was not reached, must
be measured anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from profiler.measuring.results import REACHED, RISK_ABOVE_TARGET, LevelResult
from profiler.measuring.terms import ProfileTerms
from ptklib.encoding.canonical import canonical
from ptklib.privacy.amounts import show

__all__ = ["cache_key", "reused"]


def cache_key(
    kind: str, config: Mapping[str, Any], stream: str, unit: str, terms: ProfileTerms
) -> str:
    """SHA-256 over everything public that a measured profile depends on, but the target."""
    body = {
        "kind": kind,
        "config": dict(config),
        "stream": stream,
        "unit": unit,
        "delta": show(terms.delta),
        "records_per_unit": terms.records_per_unit,
        "looks": show(terms.prices.looks),
        "lower": show(terms.prices.lower),
        "repeats": terms.repeats,
        "certifies": "retraining",
    }
    return hashlib.sha256(canonical(body)).hexdigest()


def reused(
    results: Sequence[LevelResult], measured_at: Fraction, target: Fraction
) -> dict[Fraction, LevelResult]:
    """The results that say something at another ``target``, by level. Give them to
    `measured_profile` as ``known``.

    The estimate at a looser target is read from the looks: the first size whose estimated risk
    would pass.
    """
    level_results: dict[Fraction, LevelResult] = {}
    for result in results:
        if result.status == REACHED and target >= measured_at:
            within = [
                look.samples for look in result.looks if look.risk + look.margin <= float(target)
            ]
            estimate = min([*within, result.estimate or result.samples or 1])
            # What it cost was charged when it was measured.
            level_results[result.level] = replace(
                result, estimate=estimate, charged=(), trainings=0, reason="reused"
            )
        elif result.status == RISK_ABOVE_TARGET and target <= measured_at:
            level_results[result.level] = replace(result, charged=(), trainings=0, reason="reused")
    return level_results
