"""Which PTKs are profiled in a window, and what earlier profiles say already. Public and DP numbers
only; reads no records.

A profile is due when there is none for the configuration and target, when somebody asked for a new
one (`renew`), or when it is stale: older than `MAX_AGE_WINDOWS`, or the DP counts of the last three
windows say that the stream has changed. What was measured for another target of the same
configuration, by this PTK or another one on the stream, is reused where it says something
(`profiler.cache`), unless it is stale itself or a new measurement was asked for. Its age goes with
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from profiler.cache import cache_key, reused
from profiler.measuring.results import NOT_REACHED, TRIED, LevelResult
from profiler.measuring.terms import ProfileTerms
from profiler.profiles import MEASURED_SOURCE
from profiler.staleness import Made, stale
from ptklib.privacy.amounts import exact, show
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import Candidate
from ptkstore.engine.plans.registrations import has_closed_form
from ptkstore.engine.profiles.terms import certified
from ptkstore.metadata import rows
from ptkstore.metadata.database.store import Transaction

__all__ = ["MAX_AGE_WINDOWS", "Earlier", "due", "earlier", "identity", "look_again"]

MAX_AGE_WINDOWS = 30
# So many times the records are worth another look at a PTK that was not reached.
_MORE = 2
MORE_DATA = "not reached before: there is more data now, so it is profiled again"


@dataclass(frozen=True)
class Earlier:
    """Levels that earlier profiles tell, with the time of the oldest of these and their witnesses
    by level.
    """

    results: dict[Fraction, LevelResult] = field(default_factory=dict)
    made_ms: int | None = None
    witnesses: dict[str, str] = field(default_factory=dict)


def identity(spec: StreamSpec, row: rows.PtkRow, terms: ProfileTerms) -> dict[str, str]:
    """What a profile is kept under besides its PTK: a key of public metadata, and the target of
    Fig. 3 it was measured at.
    """
    return {
        "key": cache_key(row.kind, row.config, spec.name, spec.unit, terms),
        "tau": show(terms.target),
    }


def due(parts: Parts, tx: Transaction, spec: StreamSpec, dp_records: int) -> dict[int, str]:
    """The PTKs to profile and why, in their order."""
    if Fraction(spec.profile_share) == 0:
        return {}
    privacy_filter, counts = parts.privacy_filter(spec.name), _counts(tx, spec, dp_records)
    reasons = {}
    for row in tx.ptks.list(spec.name):
        if row.status not in ("WAITING", "ACTIVE", "FAILED") or has_closed_form(
            spec, privacy_filter, Candidate.of(row)
        ):
            continue
        last = tx.profiles.latest(row.id, row.config_version, row.target)
        if last is None:
            reasons[row.id] = "NEW"
        elif row.status == "WAITING" or "renew_ms" in last.samples:
            reasons[row.id] = "ASKED"
        elif last.source == MEASURED_SOURCE and not certified(last.samples):
            reasons[row.id] = "PROMISE_CHANGED"
        elif why := _stale(parts, spec, last, counts):
            reasons[row.id] = why
    return reasons


def look_again(parts: Parts, spec: StreamSpec, dp_records: int) -> None:
    """PTKs that were not reached wait again where there is much more data now, by DP counts."""
    with parts.metadata.read() as tx:
        again = _rejected_again(parts, tx, spec, dp_records)
    if again:
        with parts.metadata.write() as tx:
            for row in again:
                if tx.ptks.get(row.id).status == "REJECTED":
                    tx.ptks.set_status(row.id, "WAITING", reason=MORE_DATA, at_ms=parts.public_ms())
                    tx.events.add(
                        "ptk.waiting", row.name, {"reason": MORE_DATA}, at_ms=parts.public_ms()
                    )


def _rejected_again(
    parts: Parts, tx: Transaction, spec: StreamSpec, dp_records: int
) -> list[rows.PtkRow]:
    """PTKs that were REJECTED as not reached, though not by so much data as this window has: their
    part of the profile slice would hold twice as many records.
    """
    share, living = Fraction(spec.profile_share), len(due(parts, tx, spec, dp_records))
    rejected: list[rows.PtkRow] = []
    for row in tx.ptks.list(spec.name):
        last = tx.profiles.latest(row.id, row.config_version, row.target)
        if row.status != "REJECTED" or last is None or last.source != MEASURED_SOURCE:
            continue
        expected = int(dp_records * share / (living + len(rejected) + 1))
        before = int(last.samples.get("expected_records", 0))
        status = last.samples.get("status")
        older = not certified(last.samples)
        # On trial it had all that a window trains on, whatever its part of the slice.
        larger = (
            dp_records >= _MORE * last.samples["dp_records"]
            if status == TRIED
            else expected >= _MORE * before
        )
        if status in (NOT_REACHED, TRIED) and (older or larger):
            rejected.append(row)
    return rejected


def earlier(
    parts: Parts,
    tx: Transaction,
    spec: StreamSpec,
    row: rows.PtkRow,
    terms: ProfileTerms,
    dp_records: int,
) -> Earlier:
    """What may be reused for a PTK that is due."""
    own = tx.profiles.latest(row.id, row.config_version, row.target)
    if own is not None:
        # It is measured again because it is stale, failed, or was asked for: then really.
        return Earlier()
    wanted, counts = identity(spec, row, terms), _counts(tx, spec, dp_records)
    results: dict[Fraction, LevelResult] = {}
    times: list[int] = []
    witnesses: dict[str, str] = {}
    for profile in _kin(tx, spec, row.kind):
        body = profile.samples
        if body.get("key") != wanted["key"] or _stale(parts, spec, profile, counts):
            continue
        told = reused(
            [LevelResult.from_json(result) for result in body["results"]],
            exact(body["tau"]),
            terms.target,
        )
        if told:
            results |= told
            times.append(_made_ms(profile))
            names = {show(level) for level in told}
            witnesses |= {
                level: digest
                for level, digest in body.get("witnesses", {}).items()
                if level in names
            }
    return Earlier(results, min(times, default=None), witnesses)


def _kin(tx: Transaction, spec: StreamSpec, kind: str) -> Iterator[rows.ProfileRow]:
    """All measured profiles of PTKs of a kind on the stream, tightest targets last: where several
    tell, that is the word.
    """
    profiles = [
        profile
        for row in tx.ptks.list(spec.name)
        if row.kind == kind
        for profile in tx.profiles.list(row.id)
        if profile.source == MEASURED_SOURCE
    ]
    return iter(sorted(profiles, key=lambda profile: (-profile.target, profile.id)))


def _counts(tx: Transaction, spec: StreamSpec, dp_records: int) -> list[int]:
    """DP numbers of records of the last windows, this one last."""
    done = [
        cycle.body["dp_records"]
        for cycle in tx.cycles.list(spec.name)
        if cycle.body and "dp_records" in cycle.body
    ]
    return [*done[-2:], dp_records]


def _stale(parts: Parts, spec: StreamSpec, last: rows.ProfileRow, counts: list[int]) -> str:
    made = Made(_made_ms(last), last.config_version, last.target, last.samples["dp_records"])
    return stale(
        made,
        now_ms=parts.now_ms(),
        max_age_ms=MAX_AGE_WINDOWS * spec.window_seconds * 1000,
        config_version=last.config_version,
        target=last.target,
        dp_records=counts,
    )


def _made_ms(profile: rows.ProfileRow) -> int:
    body: dict[str, Any] = profile.samples
    return int(body.get("made_ms") or profile.created_ms or 0)
