"""What is asked of a PTK's profile on a stream, what is known of its samples so far, and asking for
a new one. Reads no data.

Reasons: STATE_UNKNOWN (no witness), PTK_RETIRED.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from profiler.analytic import ANALYTIC, Profile
from profiler.analytic import profile as closed_form
from profiler.levels import privacy_levels
from profiler.profiles import CERTIFIES, ON_TRIAL
from profiler.sizing import needed_records
from ptklib.errors import Refused
from ptklib.privacy.amounts import epsilon_exact, show
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import ProfileView
from ptkstore.engine.plans.registrations import candidate
from ptkstore.engine.plans.window_size import terms_of
from ptkstore.metadata import rows
from ptkstore.metadata.database.store import Transaction

__all__ = [
    "OLDER",
    "certified",
    "profile_view",
    "renew",
    "told_of_trial",
    "vain",
    "witness",
]

RENEWING = "to be measured again when the next window closes"
# Of a profile that was measured by the rule before: for one witness, not for the state that trains.
OLDER = "measured by an older rule: " + RENEWING


def profile_view(
    tx: Transaction, spec: StreamSpec, row: rows.PtkRow, levels: Sequence[str] = ()
) -> ProfileView:
    """What is known of the samples of a PTK; reads no data.

    Other levels of a measured profile are rounded to what it has.
    """
    subject = candidate(tx, row)
    wanted = tuple(epsilon_exact(level, name="level") for level in levels)
    terms, grid = terms_of(spec, subject), privacy_levels(spec.policy.epsilon)
    asked = wanted or grid
    told: dict[str, Any] = {
        "ptk": row.name,
        "status": row.status,
        "levels": tuple(show(level) for level in asked),
    }
    closed = subject.ptk.analytic_profile(
        row.target, asked, terms.delta, records_per_unit=terms.records_per_unit
    )
    if closed is not None:
        profile = closed_form(subject.ptk, row.target, asked, terms.delta, terms.records_per_unit)
        return ProfileView(
            source=profile.source,
            promised=show(profile.promised),
            confidence=show(profile.confidence),
            samples=profile.samples,
            **told,
        )
    if subject.measured is None:
        needed = needed_records(subject.ptk, terms, grid)
        return ProfileView(
            source="none",
            reason=row.reason,
            samples=(None,) * len(asked),
            needed_records=needed,
            **told,
        )
    stored = tx.profiles.latest(row.id, row.config_version, row.target)
    assert stored is not None
    body = stored.samples
    witnesses = body.get("witnesses", {})
    bands = dict(zip(body["profile"]["levels"], body.get("band", ()), strict=False))
    known = dict(zip(subject.measured.levels, subject.measured.samples, strict=True))
    samples = tuple(
        known.get(max((have for have in known if have <= level), default=level)) for level in asked
    )
    return ProfileView(
        source=subject.measured.source,
        promised=show(subject.measured.promised),
        confidence=show(subject.measured.confidence),
        samples=samples,
        trainings=body["trainings"],
        measured=tuple(
            result | {"witness": witnesses.get(result["level"]), "band": bands.get(result["level"])}
            for result in body["results"]
        ),
        made_ms=body.get("made_ms", stored.created_ms),
        reason=_said(body, subject.measured),
        **told,
    )


def told_of_trial(profile: Profile) -> str:
    """What to say of a PTK that is on trial."""
    samples = min(known for known in profile.samples if known is not None)
    return (
        "on trial: the profile slice is too small to certify the target, so it is planned with "
        f"{samples:,} samples by an estimate, and a state is published only when its own test shows "
        "that it keeps the target"
    )


def _said(body: Mapping[str, Any], measured: Profile) -> str:
    if "renew_ms" in body:
        return RENEWING
    if not certified(body):
        return OLDER
    return told_of_trial(measured) if body["certifies"] == ON_TRIAL else vain(body)


def vain(body: Mapping[str, Any]) -> str:
    """What to say of a target that the best constant keeps; empty where there is nothing to say."""
    constant, target = body.get("constant") or {}, Fraction(body["profile"]["promised"])
    risk = constant.get("risk")
    if risk is None or risk - constant["error"] > target:
        return ""
    return (
        f"the best constant has a loss of about {risk:.3g}, so this target may ask nothing of the inputs: "
        "ask for less than that"
    )


def certified(body: Mapping[str, Any]) -> bool:
    """Whether a stored profile is evidence for the state that trains, by the rule of today."""
    return body.get("certifies") in (CERTIFIES, ON_TRIAL)


def renew(tx: Transaction, spec: StreamSpec, row: rows.PtkRow, *, now_ms: int) -> ProfileView:
    """Ask for a new profile: the old one counts until the next window has measured it, and is not
    reused there.

    A rejected PTK waits for it. Nothing to do for a closed form, which is made anew whenever it is
    asked for.
    """
    if row.status == "RETIRED":
        raise Refused(
            "PTK_RETIRED",
            f"PTK {row.name!r} is retired: register it under another name",
            ptk=row.name,
        )
    if profile_view(tx, spec, row).source == ANALYTIC:
        return profile_view(tx, spec, row)
    tx.profiles.ask_again(row.id, row.config_version, row.target, at_ms=now_ms)
    if row.status == "REJECTED":
        tx.ptks.set_status(row.id, "WAITING", reason=RENEWING, at_ms=now_ms)
    tx.events.add("ptk.renewed", row.name, {"ptk": row.name}, at_ms=now_ms)
    return profile_view(tx, spec, tx.ptks.get(row.id))


def witness(tx: Transaction, row: rows.PtkRow) -> str:
    """The digest of the witness with the least estimated risk, in the newest profile.

    Refused: STATE_UNKNOWN.
    """
    profile = tx.profiles.latest(row.id, row.config_version, row.target)
    body: dict[str, Any] = profile.samples if profile is not None else {}
    witnesses = body.get("witnesses", {})
    risks = {
        result["level"]: min(look[1] for look in result["looks"])
        for result in body.get("results", [])
        if result["level"] in witnesses
    }
    if not risks:
        raise Refused(
            "STATE_UNKNOWN",
            f"PTK {row.name!r} has no version 0: no level of it was measured and reached",
            ptk=row.name,
        )
    return str(witnesses[min(risks, key=lambda level: (risks[level], level))])
