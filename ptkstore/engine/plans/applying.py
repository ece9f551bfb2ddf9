"""Apply changes: streams that are made or use their windows otherwise, PTKs that are added, changed
and retired, all or none.

What is to be is planned once for each stream, on a snapshot and with no transaction open, and
written in one transaction if what it rests on is still so; otherwise it is planned again, a few
times (`deciding`), and then PLAN_CONTENDED. A PTK that has no place in the plan is a refusal of
everything (PLAN_INFEASIBLE), which names the PTK, why, the nearest target and what else would help;
one that waits for its profile is none. Only the promise of a new stream is in the ledger before: a
promise without metadata is no stream, and whoever asks for the same again takes it up.

Reasons: PLAN_INFEASIBLE, PLAN_CONTENDED, CHANGE_INVALID, STREAM_EXISTS, STREAM_UNKNOWN, PTK_EXISTS,
PTK_UNKNOWN, PTK_RETIRED, OVER_INVALID, OVER_UNSUPPORTED, those of a PTK's configuration and of its
fit to the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ptklib import registry
from ptklib.encoding.error_fields import about, inside
from ptklib.errors import InvalidInput, Refused
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.over import Over
from ptkstore.api.stream_spec import USES, StreamSpec
from ptkstore.api.views import AppliedView, Registration
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.answering import answers_of, within_memory
from ptkstore.engine.plans.approving import answered_once
from ptkstore.engine.plans.deciding import TRIES, Standing, standing
from ptkstore.engine.plans.dry_run import fitted
from ptkstore.engine.plans.planning import Candidate
from ptkstore.engine.plans.registrations import (
    active,
    altered,
    altered_candidate,
    fresh_row,
    require_over,
    retire,
    reusable,
    told,
    unwritten,
    write_change,
)
from ptkstore.engine.streams.changing import uses_changed, write_uses
from ptkstore.engine.streams.creating import (
    promise_streams,
    require_new_streams,
    streams_made,
    write_stream,
)
from ptkstore.engine.turns import contended, turn
from ptkstore.engine.within import Within, nothing
from ptkstore.metadata import rows
from ptkstore.metadata.checks import check_name, check_real, check_whole
from ptkstore.metadata.database.store import Transaction

__all__ = ["apply_changes", "apply_once", "streams_concerned"]


@dataclass(frozen=True)
class _Draft:
    """A stream as it would be: who stays as accepted, and who is added or changed, in the order
    that was asked for.
    """

    spec: StreamSpec
    others: tuple[Candidate, ...]
    newcomers: tuple[Candidate, ...]


@dataclass(frozen=True)
class _Snapshot:
    """All that was read, and what of it must still be so when the plan is written."""

    drafts: tuple[_Draft, ...]
    seen: tuple[Standing, ...]


def apply_once(parts: Parts, changes: Changes, request_id: str) -> AppliedView:
    """Apply under a request id: the same again gives the first answer, and changes nothing."""
    return answered_once(
        parts,
        request_id,
        "apply",
        changes.as_json(),
        lambda keep: apply_changes(parts, changes, keep),
        AppliedView.from_json,
    )


def streams_concerned(parts: Parts, changes: Changes) -> dict[str, str | None]:
    """The stream of every PTK that is named; None where there is no such PTK."""
    streams: dict[str, str | None] = {new.name: new.stream for new in changes.add}
    with parts.metadata.read() as tx:
        for name in (*changes.remove, *changes.retarget, *changes.reconfigure):
            known = tx.ptks.etag_of(name)
            streams[name] = None if known is None else tx.ptks.get(known[0]).stream
    return streams


def apply_changes(
    parts: Parts, changes: Changes, within: Within[AppliedView] = nothing
) -> AppliedView:
    """Carry all of it out, and do what ``within`` does in the same transaction."""
    _require_sound(changes)
    require_new_streams(parts, changes.streams)
    for name in changes.use:
        parts.specs.named(name)
    specs = {**parts.specs} | {spec.name: spec for spec in changes.streams}
    concerned = _concerned(parts, changes, specs)
    asked = _tried_out(parts, changes, concerned)
    streams = sorted({*concerned.values()})
    with ExitStack() as turns:
        for stream in streams:
            turns.enter_context(turn(parts.metadata, stream))
        for _ in range(TRIES):
            with parts.metadata.read() as tx:
                snapshot = _read(tx, asked, concerned, specs)
            answers = _planned(parts, snapshot)
            applied = AppliedView(
                streams=tuple(spec.name for spec in asked.streams),
                registrations=tuple(answers.values()),
                retired=asked.remove,
            )
            if _written(parts, asked, concerned, snapshot, applied, within):
                return applied
    raise contended(", ".join(streams), f"its PTKs changed {TRIES} times while this was planned")


def _require_sound(changes: Changes) -> None:
    """What can be said without the store: promises stay, and nobody is named twice."""
    if changes.looks_only:
        raise InvalidInput(
            "CHANGE_INVALID", "what a stream promises never changes: make another stream"
        )
    if not all(use in USES for use in changes.use.values()):
        raise InvalidInput("CHANGE_INVALID", f"use must be one of {', '.join(USES)}", field="use")
    named = [*(new.name for new in changes.add), *changes.remove]
    named += [*{**changes.retarget, **changes.reconfigure}]
    streams = [spec.name for spec in changes.streams]
    for names in (named, streams):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidInput("CHANGE_INVALID", f"{twice!r} is changed twice: once is enough")
    for new in changes.add:
        with about(ptk=new.name):
            with inside("name"):
                check_name(new.name, "a PTK's name")
            check_real(new.target, "target")
            check_whole(new.train_every, "train_every", at_least=1)
            Over.of(new.over)


def _concerned(parts: Parts, changes: Changes, specs: Mapping[str, StreamSpec]) -> dict[str, str]:
    """The stream of every PTK that is named: there is such a PTK, and such a stream."""
    known: dict[str, str] = {}
    for name, stream in streams_concerned(parts, changes).items():
        if stream is None:
            raise Refused("PTK_UNKNOWN", f"there is no PTK {name!r}", ptk=name, field="name")
        if stream not in specs:
            raise Refused(
                "STREAM_UNKNOWN",
                f"there is no stream {stream!r}: create it first",
                stream=stream,
                ptk=name,
                field="stream",
            )
        known[name] = stream
    return known


def _tried_out(parts: Parts, changes: Changes, concerned: Mapping[str, str]) -> Changes:
    """The same with configurations in the form in which they are kept; each fits its stream."""
    specs = {spec.name: spec for spec in changes.streams}

    def fit(name: str, kind: str, config: Mapping[str, object], over: str) -> Mapping[str, object]:
        spec = specs.get(concerned[name]) or parts.specs[concerned[name]]
        with about(ptk=name):
            made: Mapping[str, object] = parts.ask(fitted, spec, kind, config)
            require_over(kind, made, Over.of(over))
        return made

    with parts.metadata.read() as tx:
        there = {name: tx.ptks.named(name) for name in changes.reconfigure}
    return replace(
        changes,
        add=tuple(
            replace(
                new,
                config=fit(new.name, new.kind, new.config, new.over),
                over=Over.of(new.over).text,
            )
            for new in changes.add
        ),
        reconfigure={
            name: fit(name, there[name].kind, config, there[name].over)
            for name, config in changes.reconfigure.items()
        },
    )


def _read(
    tx: Transaction,
    changes: Changes,
    concerned: Mapping[str, str],
    specs: Mapping[str, StreamSpec],
) -> _Snapshot:
    newcomers: dict[str, Candidate] = {}
    for name in dict.fromkeys((*changes.retarget, *changes.reconfigure)):
        newcomers[name] = _changed(tx, name, changes)
    for place, new in enumerate(changes.add):
        newcomers[new.name] = Candidate.of(_added(tx, new, -1 - place))
    for name in changes.remove:
        tx.ptks.named(name)
    drafts = []
    for stream in sorted({*concerned.values()}):
        others = active(tx, stream) if _is_known(tx, stream) else []
        drafts.append(
            _Draft(
                specs[stream],
                tuple(other for other in others if other.row.name not in concerned),
                tuple(
                    newcomer for name, newcomer in newcomers.items() if concerned[name] == stream
                ),
            )
        )
    return _Snapshot(tuple(drafts), _seen(tx, concerned))


def _seen(tx: Transaction, concerned: Mapping[str, str]) -> tuple[Standing, ...]:
    return tuple(standing(tx, stream, name) for name, stream in concerned.items())


def _is_known(tx: Transaction, stream: str) -> bool:
    return any(row.name == stream for row in tx.streams.list())


def _added(tx: Transaction, new: AddedPtk, number: int) -> rows.PtkRow:
    wanted = _wanted(new, new.config)
    with about(ptk=new.name, field="name"):
        row = reusable(tx, wanted)
    return replace(row or wanted, id=number)


def _wanted(new: AddedPtk, config: Mapping[str, object]) -> rows.PtkRow:
    return unwritten(new.name, new.stream, new.kind, config, new.target, new.train_every, new.over)


def _changed(tx: Transaction, name: str, changes: Changes) -> Candidate:
    row = tx.ptks.named(name)
    wanted = altered(row, changes.reconfigure.get(name), changes.retarget.get(name))
    return altered_candidate(tx, row, wanted)


def _planned(parts: Parts, snapshot: _Snapshot) -> dict[str, Registration]:
    """The answers, by name; a refusal where any is none."""
    answers: dict[str, Registration] = {}
    for draft in snapshot.drafts:
        if not draft.newcomers:
            # Whoever stays has more room than before.
            continue
        privacy_filter = draft.spec.policy.filter()
        planned = parts.ask(answers_of, draft.spec, privacy_filter, draft.others, draft.newcomers)
        named = {newcomer.row.name: newcomer for newcomer in draft.newcomers}
        for told_so_far in planned:
            answer = within_memory(
                draft.spec, named[told_so_far.name], told_so_far, parts.workers.memory_bytes
            )
            if answer.status == "REJECTED":
                raise Refused(
                    "PLAN_INFEASIBLE",
                    f"PTK {answer.name!r} has no place on stream {draft.spec.name!r}, and nothing "
                    f"was changed: {answer.reason}",
                    ptk=answer.name,
                    stream=draft.spec.name,
                    why=answer.reason,
                    nearest_target=answer.nearest_target,
                    remedies=[remedy.as_json() for remedy in answer.remedies],
                )
            answers[answer.name] = answer
    return answers


def _written(
    parts: Parts,
    changes: Changes,
    concerned: Mapping[str, str],
    snapshot: _Snapshot,
    applied: AppliedView,
    within: Within[AppliedView],
) -> bool:
    """Write all of it in one transaction; False, and nothing, where something has changed."""
    kept = None
    if changes.streams:
        promise_streams(parts, changes.streams)
        kept = parts.head_guard.keep()
    answers = {answer.name: answer for answer in applied.registrations}
    candidates = {
        newcomer.row.name: newcomer for draft in snapshot.drafts for newcomer in draft.newcomers
    }
    now_ms = parts.public_ms()
    with parts.metadata.write() as tx:
        if _seen(tx, concerned) != snapshot.seen:
            return False
        if kept is not None:
            parts.head_guard.put(tx, kept)
        for spec in changes.streams:
            write_stream(parts, tx, spec)
        for name in changes.remove:
            retire(tx, name, now_ms)
        for name in dict.fromkeys((*changes.retarget, *changes.reconfigure)):
            write_change(tx, candidates[name].row, answers[name], now_ms)
        for new in changes.add:
            ptk = registry.make(new.kind, new.config)
            told(tx, fresh_row(tx, _wanted(new, ptk.as_json()), now_ms), answers[new.name], now_ms)
        changed = write_uses(parts, tx, changes.use)
        within(tx, applied)
    uses_changed(parts, changed)
    if changes.streams:
        streams_made(parts, changes.streams)
    return True
