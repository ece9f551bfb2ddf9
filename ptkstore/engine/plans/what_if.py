"""What if: the plan as it would be after some changes, beside the plan as it is. In memory: nothing
is written or charged.

PTKs can be added, removed and retargeted (also one that was REJECTED), the stream can use the
surplus of its windows or the minimum, and other promises (epsilon, delta, composition) or another
n_max can be looked at; a stream's promise itself never changes. PTKs that
have no profile yet cannot be planned: they are named, and left out. Trying new PTKs out and
planning happen with no transaction open, where the store has it done (`asking`).

Reasons: PTK_UNKNOWN, PTK_EXISTS, PTK_RETIRED, those of the policy, of the PTK's configuration and
of its fit to the stream.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from allocator.admission.settling import Current
from allocator.effort import Effort
from ptklib.encoding.error_fields import about
from ptklib.errors import Refused
from ptklib.ledger.policy import Policy
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.over import Over
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import LeftOutLine, PlanView, WhatIfView
from ptkstore.engine.goals.aims import aiming
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.dry_run import fitted, require_price
from ptkstore.engine.plans.planning import (
    WINDOW,
    Candidate,
    fresh_loss,
    has_closed_form,
    plan_view,
    settle_ranked,
    training_loss,
)
from ptkstore.engine.plans.registrations import active, candidate, unwritten
from ptkstore.engine.plans.remedies import plan_remedies
from ptkstore.engine.plans.surplus import Held, left_out_line, richer_plan, with_surplus
from ptkstore.engine.room.memory import least_training_bytes, require_room
from ptkstore.metadata import rows
from ptkstore.metadata.database.store import Transaction

__all__ = ["what_if"]

# Of the work, for each of the two plans: the same for both, so that they can be compared.
_EACH = 0.5


def what_if(parts: Parts, stream: str, changes: Changes) -> WhatIfView:
    """Both plans for a fresh window of the stream."""
    spec = parts.specs.current(stream)
    other = _spec(spec, changes)
    with parts.metadata.read() as tx:
        _require_known(tx, spec, changes)
    added = []
    for new in changes.add:
        with about(ptk=new.name):
            made = parts.ask(fitted, spec, new.kind, new.config)
            require_price(spec, new.kind, made, new.goal)
            added.append(replace(new, config=made))
    with parts.metadata.read() as tx:
        now = active(tx, stream)
        records, blocks = tx.blocks.dp_total(stream)
        then = _changed(tx, spec, now, replace(changes, add=tuple(added)))
        adopted = tx.plans.latest(stream, status="ADOPTED")
    rate = Fraction(max(0, records), blocks * spec.block_seconds) if blocks else Fraction(0)
    held = _held(spec, rate, parts.workers.memory_bytes)
    current = None if adopted is None else Current.of(adopted.body)
    view = parts.ask(_compared, spec, other, now, then, rate, held, current)
    _require_memory(parts, spec, then, view, {*changes.goals, *(new.name for new in added)})
    return view


def _require_memory(
    parts: Parts,
    spec: StreamSpec,
    then: list[Candidate],
    view: WhatIfView,
    changed: set[str],
) -> None:
    """Refuse what would be registered and never train."""
    samples = {line.ptk: line.samples for line in view.proposed.lines}
    for newcomer in then:
        name = newcomer.row.name
        if name in changed:
            with about(ptk=name, field="config"):
                needed = least_training_bytes(spec, newcomer.ptk, samples.get(name, 0))
                require_room(needed, parts.workers.memory_bytes, f"training {name}")


def _compared(
    spec: StreamSpec,
    other: StreamSpec,
    now: list[Candidate],
    then: list[Candidate],
    rate: Fraction,
    held: Held | None,
    current: Current | None,
) -> WhatIfView:
    """Both plans, of the stream as it is and as it would be, by one deadline. Public facts
    alone."""
    effort = WINDOW.effort()
    privacy_filter = spec.policy.filter()
    waiting = [
        ptk.row.name
        for ptk in then
        if ptk.row.target is not None
        and ptk.measured is None
        and not has_closed_form(spec, privacy_filter, ptk)
    ]
    then = [ptk for ptk in then if ptk.row.name not in waiting]
    return WhatIfView(
        current=_plan(spec, now, rate, held, current, effort.share(_EACH)),
        # Another promise counts in other amounts: the plan in force says nothing of it.
        proposed=_plan(
            other,
            then,
            rate,
            held,
            current if other.policy == spec.policy else None,
            effort.part(_EACH * effort.limit),
        ),
        unprofiled=tuple(waiting),
    )


def _require_known(tx: Transaction, spec: StreamSpec, changes: Changes) -> None:
    """Refuse changes of PTKs that there are not, and new ones under names that are taken."""
    known = {row.name: row for row in tx.ptks.list(spec.name)}
    for name in (*changes.remove, *changes.goals):
        if name not in known:
            raise Refused(
                "PTK_UNKNOWN", f"stream {spec.name!r} has no PTK {name!r}", ptk=name, field="name"
            )
        if known[name].status == "RETIRED":
            raise Refused(
                "PTK_RETIRED",
                f"PTK {name!r} is retired: add it under another name",
                ptk=name,
                field="name",
            )
    names = set[str]()
    for new in changes.add:
        if new.name in names or _taken(tx, new.name):
            raise Refused(
                "PTK_EXISTS",
                f"there is a PTK {new.name!r} already: retarget it",
                ptk=new.name,
                field="name",
            )
        names.add(new.name)


def _changed(
    tx: Transaction, spec: StreamSpec, now: list[Candidate], changes: Changes
) -> list[Candidate]:
    """The PTKs as they would be."""
    _require_known(tx, spec, changes)
    candidates = [ptk for ptk in now if ptk.row.name not in (*changes.remove, *changes.goals)]
    for name, goal in changes.goals.items():
        candidates.append(candidate(tx, aiming(tx.ptks.named(name), goal)))
    candidates.sort(key=lambda ptk: ptk.row.id)
    return candidates + [
        Candidate.of(_row(new, spec.name, -1 - place)) for place, new in enumerate(changes.add)
    ]


def _taken(tx: Transaction, name: str) -> bool:
    """True for the name of a PTK that was not rejected."""
    try:
        return tx.ptks.named(name).status != "REJECTED"
    except Refused:
        return False


def _row(new: AddedPtk, stream: str, number: int) -> rows.PtkRow:
    over = Over.of(new.over).text
    row = unwritten(new.name, stream, new.kind, dict(new.config), new.goal, over=over)
    return replace(row, id=number)


def _spec(spec: StreamSpec, changes: Changes) -> StreamSpec:
    policy = spec.policy
    if changes.epsilon is not None or changes.delta is not None or changes.composition is not None:
        policy = Policy(
            unit=policy.unit,
            epsilon=policy.epsilon if changes.epsilon is None else changes.epsilon,
            delta=policy.delta if changes.delta is None else changes.delta,
            composition=policy.composition if changes.composition is None else changes.composition,
        )
    return replace(
        spec,
        policy=policy,
        n_max=spec.n_max if changes.n_max is None else changes.n_max,
        use=changes.use.get(spec.name, spec.use),
    )


def _held(spec: StreamSpec, rate: Fraction, memory_bytes: int) -> Held | None:
    """What a fresh window holds when records come as they did; None where none have come."""
    records = int(rate * spec.window_seconds)
    blocks = spec.window_seconds // spec.block_seconds
    return Held(records, blocks, memory_bytes) if records else None


def _plan(
    spec: StreamSpec,
    candidates: list[Candidate],
    rate: Fraction,
    held: Held | None,
    current: Current | None,
    effort: Effort,
) -> PlanView:
    privacy_filter = spec.policy.filter()
    loss = training_loss(spec, privacy_filter, fresh_loss(spec, privacy_filter))
    settled, out = settle_ranked(
        spec, privacy_filter, loss, candidates, current=current, effort=effort
    )
    richer = (
        None if held is None else richer_plan(spec, privacy_filter, loss, settled, candidates, held)
    )
    window = int(rate * spec.window_seconds * (1 - Fraction(spec.profile_share))) if rate else None
    view = plan_view(
        spec,
        privacy_filter,
        -1,
        settled,
        candidates,
        available=window,
        records_per_second=rate or None,
    )
    view = with_surplus(view, spec.use, richer, window)
    told = settled.plan.explanation
    left_out = (left_out_line(spec, privacy_filter, loss, candidate) for candidate in out)
    remedies = plan_remedies(spec, privacy_filter, settled, told, candidates)
    return replace(
        view,
        remedies=remedies,
        changes=tuple(remedy.text for remedy in remedies),
        left_out=tuple(LeftOutLine(line.id, line.reason, line.text) for line in left_out),
    )
