"""Whether windows are large enough for a PTK, said when it is registered: from public numbers and the
DP counts of the last windows. And what is asked of its profile, which decides how much that takes.

A PTK that needs more records than windows have keeps waiting, or is left out of every plan. Windows
may grow, so it is not refused; but nobody should learn of it by waiting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from profiler.levels import privacy_levels
from profiler.measuring.terms import FLOOR, Prices, ProfileTerms
from profiler.on_trial import SHARE, least_test
from profiler.sizing import least_records
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import Registration
from ptkstore.engine.plans.planning import Candidate, charge_delta, records_per_unit
from ptkstore.metadata.database.store import Transaction

__all__ = ["last_windows", "terms_of", "told_of_size"]

_WINDOWS = 3
# What a test may cost, as a share of the stream's epsilon.
_TEST = Fraction(9, 10)


def terms_of(spec: StreamSpec, candidate: Candidate) -> ProfileTerms:
    """What is asked of a profile; prices are shares of the stream's epsilon."""
    epsilon = Fraction(spec.policy.epsilon)
    return ProfileTerms.of(
        repr(candidate.row.target),
        epsilon,
        delta=charge_delta(spec, candidate.ptk),
        records_per_unit=records_per_unit(spec),
        n_max=spec.n_max,
        prices=Prices.of(epsilon, looks=_looks(spec)),
    )


def _looks(spec: StreamSpec) -> Fraction:
    """The part of epsilon for looks: there is nothing else at the points of a validation piece but the
    window's count.
    """
    rest = 1 - Fraction(spec.count_epsilon) / Fraction(spec.policy.epsilon)
    # A tenth is left for the look at a constant.
    return min(Fraction(3, 4), max(Fraction(1, 4), rest * Fraction(9, 10)))


def last_windows(tx: Transaction, stream: str) -> tuple[int, ...]:
    """The DP counts of the last windows, newest last."""
    bodies = [cycle.body for cycle in tx.cycles.list(stream) if cycle.body]
    return tuple(int(body["dp_records"]) for body in bodies if "dp_records" in body)[-_WINDOWS:]


def told_of_size(
    spec: StreamSpec, newcomer: Candidate, answer: Registration, windows: Sequence[int]
) -> Registration:
    """The answer, with what it needs where the last windows were too small for that."""
    needed = _needed(spec, newcomer, answer)
    if not windows or needed <= max(windows):
        return answer
    told = (
        f"it needs about {needed:,} records a window, the last ones held about {max(windows):,}: "
        "until windows are longer it waits"
    )
    return replace(answer, reason=f"{answer.reason}; {told}" if answer.reason else told)


def _needed(spec: StreamSpec, newcomer: Candidate, answer: Registration) -> int:
    """Records of a window; 0 where nothing can be said."""
    share = Fraction(spec.profile_share)
    if answer.status == "ACTIVE":
        return math.ceil((answer.planned_samples or 0) / (1 - share)) if share < 1 else 0
    if answer.status != "WAITING" or share == 0:
        return 0
    levels, terms = privacy_levels(spec.policy.epsilon), terms_of(spec, newcomer)
    profiled = math.ceil(least_records(newcomer.ptk, terms, levels) / share)
    tested = least_test(terms, Fraction(spec.policy.epsilon) * _TEST)
    if tested is None or share == 1:
        return profiled
    # What cannot be profiled is tried: on so many records, with so many for the test of a state.
    trained = math.ceil(FLOOR / SHARE / (1 - share))
    return min(profiled, max(math.ceil(tested / share), trained))
