"""Who may train: a PTK is accepted when a plan for all accepted PTKs and itself exists in a fresh window, or REJECTED.

A rejection says why, the nearest target that would be accepted, and what else would admit it (`answering`). Nothing here looks
at data: a PTK without a closed form for its samples is WAITING until it has been profiled in a window (`profiling`), then
accepted or not. Plans are made on a snapshot, with no transaction open (`deciding`); an answer that took too long to settle is
``refining``, and settled in the background (`refining`). Reasons: PTK_EXISTS, PTK_UNKNOWN, PTK_RETIRED, ETAG_STALE,
UNIT_UNSUPPORTED, COLUMN_UNKNOWN, PLAN_CONTENDED, and those of the PTK's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from profiler.analytic import Profile
from ptklib import registry
from ptklib.errors import InvalidInput, Refused, SageError
from ptklib.privacy.filters import Filter
from ptklib.ptk import Ptk
from ptkstore.engine.answering import answer_of
from ptkstore.engine.deciding import ACCEPTED, decided
from ptkstore.engine.fitting import try_out
from ptkstore.engine.planning import Candidate, closed_form, has_closed_form, records_per_unit
from ptkstore.metadata import Metadata, rows
from ptkstore.metadata.checks import check_name, check_real, check_whole
from ptkstore.metadata.store import Transaction
from ptkstore.streams.spec import StreamSpec
from ptkstore.views import Registration

__all__ = [
    "AnswerOf",
    "active",
    "candidate",
    "change",
    "check_fit",
    "deregister",
    "fresh_row",
    "has_closed_form",
    "register",
    "told",
    "unheard",
    "unwritten",
]

SpecOf = Callable[[str], StreamSpec]
# Called in the transaction that makes a change, with the answer to it: what it writes is durable with the change or not at all.
Within = Callable[[Transaction, Registration], object]
AnswerOf = Callable[[StreamSpec, Filter, Sequence[Candidate], Candidate], Registration]


def unheard(_tx: Transaction, _answer: Registration) -> None:
    """Nothing to write with a change."""


def active(tx: Transaction, stream: str) -> list[Candidate]:
    """The accepted PTKs of a stream, by id."""
    return [candidate(tx, row) for row in tx.ptks.list(stream) if row.status in ACCEPTED]


def candidate(tx: Transaction, row: rows.Ptk, ptk: Ptk | None = None) -> Candidate:
    """A PTK with the measured profile of its configuration and target, if it has one."""
    made = Candidate.of(row) if ptk is None else Candidate(row, ptk)
    delta = Fraction(1, 10**6) if made.ptk.tags.needs_delta else Fraction(0)
    if closed_form(made.ptk, row.target, (Fraction(1),), delta, 1):
        return made
    found = tx.profiles.latest(row.id, row.config_version, row.target)
    measured = Profile.from_json(found.samples["profile"]) if found is not None and found.source == "measured" else None
    return replace(made, measured=measured)


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
    answer: AnswerOf | None = None,
) -> Registration:
    """Add a PTK; a name that was REJECTED before may be asked again. ``answer`` plans elsewhere (`planner`)."""
    check_name(name, "a PTK's name")
    check_real(target, "target")
    check_whole(train_every, "train_every", at_least=1)
    ptk = registry.make(kind, config)
    check_fit(spec, ptk)
    wanted = (name, spec.name, kind, ptk.as_json(), target, train_every)

    def read(tx: Transaction) -> tuple[Sequence[Candidate], Candidate]:
        row = _reusable(tx, *wanted) or unwritten(*wanted)
        # Another configuration has no profile yet, and what is asked again counts as another.
        return [one for one in active(tx, spec.name) if one.row.id != row.id], Candidate(row, ptk)

    def write(tx: Transaction, _newcomer: Candidate, found: Registration) -> Registration:
        told(tx, fresh_row(tx, *wanted, now_ms), found, now_ms)
        within(tx, found)
        return found

    return decided(
        metadata,
        spec.name,
        name,
        read=read,
        answer=lambda others, newcomer: (answer or answer_of)(spec, judge, others, newcomer),
        write=write,
    )


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
    answer: AnswerOf | None = None,
) -> Registration:
    """Give a PTK another configuration or target. If that does not fit, it keeps what it had and the answer is REJECTED.

    With ``etag``, only if it is still what the caller has seen (ETAG_STALE).
    """
    with metadata.read() as tx:
        first = tx.ptks.named(name)
    spec = spec_of(first.stream)
    judge = spec.policy.filter()
    made = None if config is None else registry.make(first.kind, config).as_json()

    def asked(row: rows.Ptk) -> rows.Ptk:
        if etag is not None and etag != row.etag:
            raise Refused("ETAG_STALE", f"PTK {name!r} was changed by somebody else: read it again", ptk=name)
        if row.status == "RETIRED":
            raise Refused("PTK_RETIRED", f"PTK {name!r} is retired: register it under another name", ptk=name)
        return replace(
            row,
            config=row.config if made is None else made,
            target=row.target if target is None else float(target),
        )

    check_fit(spec, Candidate.of(asked(first)).ptk)

    def read(tx: Transaction) -> tuple[Sequence[Candidate], Candidate]:
        row = tx.ptks.get(first.id)
        wanted = asked(row)
        others = [one for one in active(tx, spec.name) if one.row.id != row.id]
        # Another configuration has no profile yet.
        return others, candidate(tx, wanted) if wanted.config == row.config else Candidate.of(wanted)

    def write(tx: Transaction, newcomer: Candidate, found: Registration) -> Registration:
        if found.status == "REJECTED":
            # It keeps what it had, so there is nothing to work on in the background.
            found = replace(found, refining=False)
        else:
            _changed(tx, newcomer.row, found, now_ms)
        within(tx, found)
        return found

    return decided(
        metadata,
        spec.name,
        name,
        read=read,
        answer=lambda others, newcomer: (answer or answer_of)(spec, judge, others, newcomer),
        write=write,
    )


def _changed(tx: Transaction, wanted: rows.Ptk, answer: Registration, now_ms: int) -> None:
    """Write what a PTK has become, with every part of it under the etag that was seen."""
    row = tx.ptks.get(wanted.id)
    etag = row.etag
    if wanted.config != row.config:
        etag = tx.ptks.update_config(row.id, wanted.config, etag=etag, at_ms=now_ms).etag
    if wanted.target != row.target:
        etag = tx.ptks.update_target(row.id, wanted.target, etag=etag, at_ms=now_ms).etag
    tx.ptks.set_status(row.id, answer.status, reason=answer.reason, etag=etag, at_ms=now_ms)
    tx.events.add("ptk.changed", row.name, answer.as_json(), at_ms=now_ms)


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
    row = _reusable(tx, name, stream, kind, config, target, train_every)
    if row is None:
        return tx.ptks.create(name, stream, kind, config, target, train_every, at_ms=now_ms)
    row = tx.ptks.update_config(row.id, config, etag=row.etag, at_ms=now_ms)
    return tx.ptks.update_target(row.id, target, etag=row.etag, at_ms=now_ms)


def _reusable(
    tx: Transaction, name: str, stream: str, kind: str, config: object, target: float, train_every: int
) -> rows.Ptk | None:
    """The row of a PTK of that name that was REJECTED, as it would be; None where the name is free. Reason: PTK_EXISTS."""
    try:
        row = tx.ptks.named(name)
    except SageError:
        return None
    if row.status != "REJECTED" or row.stream != stream or row.kind != kind or row.train_every != train_every:
        raise Refused("PTK_EXISTS", f"there is a PTK {name!r} already, {row.status} on stream {row.stream!r}", ptk=name)
    return replace(row, config=config, target=float(target))


def unwritten(name: str, stream: str, kind: str, config: Any, target: float, train_every: int = 1) -> rows.Ptk:
    """The row of a PTK that is not there yet, to plan with."""
    return rows.Ptk(
        id=-1,
        name=name,
        stream=stream,
        kind=kind,
        config_version=1,
        config=config,
        target=float(target),
        train_every=train_every,
        status="WAITING",
        reason="",
        suggestion=None,
        etag=1,
        created_ms=None,
        updated_ms=None,
    )


def told(tx: Transaction, row: rows.Ptk, answer: Registration, now_ms: int) -> None:
    """Write what became of a PTK: its status, what is suggested, and the event."""
    suggestion: dict[str, Any] = {"nearest_target": answer.nearest_target, "changes": list(answer.changes)}
    if answer.refining:
        suggestion["refining"] = True
    tx.ptks.set_status(
        row.id,
        answer.status,
        reason=answer.reason,
        suggestion=suggestion if answer.status == "REJECTED" else None,
        at_ms=now_ms,
    )
    kinds = {"ACTIVE": "ptk.accepted", "WAITING": "ptk.waiting", "REJECTED": "ptk.rejected"}
    tx.events.add(kinds[answer.status], row.name, answer.as_json(), at_ms=now_ms)
