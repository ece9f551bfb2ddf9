"""PTKs on trial: what a profile that certified too little plans instead, and what each test changes.

A PTK on trial is planned by an estimate (`profiler.on_trial`), and nobody is given a state of it
that its own test did not accept: where there is no test there is no version either, so it trains
only in windows whose profile slice has room for one. A window that profiles others while there are
PTKs on trial keeps one part of its slice for their tests.

After each test the profile is written anew with what the test said, and with the samples of the
next try. One that has failed `TRIES` times on all that windows hold, and never passed, is REJECTED
with the target that its states would most likely keep. Whoever has passed once is not rejected:
its last version that stands is what everybody has.

Costs nothing: public numbers, and numbers that tests have released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from profiler.analytic import Profile
from profiler.measuring.results import LevelResult
from profiler.measuring.terms import ProfileTerms
from profiler.on_trial import (
    TRIES,
    TriedState,
    kept_target,
    largest_try,
    likely_loss,
    next_try,
    try_level,
)
from profiler.on_trial import on_trial as tried_profile
from profiler.profiles import MEASURED_SOURCE, ON_TRIAL, MeasuredProfile
from ptklib.privacy.filters import Filter
from ptklib.validators.betting import LossTest
from ptklib.validators.verdict import LossVerdict
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import Candidate, fresh_loss
from ptkstore.engine.plans.registrations import active, has_closed_form
from ptkstore.engine.plans.window_size import terms_of
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.metadata import ResultsTransaction, Transaction

__all__ = [
    "PRICES",
    "Outcome",
    "any_on_trial",
    "put_on_trial",
    "trainable",
    "trial_outcome",
    "trial_price",
    "trial_prices",
    "write_outcome",
]

# What a test may cost, as shares of the stream's epsilon: the least that suffices, but for a PTK on
# trial the highest there is room for. Nothing else will ever be charged to its records.
PRICES = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10))
# Tests that are remembered.
_TESTS = 16


def trial_prices(spec: StreamSpec, privacy_filter: Filter) -> list[Fraction]:
    """Those of `PRICES` that fit beside the count, rising."""
    fresh = np.array([fresh_loss(spec, privacy_filter)], dtype=np.int64)
    prices = []
    for share in PRICES:
        price = Fraction(spec.policy.epsilon) * share
        # The price of a test is its epsilon, whatever its target and stake.
        cost = LossTest(target="0.5", epsilon=price, eta="0.05", stake=1).cost
        demand = np.array(privacy_filter.demand(cost), dtype=np.int64)
        if privacy_filter.admits(fresh, demand).all():
            prices.append(price)
    return prices


def trial_price(spec: StreamSpec, privacy_filter: Filter) -> Fraction | None:
    """What the test of a PTK on trial costs; None where the stream has no epsilon for one."""
    return max(trial_prices(spec, privacy_filter), default=None)


def any_on_trial(parts: Parts, spec: StreamSpec) -> bool:
    """Whether a PTK of the stream is on trial."""
    with parts.metadata.read() as tx:
        return any(ptk.on_trial for ptk in active(tx, spec.name))


def put_on_trial(
    parts: Parts,
    spec: StreamSpec,
    measured: MeasuredProfile,
    terms: ProfileTerms,
    dp_records: int,
) -> MeasuredProfile:
    """The profile as it was measured, or on trial where it certified too little for this stream."""
    privacy_filter = parts.privacy_filter(spec.name)
    price = trial_price(spec, privacy_filter)
    if price is None:
        return measured
    with parts.metadata.read() as tx:
        sharing = sum(
            not has_closed_form(spec, privacy_filter, other) for other in active(tx, spec.name)
        )
    expected = int(dp_records * Fraction(spec.profile_share) / max(1, sharing))
    return (
        tried_profile(
            measured,
            terms,
            trainable=trainable(spec, dp_records),
            test_records=expected,
            test_epsilon=price,
        )
        or measured
    )


def trainable(spec: StreamSpec, dp_records: int) -> int:
    """The records of a window that a plan may use, and the stream allows."""
    return min(int(dp_records * (1 - Fraction(spec.profile_share))), spec.n_max)


@dataclass(frozen=True)
class Outcome:
    """What the test of a state changes: the profile with what it said, and the reason and nearest
    target of a PTK that is rejected for it.
    """

    body: dict[str, Any]
    rejected: str = ""
    nearest: float | None = None


def trial_outcome(
    tx: Transaction,
    spec: StreamSpec,
    state: Assigned,
    validation: Mapping[str, Any],
    dp_records: int,
) -> Outcome | None:
    """What a test means for its PTK; None where it was not made, or the PTK is not on trial now."""
    row = tx.ptks.get(state.ptk)
    stored = tx.profiles.latest(row.id, row.config_version, row.target)
    if "evidence" not in validation or stored is None or row.target != state.target:
        return None
    body = stored.samples
    if stored.source != MEASURED_SOURCE or body.get("certifies") != ON_TRIAL:
        return None
    test = LossTest.from_json(validation["test"])
    verdict = LossVerdict.of(validation["evidence"], validation["threshold"])
    records = validation["records"]
    tested = TriedState.of(
        test, verdict, epsilon=state.epsilon, samples=state.samples, records=records
    )
    tests = [*map(TriedState.from_json, body.get("tests", ())), tested][-_TESTS:]
    terms = terms_of(spec, Candidate.of(row))
    aim = likely_loss(terms, records=records, epsilon=test.epsilon) or 0.0
    profile = Profile.from_json(body["profile"])
    looks = LevelResult.from_json(body["results"][-1]).looks
    trained = trainable(spec, dp_records)
    after = next_try(profile, looks, tests, aim=aim, trainable=trained)
    kept = body | {"tests": [test.as_json() for test in tests]}
    if after is not None:
        return Outcome(kept | {"profile": after.as_json()})
    most = largest_try(trained)
    failed = [test for test in tests if not test.accepted and test.at(try_level(profile)) >= most]
    if len(failed) < TRIES or any(test.accepted for test in tests):
        return Outcome(kept)
    return Outcome(
        kept, _vain(failed), kept_target(terms, failed, records=records, epsilon=test.epsilon)
    )


def write_outcome(
    tx: ResultsTransaction, state: Assigned, outcome: Outcome, *, now_ms: int
) -> None:
    """The profile for the next window, and the rejection where there is one."""
    row = tx.ptks.get(state.ptk)
    stored = tx.profiles.latest(row.id, row.config_version, row.target)
    if stored is None or row.target != state.target:
        return
    source, levels = stored.source, stored.levels
    tx.profiles.put(
        row.id, row.config_version, row.target, levels, outcome.body, source, at_ms=now_ms
    )
    if outcome.rejected and row.status in ("ACTIVE", "FAILED"):
        suggestion: dict[str, Any] = {"nearest_target": outcome.nearest, "changes": []}
        tx.ptks.set_status(
            row.id, "REJECTED", reason=outcome.rejected, suggestion=suggestion, at_ms=now_ms
        )
        told = {"reason": outcome.rejected, **suggestion}
        tx.events.add("ptk.rejected", row.name, told, at_ms=now_ms)


def _vain(failed: list[TriedState]) -> str:
    samples = max(test.samples for test in failed)
    return (
        f"tried in {len(failed)} windows with up to {samples:,} samples, and no state was shown to "
        "keep the target"
    )
