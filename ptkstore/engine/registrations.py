"""Who may train: a PTK is accepted when a plan for all accepted PTKs and itself exists in a fresh window, or REJECTED.

A rejection says why, the nearest target that would be accepted, and what else would admit it. Nothing here looks at data: a
PTK without a closed form for its samples is WAITING until it has been profiled in a window (`profiling`), then accepted or
not. Reasons: PTK_EXISTS, PTK_UNKNOWN, PTK_RETIRED, UNIT_UNSUPPORTED, COLUMN_UNKNOWN, and those of the PTK's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from profiler.analytic import Profile
from profiler.levels import privacy_levels
from ptklib import registry
from ptklib.errors import InvalidInput, Refused, SageError
from ptklib.privacy.filters import Filter
from ptklib.ptk import Ptk
from ptkstore.engine.fitting import try_out
from ptkstore.engine.planning import Candidate, charge_delta, nearest, preview, records_per_unit
from ptkstore.metadata import Metadata, rows
from ptkstore.metadata.store import Transaction
from ptkstore.streams.spec import StreamSpec
from ptkstore.views import Registration

__all__ = [
    "active",
    "candidate",
    "change",
    "check_fit",
    "decide",
    "deregister",
    "fresh_row",
    "has_closed_form",
    "register",
    "unheard",
]

SpecOf = Callable[[str], StreamSpec]
# Called in the transaction that makes a change, with the answer to it: what it writes is durable with the change or not at all.
Within = Callable[[Transaction, Registration], object]


def unheard(_tx: Transaction, _answer: Registration) -> None:
    """Nothing to write with a change."""


def active(tx: Transaction, stream: str) -> list[Candidate]:
    """The accepted PTKs of a stream, by id."""
    return [candidate(tx, row) for row in tx.ptks.list(stream) if row.status in ("ACTIVE", "FAILED")]


def candidate(tx: Transaction, row: rows.Ptk, ptk: Ptk | None = None) -> Candidate:
    """A PTK with the measured profile of its configuration and target, if it has one."""
    made = Candidate.of(row) if ptk is None else Candidate(row, ptk)
    delta = Fraction(1, 10**6) if made.ptk.tags.needs_delta else Fraction(0)
    if _has_closed_form(made.ptk, row.target, (Fraction(1),), delta, 1):
        return made
    found = tx.profiles.latest(row.id, row.config_version, row.target)
    measured = Profile.from_json(found.samples["profile"]) if found is not None and found.source == "measured" else None
    return replace(made, measured=measured)


def has_closed_form(spec: StreamSpec, judge: Filter, one: Candidate) -> bool:
    """True when the samples follow from public numbers: there is nothing to profile."""
    levels, units = privacy_levels(judge.epsilon), records_per_unit(spec)
    return _has_closed_form(one.ptk, one.row.target, levels, charge_delta(spec, one.ptk), units)


@lru_cache(maxsize=4096)
def _has_closed_form(ptk: Ptk, target: float, levels: tuple[Fraction, ...], delta: Fraction, units: int) -> bool:
    """Public numbers of a configuration and a target: the same in every window."""
    return ptk.analytic_profile(target, levels, delta, records_per_unit=units) is not None


def check_fit(spec: StreamSpec, ptk: Ptk) -> None:
    """The PTK must read columns that the stream has, at a unit of privacy it can keep."""
    known = {column.name for column in spec.columns}
    missing = [name for name in ptk.columns() if name not in known]
    if missing:
        raise InvalidInput(
            "COLUMN_UNKNOWN",
            f"stream {spec.name!r} must have the columns the PTK reads, it has no {', '.join(missing)}",
        )
    if spec.unit not in ptk.tags.units:
        raise InvalidInput(
            "UNIT_UNSUPPORTED",
            f"a PTK of kind {ptk.kind} cannot be private at {spec.unit} level, it can at: {', '.join(ptk.tags.units)}",
        )
    wanted = ptk.unit_column()
    if spec.unit == "user" and spec.records_per_user > 1 and wanted not in (None, spec.user_column):
        raise InvalidInput(
            "UNIT_UNSUPPORTED",
            f"a PTK of kind {ptk.kind} must take users from the user column of stream {spec.name!r}, which is "
            f"{spec.user_column!r}, got {wanted!r}",
        )
    try_out(spec, ptk, records_per_unit=records_per_unit(spec))


def register(
    metadata: Metadata,
    spec: StreamSpec,
    judge: Filter,
    name: str,
    *,
    kind: str,
    config: Mapping[str, Any],
    target: float,
    train_every: int,
    now_ms: int,
    within: Within = unheard,
) -> Registration:
    """Add a PTK; a name that was REJECTED before may be asked again."""
    ptk = registry.make(kind, config)
    check_fit(spec, ptk)
    with metadata.write() as tx:
        row = fresh_row(tx, name, spec.name, kind, ptk.as_json(), target, train_every, now_ms)
        answer = decide(tx, spec, judge, candidate(tx, row, ptk), now_ms)
        within(tx, answer)
        return answer


def change(
    metadata: Metadata,
    spec_of: SpecOf,
    name: str,
    *,
    config: Mapping[str, Any] | None = None,
    target: float | None = None,
    etag: int | None = None,
    now_ms: int,
    within: Within = unheard,
) -> Registration:
    """Give a PTK another configuration or target. If that does not fit, it keeps what it had and the answer is REJECTED.

    With ``etag``, only if it is still what the caller has seen (ETAG_STALE).
    """
    with metadata.read() as tx:
        row = tx.ptks.named(name)
    if etag is not None and etag != row.etag:
        raise Refused("ETAG_STALE", f"PTK {name!r} was changed by somebody else: read it again", ptk=name)
    if row.status == "RETIRED":
        raise Refused("PTK_RETIRED", f"PTK {name!r} is retired: register it under another name", ptk=name)
    spec = spec_of(row.stream)
    wanted = replace(
        row,
        config=registry.make(row.kind, config).as_json() if config is not None else row.config,
        target=row.target if target is None else float(target),
    )
    newcomer = Candidate.of(wanted)
    check_fit(spec, newcomer.ptk)
    with metadata.write() as tx:
        judge = spec.policy.filter()
        others = [one for one in active(tx, spec.name) if one.row.id != row.id]
        if wanted.config == row.config:
            newcomer = candidate(tx, wanted, newcomer.ptk)
        answer = _answer(spec, judge, others, newcomer)
        if answer.status == "REJECTED":
            within(tx, answer)
            return answer
        etag = row.etag
        if wanted.config != row.config:
            etag = tx.ptks.update_config(row.id, wanted.config, etag=etag, at_ms=now_ms).etag
        if wanted.target != row.target:
            etag = tx.ptks.update_target(row.id, wanted.target, etag=etag, at_ms=now_ms).etag
        tx.ptks.set_status(row.id, answer.status, reason=answer.reason, etag=etag, at_ms=now_ms)
        tx.events.add("ptk.changed", name, answer.as_json(), at_ms=now_ms)
        within(tx, answer)
        return answer


def deregister(tx: Transaction, name: str, *, now_ms: int) -> None:
    """Retire a PTK: its versions stay, it trains no more."""
    row = tx.ptks.named(name)
    tx.ptks.set_status(row.id, "RETIRED", reason="deregistered", at_ms=now_ms)
    tx.events.add("ptk.retired", name, {"ptk": name}, at_ms=now_ms)


def fresh_row(
    tx: Transaction,
    name: str,
    stream: str,
    kind: str,
    config: object,
    target: float,
    train_every: int,
    now_ms: int,
) -> rows.Ptk:
    """The row of a new PTK, or that of one that was REJECTED before. Reason: PTK_EXISTS."""
    try:
        row = tx.ptks.named(name)
    except SageError:
        return tx.ptks.create(name, stream, kind, config, target, train_every, at_ms=now_ms)
    if row.status != "REJECTED" or row.stream != stream or row.kind != kind or row.train_every != train_every:
        raise Refused("PTK_EXISTS", f"there is a PTK {name!r} already, {row.status} on stream {row.stream!r}", ptk=name)
    row = tx.ptks.update_config(row.id, config, etag=row.etag, at_ms=now_ms)
    return tx.ptks.update_target(row.id, target, etag=row.etag, at_ms=now_ms)


def decide(tx: Transaction, spec: StreamSpec, judge: Filter, newcomer: Candidate, now_ms: int) -> Registration:
    """Accept or reject a PTK with what is known of it now, or let it wait for its profile."""
    others = [one for one in active(tx, spec.name) if one.row.id != newcomer.row.id]
    answer = _answer(spec, judge, others, newcomer)
    suggestion = {"nearest_target": answer.nearest_target, "changes": list(answer.changes)}
    tx.ptks.set_status(
        newcomer.row.id,
        answer.status,
        reason=answer.reason,
        suggestion=suggestion if answer.status == "REJECTED" else None,
        at_ms=now_ms,
    )
    kinds = {"ACTIVE": "ptk.accepted", "WAITING": "ptk.waiting", "REJECTED": "ptk.rejected"}
    tx.events.add(kinds[answer.status], newcomer.row.name, answer.as_json(), at_ms=now_ms)
    return answer


def _answer(spec: StreamSpec, judge: Filter, others: Sequence[Candidate], newcomer: Candidate) -> Registration:
    name = newcomer.row.name
    if newcomer.measured is None and not has_closed_form(spec, judge, newcomer):
        if Fraction(spec.profile_share) == 0:
            reason = f"a PTK of kind {newcomer.ptk.kind} must be profiled, and the stream has no profile_share"
            return Registration(name, "REJECTED", reason=reason)
        return Registration(name, "WAITING", reason="to be profiled when the next window closes")
    plan = preview(spec, judge, [*others, newcomer]).plan
    if plan.total_samples is not None:
        mine = next(one for one in plan.assignments if one.id == name)
        return Registration(name, "ACTIVE", planned_epsilon=mine.level, planned_samples=mine.samples)
    told = plan.explanation
    return Registration(
        name,
        "REJECTED",
        reason=told.text if told else "no plan exists",
        nearest_target=nearest(spec, judge, others, newcomer),
        changes=tuple(one.text for one in told.changes) if told else (),
    )
