"""Who may train: a PTK is accepted when a plan for all accepted PTKs and itself exists in a fresh
window, or REJECTED.

A rejection says why, the nearest target that would be accepted, and what else would admit it
(`answering`). Nothing here looks at data: a PTK without a closed form for its samples is WAITING
until it has been profiled in a window (`profiling`), then accepted or not. Plans are made on a
snapshot, with no transaction open (`deciding`); an answer that took too long to settle is
``refining``, and settled in the background (`refining`). Reasons: PTK_EXISTS, PTK_UNKNOWN,
PTK_RETIRED, ETAG_STALE, UNIT_UNSUPPORTED, COLUMN_UNKNOWN, OVER_UNSUPPORTED, PLAN_CONTENDED, and
those of the PTK's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from profiler.analytic import Profile
from profiler.profiles import MEASURED_SOURCE, ON_TRIAL
from ptklib import registry
from ptklib.encoding.error_fields import inside
from ptklib.errors import InvalidInput, Refused, SageError
from ptklib.privacy.filters import Filter
from ptklib.ptk import Ptk
from ptkstore.api.over import ALL, Over
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import Registration
from ptkstore.engine.asking import Ask, here
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.answering import answer_of, within_memory
from ptkstore.engine.plans.deciding import ACCEPTED, PtkDecision, decided
from ptkstore.engine.plans.dry_run import fitted
from ptkstore.engine.plans.planning import Candidate, closed_form, has_closed_form, ptk_of
from ptkstore.engine.plans.window_size import last_windows, told_of_size
from ptkstore.engine.within import Within, nothing
from ptkstore.metadata import Metadata, rows
from ptkstore.metadata.checks import check_name, check_real, check_whole
from ptkstore.metadata.database.store import Transaction

__all__ = [
    "active",
    "altered",
    "altered_candidate",
    "candidate",
    "change",
    "deregister",
    "fresh_row",
    "has_closed_form",
    "others_than",
    "register",
    "require_over",
    "retire",
    "reusable",
    "suggested",
    "told",
    "unwritten",
    "write_change",
]

SpecOf = Callable[[str], StreamSpec]


def active(tx: Transaction, stream: str) -> list[Candidate]:
    """The accepted PTKs of a stream, by id."""
    return [candidate(tx, row) for row in tx.ptks.list(stream, statuses=ACCEPTED)]


def candidate(tx: Transaction, row: rows.PtkRow, ptk: Ptk | None = None) -> Candidate:
    """A PTK with the measured profile of its configuration and target, if it has one."""
    made = Candidate.of(row) if ptk is None else Candidate(row, ptk)
    delta = Fraction(1, 10**6) if made.ptk.tags.needs_delta else Fraction(0)
    if closed_form(made.ptk, row.target, (Fraction(1),), delta, 1):
        return made
    profile = tx.profiles.latest(row.id, row.config_version, row.target)
    if profile is None or profile.source != MEASURED_SOURCE:
        return made
    return replace(
        made,
        measured=Profile.from_json(profile.samples["profile"]),
        on_trial=profile.samples.get("certifies") == ON_TRIAL,
    )


def others_than(tx: Transaction, row: rows.PtkRow) -> list[Candidate]:
    """The accepted PTKs of its stream besides this one, by id."""
    return [other for other in active(tx, row.stream) if other.row.id != row.id]


def register(
    metadata: Metadata,
    spec: StreamSpec,
    privacy_filter: Filter,
    name: str,
    *,
    kind: str,
    config: Mapping[str, Any],
    target: float,
    train_every: int,
    over: str = ALL,
    now_ms: int,
    within: Within[Registration] = nothing,
    ask: Ask = here,
    memory_bytes: int | None = None,
) -> Registration:
    """Add a PTK; a name that was REJECTED before may be asked again.

    ``ask`` says where it is tried out and planned; with ``memory_bytes`` a PTK that would never
    train in as much is REJECTED.
    """
    with inside("name"):
        check_name(name, "a PTK's name")
    check_real(target, "target")
    check_whole(train_every, "train_every", at_least=1)
    told_over = Over.of(over)
    kept = ask(fitted, spec, kind, config)
    require_over(kind, kept, told_over)
    wanted = unwritten(name, spec.name, kind, kept, target, train_every, told_over.text)
    windows: tuple[int, ...] = ()

    def read(tx: Transaction) -> tuple[Sequence[Candidate], Candidate]:
        nonlocal windows
        windows = last_windows(tx, spec.name)
        row = reusable(tx, wanted) or wanted
        # Another configuration has no profile yet, and what is asked again counts as another.
        return others_than(tx, row), Candidate.of(row)

    def answer(others: Sequence[Candidate], newcomer: Candidate) -> Registration:
        registration = _answered(spec, privacy_filter, ask, memory_bytes, others, newcomer)
        return told_of_size(spec, newcomer, registration, windows)

    def write(tx: Transaction, _newcomer: Candidate, registration: Registration) -> Registration:
        told(tx, fresh_row(tx, wanted, now_ms), registration, now_ms)
        within(tx, registration)
        return registration

    return decided(metadata, PtkDecision(spec.name, name, read, answer, write, metadata.write))


def _answered(
    spec: StreamSpec,
    privacy_filter: Filter,
    ask: Ask,
    memory_bytes: int | None,
    others: Sequence[Candidate],
    newcomer: Candidate,
) -> Registration:
    answer = ask(answer_of, spec, privacy_filter, others, newcomer)
    return answer if memory_bytes is None else within_memory(spec, newcomer, answer, memory_bytes)


def change(
    metadata: Metadata,
    spec_of: SpecOf,
    name: str,
    *,
    config: Mapping[str, Any] | None = None,
    target: float | None = None,
    etag: int | None = None,
    now_ms: int,
    within: Within[Registration] = nothing,
    ask: Ask = here,
    memory_bytes: int | None = None,
) -> Registration:
    """Give a PTK another configuration or target. If that does not fit, it keeps what it had and
    the answer is REJECTED.

    With ``etag``, only if it is still what the caller has seen (ETAG_STALE).
    """
    with metadata.read() as tx:
        first = tx.ptks.named(name)
    spec = spec_of(first.stream)
    privacy_filter = spec.policy.filter()
    made = None if config is None else registry.make(first.kind, config).as_json()

    def asked(row: rows.PtkRow) -> rows.PtkRow:
        if etag is not None and etag != row.etag:
            raise Refused(
                "ETAG_STALE", f"PTK {name!r} was changed by somebody else: read it again", ptk=name
            )
        return altered(row, made, target)

    ask(fitted, spec, first.kind, asked(first).config)
    require_over(first.kind, asked(first).config, Over.of(first.over))

    def read(tx: Transaction) -> tuple[Sequence[Candidate], Candidate]:
        row = tx.ptks.get(first.id)
        return others_than(tx, row), altered_candidate(tx, row, asked(row))

    def write(tx: Transaction, newcomer: Candidate, registration: Registration) -> Registration:
        if registration.status == "REJECTED":
            # It keeps what it had, so there is nothing to work on in the background.
            registration = replace(registration, refining=False)
        else:
            write_change(tx, newcomer.row, registration, now_ms)
        within(tx, registration)
        return registration

    answer = partial(_answered, spec, privacy_filter, ask, memory_bytes)
    return decided(metadata, PtkDecision(spec.name, name, read, answer, write, metadata.write))


def altered(row: rows.PtkRow, config: Any | None, target: float | None) -> rows.PtkRow:
    """A PTK as it would be with another configuration or target, where they are given. Refused:
    PTK_RETIRED.
    """
    if row.status == "RETIRED":
        raise Refused(
            "PTK_RETIRED",
            f"PTK {row.name!r} is retired: register it under another name",
            ptk=row.name,
        )
    return replace(
        row,
        config=row.config if config is None else config,
        target=row.target if target is None else float(target),
    )


def altered_candidate(tx: Transaction, row: rows.PtkRow, wanted: rows.PtkRow) -> Candidate:
    """To plan with what is `altered`. Another configuration has no profile yet."""
    return candidate(tx, wanted) if wanted.config == row.config else Candidate.of(wanted)


def require_over(kind: str, config: Mapping[str, Any], over: Over) -> None:
    """Refuse a choice of windows that states of this configuration cannot follow
    (OVER_UNSUPPORTED).
    """
    if over.combines and not ptk_of(kind, config).tags.combines:
        raise InvalidInput(
            "OVER_UNSUPPORTED",
            f"states of kind {kind} do not add up with this configuration, so over must be all or "
            f"last, got {over.text}",
            field="over",
        )


def write_change(tx: Transaction, wanted: rows.PtkRow, answer: Registration, now_ms: int) -> None:
    """Write what a PTK has become, with every part of it under the etag that was seen."""
    row = tx.ptks.get(wanted.id)
    etag = row.etag
    if wanted.config != row.config:
        etag = tx.ptks.update_config(row.id, wanted.config, etag=etag, at_ms=now_ms).etag
    if wanted.target != row.target:
        etag = tx.ptks.update_target(row.id, wanted.target, etag=etag, at_ms=now_ms).etag
    tx.ptks.set_status(row.id, answer.status, reason=answer.reason, etag=etag, at_ms=now_ms)
    tx.events.add("ptk.changed", row.name, answer.as_json(), at_ms=now_ms)


def deregister(parts: Parts, name: str, within: Within[None] = nothing) -> None:
    """Retire a PTK: its versions stay, it trains no more. One that is retired stays as it is."""
    with parts.metadata.write() as tx:
        retire(tx, name, parts.public_ms())
        within(tx, None)


def retire(tx: Transaction, name: str, now_ms: int) -> None:
    """Write that a PTK trains no more, unless that is so."""
    row = tx.ptks.named(name)
    if row.status != "RETIRED":
        tx.ptks.set_status(row.id, "RETIRED", reason="deregistered", at_ms=now_ms)
        tx.events.add("ptk.retired", name, {"ptk": name}, at_ms=now_ms)


def fresh_row(tx: Transaction, wanted: rows.PtkRow, now_ms: int) -> rows.PtkRow:
    """Write what was `unwritten`: a new row, or that of one that was REJECTED before. Reason:
    PTK_EXISTS.
    """
    row = reusable(tx, wanted)
    if row is None:
        return tx.ptks.create(
            wanted.name,
            wanted.stream,
            wanted.kind,
            wanted.config,
            wanted.target,
            wanted.train_every,
            at_ms=now_ms,
            over=wanted.over,
        )
    row = tx.ptks.update_config(row.id, wanted.config, etag=row.etag, at_ms=now_ms)
    return tx.ptks.update_target(row.id, wanted.target, etag=row.etag, at_ms=now_ms)


def reusable(tx: Transaction, wanted: rows.PtkRow) -> rows.PtkRow | None:
    """The row of a PTK of that name that was REJECTED, as it would be; None where the name is free.

    Reason: PTK_EXISTS.
    """
    try:
        row = tx.ptks.named(wanted.name)
    except SageError:
        return None
    if (
        row.status != "REJECTED"
        or row.stream != wanted.stream
        or row.kind != wanted.kind
        or row.train_every != wanted.train_every
        or row.over != wanted.over
    ):
        raise Refused(
            "PTK_EXISTS",
            f"there is a PTK {row.name!r} already, {row.status} on stream {row.stream!r}",
            ptk=row.name,
        )
    return replace(row, config=wanted.config, target=wanted.target)


def unwritten(
    name: str,
    stream: str,
    kind: str,
    config: Any,
    target: float,
    train_every: int = 1,
    over: str = ALL,
) -> rows.PtkRow:
    """The row of a PTK that is not there yet, to plan with."""
    return rows.PtkRow(
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
        over=over,
    )


def suggested(answer: Registration) -> dict[str, Any]:
    """What a rejection proposes, as it is kept beside the PTK."""
    kept: dict[str, Any] = {
        "nearest_target": answer.nearest_target,
        "changes": list(answer.changes),
        "remedies": [remedy.as_json() for remedy in answer.remedies],
    }
    return kept | {"refining": True} if answer.refining else kept


def told(tx: Transaction, row: rows.PtkRow, answer: Registration, now_ms: int) -> None:
    """Write what became of a PTK: its status, what is suggested, and the event."""
    tx.ptks.set_status(
        row.id,
        answer.status,
        reason=answer.reason,
        suggestion=suggested(answer) if answer.status == "REJECTED" else None,
        at_ms=now_ms,
    )
    kinds = {"ACTIVE": "ptk.accepted", "WAITING": "ptk.waiting", "REJECTED": "ptk.rejected"}
    tx.events.add(kinds[answer.status], row.name, answer.as_json(), at_ms=now_ms)
