"""Carry out the changes of a what-if, all of them or none.

`fingerprint` names everything that the answer of a what-if depends on: the PTKs of the stream as they are, their profiles,
and the plan in force. A token is the question together with the fingerprint that it was answered under; it grants nothing, for
whoever approves needs the right to. Approving under another fingerprint is PLAN_STALE; changes that fit no plan are
PLAN_INFEASIBLE. Nothing here reads data. Reasons: those, PLAN_TOKEN_INVALID, PTK_EXISTS, PTK_UNKNOWN, and those of a PTK's
configuration and of request ids.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ptklib import registry
from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.canonical import canonical
from ptkstore.engine.home import Home
from ptkstore.engine.planning import has_closed_form
from ptkstore.engine.registrations import candidate, check_fit, fresh_row
from ptkstore.engine.what_if import AddedPtk, Changes, what_if
from ptkstore.metadata.store import Transaction
from ptkstore.views import PlanView, WhatIfView

__all__ = ["approve", "approve_once", "ask", "fingerprint", "require_fresh"]

Within = Callable[[Transaction, PlanView], object]
_CHECK = 16
_PLANNED = ("OPTIMAL", "FEASIBLE")
# Whoever can open the directory.
_LOCAL = "local"


def ask(home: Home, stream: str, changes: Changes) -> WhatIfView:
    """The answer of a what-if, with a token where its changes can be approved: PTKs change, a promise does not."""
    looked_only = any(one is not None for one in (changes.epsilon, changes.delta, changes.composition, changes.n_max))
    if looked_only or not (changes.add or changes.remove or changes.retarget):
        return what_if(home, stream, changes)
    # Before the answer is worked out: what changes meanwhile makes it stale.
    with home.metadata.read() as tx:
        seen = fingerprint(tx, stream)
    found = what_if(home, stream, changes)
    planned = found.proposed.status in _PLANNED
    return replace(found, token=_token(stream, seen, changes)) if planned else found


def fingerprint(tx: Transaction, stream: str) -> str:
    """A digest of what a plan of the stream depends on."""
    plan = tx.plans.latest(stream, status="ADOPTED")
    rows = tx.ptks.list(stream)
    profiles = tx.profiles.newest_of_stream(stream)
    facts = [
        [[row.id, row.etag] for row in rows],
        [profiles.get((row.id, row.config_version, float(row.target))) for row in rows],
        None if plan is None else plan.id,
    ]
    return hashlib.sha256(canonical(facts)).hexdigest()


def require_fresh(tx: Transaction, stream: str, expected: str) -> None:
    """Refuse a fingerprint that is not the one of now."""
    if fingerprint(tx, stream) != expected:
        raise Refused("PLAN_STALE", "something has changed since this was planned: ask again", stream=stream)


def approve_once(home: Home, stream: str, token: str, request_id: str) -> PlanView:
    """Approve under a request id: the same again gives the first answer, and changes nothing."""
    digest = hashlib.sha256(canonical([stream, token])).hexdigest()
    key, at_ms = (_LOCAL, request_id, "approve", digest), home.now_ms()
    with home.metadata.write() as tx:
        begun = tx.requests.begin(*key, at_ms=at_ms)
    if begun.answer is not None:
        return PlanView.from_json(json.loads(begun.answer))
    try:
        return approve(
            home,
            stream,
            token,
            lambda tx, plan: tx.requests.keep(*key, json.dumps(plan.as_json()).encode(), at_ms=at_ms),
        )
    except (InvalidInput, Refused):
        with home.metadata.write() as tx:
            # Another thread may have been faster with the same request.
            answer = tx.requests.answer(_LOCAL, request_id)
            tx.requests.forget(_LOCAL, request_id)
        if answer is None:
            raise
        return PlanView.from_json(json.loads(answer))


def approve(home: Home, stream: str, token: str, within: Within = lambda _tx, _plan: None) -> PlanView:
    """Carry out what the token asks for, and do what ``within`` does in the same transaction. Returns the plan to be."""
    seen, changes = _question(stream, token)
    with home.metadata.read() as tx:
        require_fresh(tx, stream, seen)
    # What is planned here is what will be: nothing is carried out unless all of it is still as it was seen.
    planned = what_if(home, stream, changes).proposed
    if planned.status not in _PLANNED:
        raise Refused("PLAN_INFEASIBLE", "no plan exists after these changes: what-if says why", stream=stream)
    _carry_out(home, stream, changes, seen, lambda tx: within(tx, planned))
    return planned


def _carry_out(
    home: Home, stream: str, changes: Changes, expected: str, within: Callable[[Transaction], object]
) -> None:
    """Retire, retarget and register, in one transaction: the plan for it is in hand, and what it rests on is as it was."""
    spec, judge, now_ms = home.specs[stream], home.judge(stream), home.public_ms()
    made = [(new, registry.make(new.kind, new.config)) for new in changes.add]
    for _, ptk in made:
        check_fit(spec, ptk)
    with home.metadata.write() as tx:
        require_fresh(tx, stream, expected)
        for name in changes.remove:
            tx.ptks.set_status(tx.ptks.named(name).id, "RETIRED", reason="deregistered", at_ms=now_ms)
            tx.events.add("ptk.retired", name, {"ptk": name}, at_ms=now_ms)
        changed = []
        for name, target in changes.retarget.items():
            row = tx.ptks.named(name)
            changed.append(tx.ptks.update_target(row.id, target, etag=row.etag, at_ms=now_ms))
        for new, ptk in made:
            changed.append(fresh_row(tx, new.name, stream, new.kind, ptk.as_json(), new.target, 1, now_ms))
        newcomers = [candidate(tx, row) for row in changed]
        ready = [one for one in newcomers if one.measured is not None or has_closed_form(spec, judge, one)]
        for one in newcomers:
            status, reason = (
                ("ACTIVE", "") if one in ready else ("WAITING", "to be profiled when the next window closes")
            )
            tx.ptks.set_status(one.row.id, status, reason=reason, at_ms=now_ms)
            kind = "ptk.accepted" if status == "ACTIVE" else "ptk.waiting"
            tx.events.add(kind, one.row.name, {"name": one.row.name, "status": status}, at_ms=now_ms)
        within(tx)


def _token(stream: str, seen: str, changes: Changes) -> str:
    question = {
        "add": [[one.name, one.kind, dict(one.config), one.target] for one in changes.add],
        "remove": list(changes.remove),
        "retarget": dict(changes.retarget),
    }
    body = json.dumps([seen, question], sort_keys=True).encode()
    return base64.urlsafe_b64encode(_check(stream, body) + body).decode()


def _question(stream: str, token: str) -> tuple[str, Changes]:
    """The fingerprint and the changes of a token. Reason: PLAN_TOKEN_INVALID."""
    try:
        data = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        if _check(stream, data[_CHECK:]) != data[:_CHECK]:
            raise ValueError
        seen, asked = json.loads(data[_CHECK:])
        return str(seen), _changes(asked)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidInput("PLAN_TOKEN_INVALID", "token must come from a what-if about this stream") from None


def _changes(asked: dict[str, Any]) -> Changes:
    added = (
        AddedPtk(name=str(name), kind=str(kind), config=dict(config), target=float(target))
        for name, kind, config, target in asked["add"]
    )
    return Changes(
        add=tuple(added),
        remove=tuple(str(name) for name in asked["remove"]),
        retarget={str(name): float(target) for name, target in asked["retarget"].items()},
    )


def _check(stream: str, body: bytes) -> bytes:
    return hashlib.sha256(b"what-if\0" + stream.encode() + b"\0" + body).digest()[:_CHECK]
