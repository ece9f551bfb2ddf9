"""Who may train: a PTK is accepted when a plan for all accepted PTKs and itself exists in a fresh window, or REJECTED.

A rejection says why, the nearest target that would be accepted, and what else would admit it. Nothing here looks at data.
Reasons: PTK_EXISTS, PTK_UNKNOWN, PTK_RETIRED, UNIT_UNSUPPORTED, COLUMN_UNKNOWN, and those of the PTK's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ptklib import registry
from ptklib.errors import InvalidInput, Refused, SageError
from ptklib.privacy.filters import Filter
from ptklib.ptk import Ptk
from ptkstore.engine.planning import Candidate, fresh_loss, nearest, settle_plan
from ptkstore.metadata import Metadata, rows
from ptkstore.metadata.store import Transaction
from ptkstore.streams.spec import StreamSpec
from ptkstore.views import Registration

__all__ = ["active", "change", "check_fit", "deregister", "register"]

SpecOf = Callable[[str], StreamSpec]


def active(tx: Transaction, stream: str) -> list[Candidate]:
    """The accepted PTKs of a stream, by id."""
    return [Candidate.of(row) for row in tx.ptks.list(stream) if row.status in ("ACTIVE", "FAILED")]


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
) -> Registration:
    """Add a PTK; a name that was REJECTED before may be asked again."""
    ptk = registry.make(kind, config)
    check_fit(spec, ptk)
    with metadata.write() as tx:
        row = _fresh_row(tx, name, spec.name, kind, ptk.as_json(), target, train_every, now_ms)
        return _judge(tx, spec, judge, Candidate(row, ptk), now_ms)


def change(
    metadata: Metadata,
    spec_of: SpecOf,
    name: str,
    *,
    config: Mapping[str, Any] | None = None,
    target: float | None = None,
    now_ms: int,
) -> Registration:
    """Give a PTK another configuration or target. If that does not fit, it keeps what it had and the answer is REJECTED."""
    with metadata.read() as tx:
        row = tx.ptks.named(name)
    if row.status == "RETIRED":
        raise Refused("PTK_RETIRED", f"PTK {name!r} is retired: register it under another name", ptk=name)
    spec = spec_of(row.stream)
    wanted = replace(
        row,
        config=registry.make(row.kind, config).as_json() if config is not None else row.config,
        target=row.target if target is None else float(target),
    )
    candidate = Candidate.of(wanted)
    check_fit(spec, candidate.ptk)
    with metadata.write() as tx:
        judge = spec.policy.filter()
        others = [one for one in active(tx, spec.name) if one.row.id != row.id]
        answer = _answer(spec, judge, others, candidate)
        if answer.status == "REJECTED":
            return answer
        etag = row.etag
        if wanted.config != row.config:
            etag = tx.ptks.update_config(row.id, wanted.config, etag=etag, at_ms=now_ms).etag
        if wanted.target != row.target:
            etag = tx.ptks.update_target(row.id, wanted.target, etag=etag, at_ms=now_ms).etag
        tx.ptks.set_status(row.id, "ACTIVE", etag=etag, at_ms=now_ms)
        tx.events.add("ptk.changed", name, answer.as_json(), at_ms=now_ms)
        return answer


def deregister(metadata: Metadata, name: str, *, now_ms: int) -> None:
    """Retire a PTK: its versions stay, it trains no more."""
    with metadata.write() as tx:
        row = tx.ptks.named(name)
        tx.ptks.set_status(row.id, "RETIRED", reason="deregistered", at_ms=now_ms)
        tx.events.add("ptk.retired", name, {"ptk": name}, at_ms=now_ms)


def _fresh_row(
    tx: Transaction,
    name: str,
    stream: str,
    kind: str,
    config: object,
    target: float,
    train_every: int,
    now_ms: int,
) -> rows.Ptk:
    try:
        row = tx.ptks.named(name)
    except SageError:
        return tx.ptks.create(name, stream, kind, config, target, train_every, at_ms=now_ms)
    if row.status != "REJECTED" or row.stream != stream or row.kind != kind or row.train_every != train_every:
        raise Refused("PTK_EXISTS", f"there is a PTK {name!r} already, {row.status} on stream {row.stream!r}", ptk=name)
    row = tx.ptks.update_config(row.id, config, etag=row.etag, at_ms=now_ms)
    return tx.ptks.update_target(row.id, target, etag=row.etag, at_ms=now_ms)


def _judge(tx: Transaction, spec: StreamSpec, judge: Filter, newcomer: Candidate, now_ms: int) -> Registration:
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
    kind = "ptk.accepted" if answer.status == "ACTIVE" else "ptk.rejected"
    tx.events.add(kind, newcomer.row.name, answer.as_json(), at_ms=now_ms)
    return answer


def _answer(spec: StreamSpec, judge: Filter, others: Sequence[Candidate], newcomer: Candidate) -> Registration:
    name = newcomer.row.name
    settled = settle_plan(spec, judge, fresh_loss(spec, judge), [*others, newcomer])
    plan = settled.plan
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
