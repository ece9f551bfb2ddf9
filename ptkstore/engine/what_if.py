"""What if: the plan as it would be after some changes, beside the plan as it is. In memory: nothing is written or charged.

PTKs can be added, removed and retargeted (also one that was REJECTED), and other promises (epsilon, delta, composition) or
another n_max looked at; a stream's promise itself never changes. PTKs that have no profile yet cannot be planned: they are
named, and left out.

Reasons: PTK_UNKNOWN, PTK_EXISTS, PTK_RETIRED, those of the policy, of the PTK's configuration and of its fit to the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from allocator.settling import Current
from ptklib import registry
from ptklib.errors import Refused
from ptklib.ledger.policy import Policy
from ptklib.privacy.amounts import Number
from ptkstore.engine.home import Home
from ptkstore.engine.planning import Candidate, fresh_loss, has_closed_form, plan_view, settle_plan
from ptkstore.engine.registrations import active, candidate, check_fit, unwritten
from ptkstore.metadata import rows
from ptkstore.metadata.store import Transaction
from ptkstore.streams import StreamSpec
from ptkstore.views import PlanView, WhatIfView

__all__ = ["AddedPtk", "Changes", "what_if"]


@dataclass(frozen=True, kw_only=True)
class AddedPtk:
    """A PTK that is not registered yet."""

    name: str
    kind: str
    config: Mapping[str, Any]
    target: float


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What to change; what is left out stays as it is."""

    add: tuple[AddedPtk, ...] = ()
    remove: tuple[str, ...] = ()
    retarget: Mapping[str, float] = field(default_factory=dict)
    epsilon: Number | None = None
    delta: Number | None = None
    composition: str | None = None
    n_max: int | None = None


def what_if(home: Home, stream: str, changes: Changes) -> WhatIfView:
    """Both plans for a fresh window of the stream."""
    spec = home.specs[stream]
    with home.metadata.read() as tx:
        now = active(tx, stream)
        records, blocks = tx.blocks.dp_total(stream)
        then, waiting = _changed(tx, spec, now, changes)
        adopted = tx.plans.latest(stream, status="ADOPTED")
    rate = Fraction(max(0, records), blocks * spec.block_seconds) if blocks else Fraction(0)
    current = None if adopted is None else Current.of(adopted.body)
    other = _spec(spec, changes)
    return WhatIfView(
        current=_plan(spec, now, rate, current),
        # Another promise counts in other amounts: the plan in force says nothing of it.
        proposed=_plan(other, then, rate, current if other.policy == spec.policy else None),
        unprofiled=tuple(waiting),
    )


def _changed(
    tx: Transaction, spec: StreamSpec, now: list[Candidate], changes: Changes
) -> tuple[list[Candidate], list[str]]:
    """The PTKs as they would be, and those of them that have no profile yet."""
    known = {row.name: row for row in tx.ptks.list(spec.name)}
    for name in (*changes.remove, *changes.retarget):
        if name not in known:
            raise Refused("PTK_UNKNOWN", f"stream {spec.name!r} has no PTK {name!r}", ptk=name)
        if known[name].status == "RETIRED":
            raise Refused("PTK_RETIRED", f"PTK {name!r} is retired: add it under another name", ptk=name)
    found = [one for one in now if one.row.name not in (*changes.remove, *changes.retarget)]
    for name, target in changes.retarget.items():
        found.append(candidate(tx, replace(known[name], target=float(target))))
    found.sort(key=lambda one: one.row.id)
    names = set[str]()
    for place, new in enumerate(changes.add):
        if new.name in names or _taken(tx, new.name):
            raise Refused("PTK_EXISTS", f"there is a PTK {new.name!r} already: retarget it", ptk=new.name)
        names.add(new.name)
        ptk = registry.make(new.kind, new.config)
        check_fit(spec, ptk)
        found.append(Candidate(_row(new, spec.name, -1 - place), ptk))
    judge = spec.policy.filter()
    waiting = [one.row.name for one in found if one.measured is None and not has_closed_form(spec, judge, one)]
    return [one for one in found if one.row.name not in waiting], waiting


def _taken(tx: Transaction, name: str) -> bool:
    """True for the name of a PTK that was not rejected."""
    try:
        return tx.ptks.named(name).status != "REJECTED"
    except Refused:
        return False


def _row(new: AddedPtk, stream: str, number: int) -> rows.Ptk:
    return replace(unwritten(new.name, stream, new.kind, dict(new.config), new.target), id=number)


def _spec(spec: StreamSpec, changes: Changes) -> StreamSpec:
    policy = spec.policy
    if changes.epsilon is not None or changes.delta is not None or changes.composition is not None:
        policy = Policy(
            unit=policy.unit,
            epsilon=policy.epsilon if changes.epsilon is None else changes.epsilon,
            delta=policy.delta if changes.delta is None else changes.delta,
            composition=policy.composition if changes.composition is None else changes.composition,
        )
    return replace(spec, policy=policy, n_max=spec.n_max if changes.n_max is None else changes.n_max)


def _plan(spec: StreamSpec, candidates: list[Candidate], rate: Fraction, current: Current | None) -> PlanView:
    judge = spec.policy.filter()
    settled = settle_plan(spec, judge, fresh_loss(spec, judge), candidates, current=current)
    window = int(rate * spec.window_seconds * (1 - Fraction(spec.profile_share))) if rate else None
    return plan_view(spec, judge, -1, settled, candidates, available=window, records_per_second=rate or None)
