"""Carry out the changes of a what-if, all of them or none.

`fingerprint` names everything that the answer of a what-if depends on: the PTKs of the stream as
they are, their profiles, the plan in force, and what the stream uses of its windows. A token is the question together with the
fingerprint that it was answered under; it grants nothing, for whoever approves needs the right to.
Approving under another fingerprint is PLAN_STALE; changes that fit no plan are PLAN_INFEASIBLE.
Nothing here reads data. Reasons: those, PLAN_TOKEN_INVALID, PTK_EXISTS, PTK_UNKNOWN, and those of a
PTK's configuration and of request ids.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ptklib import registry
from ptklib.encoding.canonical import canonical
from ptklib.errors import InvalidInput, Refused
from ptkstore.api.changes import Changes
from ptkstore.api.over import Over
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import PlanView, View, WhatIfView
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.registrations import fresh_row, require_over, unwritten
from ptkstore.engine.plans.what_if import what_if
from ptkstore.engine.streams.changing import uses_changed, write_uses
from ptkstore.engine.within import Within, nothing
from ptkstore.metadata.database.store import Transaction

__all__ = ["answered_once", "approve", "approve_once", "ask", "fingerprint", "require_fresh"]

Answer = TypeVar("Answer", bound=View)
_CHECK = 16
_PLANNED = ("OPTIMAL", "FEASIBLE")
# Whoever can open the directory.
_LOCAL = "local"


def ask(parts: Parts, stream: str, changes: Changes) -> WhatIfView:
    """The answer of a what-if, with a token where its changes can be approved:

    PTKs change, a promise does not.
    """
    parts.specs.named(stream)
    if changes.looks_only or not (changes.of_ptks or changes.use):
        return what_if(parts, stream, changes)
    # Before the answer is worked out: what changes meanwhile makes it stale.
    with parts.metadata.read() as tx:
        seen = fingerprint(tx, stream)
    view = what_if(parts, stream, changes)
    planned = view.proposed.status in _PLANNED
    return replace(view, token=_token(stream, seen, changes)) if planned else view


def fingerprint(tx: Transaction, stream: str) -> str:
    """A digest of what a plan of the stream depends on."""
    plan = tx.plans.latest(stream, status="ADOPTED")
    rows = tx.ptks.list(stream)
    profiles = tx.profiles.newest_of_stream(stream)
    facts = [
        [[row.id, row.etag] for row in rows],
        [profiles.get((row.id, row.config_version, float(row.target))) for row in rows],
        None if plan is None else plan.id,
        StreamSpec.from_stored(tx.streams.get(stream).spec).use,
    ]
    return hashlib.sha256(canonical(facts)).hexdigest()


def require_fresh(tx: Transaction, stream: str, expected: str) -> None:
    """Refuse a fingerprint that is not the one of now."""
    if fingerprint(tx, stream) != expected:
        raise Refused(
            "PLAN_STALE", "something has changed since this was planned: ask again", stream=stream
        )


def approve_once(parts: Parts, stream: str, token: str, request_id: str) -> PlanView:
    """Approve under a request id: the same again gives the first answer, and changes nothing."""
    parts.specs.named(stream)
    return answered_once(
        parts,
        request_id,
        "approve",
        [stream, token],
        lambda keep: approve(parts, stream, token, keep),
        PlanView.from_json,
    )


def answered_once(
    parts: Parts,
    request_id: str,
    method: str,
    asked: object,
    do: Callable[[Within[Answer]], Answer],
    read: Callable[[dict[str, Any]], Answer],
) -> Answer:
    """What ``do`` gives under a request id of whoever opened the directory; the same again gives
    the first answer.

    ``do`` gets what keeps the answer, to be called in the transaction of the change; ``read``
    reads an answer back.
    """
    digest = hashlib.sha256(canonical(asked)).hexdigest()
    key, at_ms = (_LOCAL, request_id, method, digest), parts.now_ms()
    with parts.metadata.write() as tx:
        begun = tx.requests.begin(*key, at_ms=at_ms)
    if begun.answer is not None:
        return read(json.loads(begun.answer))

    def keep(tx: Transaction, answer: Answer) -> None:
        tx.requests.keep(*key, json.dumps(answer.as_json()).encode(), at_ms=at_ms)

    try:
        return do(keep)
    except (InvalidInput, Refused):
        with parts.metadata.write() as tx:
            # Another thread may have been faster with the same request.
            answer = tx.requests.answer(_LOCAL, request_id)
            tx.requests.forget(_LOCAL, request_id)
        if answer is None:
            raise
        return read(json.loads(answer))


def approve(parts: Parts, stream: str, token: str, within: Within[PlanView] = nothing) -> PlanView:
    """Carry out what the token asks for, and do what ``within`` does in the same transaction.

    Returns the plan to be.
    """
    parts.specs.named(stream)
    seen, changes = _question(stream, token)
    with parts.metadata.read() as tx:
        require_fresh(tx, stream, seen)
    # What is planned here is what will be: nothing is carried out unless all of it is still as it
    # was seen.
    view = what_if(parts, stream, changes)
    planned = view.proposed
    if planned.status not in _PLANNED:
        raise Refused(
            "PLAN_INFEASIBLE",
            "no plan exists after these changes: what-if says why",
            stream=stream,
            remedies=[remedy.as_json() for remedy in planned.remedies],
        )
    _carry_out(parts, stream, changes, seen, view.unprofiled, lambda tx: within(tx, planned))
    return planned


def _carry_out(
    parts: Parts,
    stream: str,
    changes: Changes,
    expected: str,
    unprofiled: Sequence[str],
    within: Callable[[Transaction], object],
) -> None:
    """Retire, retarget and register, in one transaction: the plan for it is in hand, and what it
    rests on is as it was.

    What is new was tried out when it was planned.
    """
    now_ms = parts.public_ms()
    made = [(new, registry.make(new.kind, new.config)) for new in changes.add]
    for new, ptk in made:
        require_over(new.kind, ptk.as_json(), Over.of(new.over))
    with parts.metadata.write() as tx:
        require_fresh(tx, stream, expected)
        for name in changes.remove:
            tx.ptks.set_status(
                tx.ptks.named(name).id, "RETIRED", reason="deregistered", at_ms=now_ms
            )
            tx.events.add("ptk.retired", name, {"ptk": name}, at_ms=now_ms)
        changed = []
        for name, target in changes.retarget.items():
            row = tx.ptks.named(name)
            changed.append(tx.ptks.update_target(row.id, target, etag=row.etag, at_ms=now_ms))
        for new, ptk in made:
            over = Over.of(new.over).text
            wanted = unwritten(new.name, stream, new.kind, ptk.as_json(), new.target, over=over)
            changed.append(fresh_row(tx, wanted, now_ms))
        for row in changed:
            waits = row.name in unprofiled
            status, reason = (
                ("WAITING", "to be profiled when the next window closes")
                if waits
                else ("ACTIVE", "")
            )
            tx.ptks.set_status(row.id, status, reason=reason, at_ms=now_ms)
            kind = "ptk.accepted" if status == "ACTIVE" else "ptk.waiting"
            tx.events.add(kind, row.name, {"name": row.name, "status": status}, at_ms=now_ms)
        uses = write_uses(
            parts, tx, {name: use for name, use in changes.use.items() if name == stream}
        )
        within(tx)
    uses_changed(parts, uses)


def _token(stream: str, seen: str, changes: Changes) -> str:
    body = json.dumps([seen, changes.as_json()], sort_keys=True).encode()
    return base64.urlsafe_b64encode(_check(stream, body) + body).decode()


def _question(stream: str, token: str) -> tuple[str, Changes]:
    """The fingerprint and the changes of a token. Reason: PLAN_TOKEN_INVALID."""
    try:
        data = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        if _check(stream, data[_CHECK:]) != data[:_CHECK]:
            raise ValueError
        seen, asked = json.loads(data[_CHECK:])
        return str(seen), Changes.from_json(asked)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidInput(
            "PLAN_TOKEN_INVALID", "token must come from a what-if about this stream"
        ) from None


def _check(stream: str, body: bytes) -> bytes:
    return hashlib.sha256(b"what-if\0" + stream.encode() + b"\0" + body).digest()[:_CHECK]
