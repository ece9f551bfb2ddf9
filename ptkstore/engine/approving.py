"""Carry out the changes of a what-if, all of them or none.

`fingerprint` names everything that the answer of a what-if depends on: the PTKs of the stream as they are, their profiles,
and the plan in force. Approving under another fingerprint is PLAN_STALE; changes that fit no plan are PLAN_INFEASIBLE.
Nothing here reads data. Reasons: those, PTK_EXISTS, PTK_UNKNOWN, and those of a PTK's configuration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ptklib import registry
from ptklib.errors import Refused
from ptklib.ledger.canonical import canonical
from ptkstore.engine.home import Home
from ptkstore.engine.planning import preview
from ptkstore.engine.registrations import active, candidate, check_fit, has_closed_form
from ptkstore.engine.what_if import Changes
from ptkstore.metadata.store import Transaction

__all__ = ["approve", "fingerprint", "require_fresh"]


def fingerprint(tx: Transaction, stream: str) -> str:
    """A digest of what a plan of the stream depends on."""
    plan = tx.plans.latest(stream, status="ADOPTED")
    rows = tx.ptks.list(stream)
    profiles = [tx.profiles.latest(row.id, row.config_version, row.target) for row in rows]
    facts = [
        [[row.id, row.etag] for row in rows],
        [None if one is None else one.id for one in profiles],
        None if plan is None else plan.id,
    ]
    return hashlib.sha256(canonical(facts)).hexdigest()


def require_fresh(tx: Transaction, stream: str, expected: str) -> None:
    """Refuse a fingerprint that is not the one of now."""
    if fingerprint(tx, stream) != expected:
        raise Refused("PLAN_STALE", "something has changed since this was planned: ask again", stream=stream)


def approve(
    home: Home,
    stream: str,
    changes: Changes,
    expected: str,
    within: Callable[[Transaction], object] = lambda _tx: None,
) -> None:
    """Retire, retarget and register, in one transaction, and do what ``within`` does in it."""
    spec, judge, now_ms = home.specs[stream], home.judge(stream), home.now_ms()
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
            changed.append(tx.ptks.create(new.name, stream, new.kind, ptk.as_json(), new.target, 1, at_ms=now_ms))
        ids = {row.id for row in changed}
        others = [one for one in active(tx, stream) if one.row.id not in ids]
        newcomers = [candidate(tx, row) for row in changed]
        ready = [one for one in newcomers if one.measured is not None or has_closed_form(spec, judge, one)]
        if preview(spec, judge, [*others, *ready]).plan.total_samples is None:
            raise Refused("PLAN_INFEASIBLE", "no plan exists after these changes: what-if says why", stream=stream)
        for one in newcomers:
            status, reason = (
                ("ACTIVE", "") if one in ready else ("WAITING", "to be profiled when the next window closes")
            )
            tx.ptks.set_status(one.row.id, status, reason=reason, at_ms=now_ms)
            kind = "ptk.accepted" if status == "ACTIVE" else "ptk.waiting"
            tx.events.add(kind, one.row.name, {"name": one.row.name, "status": status}, at_ms=now_ms)
        within(tx)
