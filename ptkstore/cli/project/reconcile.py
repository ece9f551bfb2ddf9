"""Make a store what a project declares, all of it or nothing. Doing it again changes nothing.

What differs from the store is one `Changes`, which the store plans once. Of a stream that there is
only ``use`` changes, where the file says it; neither do the stream, the kind and the rhythm of a PTK.
Where something else differs, or a PTK has no place in the plan, it is REJECTED, and whatever else was
to be done is SKIPPED. What is not declared is left alone and named.

Reason: STREAM_UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ptklib.errors import InvalidInput, Refused
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.goal import Goal
from ptkstore.api.views import PtkView, Registration, View
from ptkstore.api.views.remedies import Remedy, remedies_of
from ptkstore.cli.project.declaration import at_line

if TYPE_CHECKING:
    from ptkstore.api.store import Store
    from ptkstore.api.stream_spec import StreamSpec
    from ptkstore.cli.project.declaration import DeclaredPtk, Project

__all__ = ["Reconciled", "reconcile", "undeclared"]


@dataclass(frozen=True)
class Reconciled(View):
    """What became of one declaration.

    ``status``: CREATED, REGISTERED, UPDATED, UNCHANGED, REJECTED or SKIPPED.
    """

    what: str
    name: str
    status: str
    reason: str = ""
    nearest_target: float | None = None
    changes: tuple[str, ...] = ()
    planned_epsilon: str | None = None
    planned_samples: int | None = None
    refining: bool = False
    remedies: tuple[Remedy, ...] = ()


def reconcile(store: Store, project: Project) -> list[Reconciled]:
    """Create, register and update at once; what became of it, in the order of the file."""
    there = {stream.name: stream for stream in store.streams()}
    known = {*there, *(stream.name for stream in project.streams)}
    for number, ptk in enumerate(project.ptks):
        if ptk.stream not in known:
            place = ("ptks", number, "stream")
            raise InvalidInput(
                "STREAM_UNKNOWN",
                f"{project.document.where(place)}: there is no stream {ptk.stream!r:.60} to train {ptk.name} on",
                line=project.document.line(place),
                stream=ptk.stream,
            )
    registered = {ptk.name: ptk for ptk in store.ptks()}
    streams = [
        _stream(stream, there.get(stream.name), project.says_use(place))
        for place, stream in enumerate(project.streams)
    ]
    refused = {stream.name for stream in streams if stream.status == "REJECTED"}
    ptks = [
        Reconciled("ptk", ptk.name, "SKIPPED", f"its stream {ptk.stream} is not as declared")
        if ptk.stream in refused
        else _ptk(ptk, registered.get(ptk.name))
        for ptk in project.ptks
    ]
    outcomes = [*streams, *ptks]
    stuck = [outcome.name for outcome in outcomes if outcome.status == "REJECTED"]
    changes = _changes(project, outcomes, registered)
    if stuck:
        return _skipped(outcomes, f"nothing was changed: {stuck[0]} is not as declared")
    if not (changes.streams or changes.use or changes.of_ptks):
        return outcomes
    try:
        applied = store.apply(changes)
    except Refused as error:
        if error.reason != "PLAN_INFEASIBLE":
            raise
        return _refused(outcomes, error)
    except InvalidInput as error:
        names = [ptk.name for ptk in project.ptks]
        if error.details.get("ptk") not in names:
            raise
        number = names.index(str(error.details["ptk"]))
        raise at_line(project.document, ("ptks", number), error) from None
    answers = {answer.name: answer for answer in applied.registrations}
    return [
        _told(outcome, answers[outcome.name])
        if outcome.what == "ptk" and outcome.name in answers
        else outcome
        for outcome in outcomes
    ]


def undeclared(store: Store, project: Project) -> list[str]:
    """PTKs that train although the project does not know them."""
    declared = {ptk.name for ptk in project.ptks}
    return [
        ptk.name
        for ptk in store.ptks()
        if ptk.name not in declared and ptk.status in ("ACTIVE", "FAILED")
    ]


def _stream(wanted: StreamSpec, there: StreamSpec | None, says_use: bool) -> Reconciled:
    if there is None:
        return Reconciled("stream", wanted.name, "CREATED")
    old, new = there.as_json(), wanted.as_json()
    differs = sorted(name for name in new if old.get(name) != new[name] and name != "use")
    if not differs:
        # Where the file says nothing of it, the stream goes on as it does.
        same = not says_use or there.use == wanted.use
        return Reconciled("stream", wanted.name, "UNCHANGED" if same else "UPDATED")
    return Reconciled(
        "stream",
        wanted.name,
        "REJECTED",
        f"a stream never changes, and {', '.join(differs)} differs from the one in the store: declare another name",
    )


def _ptk(wanted: DeclaredPtk, there: PtkView | None) -> Reconciled:
    """What is to become of a PTK."""
    if there is not None:
        fixed = [
            field
            for field in ("stream", "kind", "train_every", "over")
            if getattr(there, field) != getattr(wanted, field)
        ]
        if fixed or there.status == "RETIRED":
            why = f"{' and '.join(fixed)} of a PTK never change" if fixed else "it is retired"
            return Reconciled(
                "ptk", wanted.name, "REJECTED", f"{why}: declare it under another name"
            )
    if there is None or there.status == "REJECTED":
        return Reconciled("ptk", wanted.name, "REGISTERED")
    same = there.config == wanted.config and _goal(there) == _goal(wanted)
    return Reconciled("ptk", wanted.name, "UNCHANGED" if same else "UPDATED")


def _changes(
    project: Project, outcomes: Sequence[Reconciled], registered: Mapping[str, PtkView]
) -> Changes:
    """All that is to be done, as one value."""
    status = {(outcome.what, outcome.name): outcome.status for outcome in outcomes}
    new = [ptk for ptk in project.ptks if status["ptk", ptk.name] == "REGISTERED"]
    updated = [ptk for ptk in project.ptks if status["ptk", ptk.name] == "UPDATED"]
    goals = {ptk.name: _goal(ptk) for ptk in updated if _goal(ptk) != _goal(registered[ptk.name])}
    return Changes(
        streams=tuple(
            stream for stream in project.streams if status["stream", stream.name] == "CREATED"
        ),
        add=tuple(
            AddedPtk(
                name=declared_ptk.name,
                stream=declared_ptk.stream,
                kind=declared_ptk.kind,
                config=declared_ptk.config,
                target=declared_ptk.target,
                epsilon=declared_ptk.epsilon,
                train_every=declared_ptk.train_every,
                over=declared_ptk.over,
            )
            for declared_ptk in new
        ),
        retarget={name: goal.target for name, goal in goals.items() if goal.target is not None},
        best_effort={
            name: goal.epsilon for name, goal in goals.items() if goal.epsilon is not None
        },
        use={
            stream.name: stream.use
            for stream in project.streams
            if status["stream", stream.name] == "UPDATED"
        },
        reconfigure={
            declared_ptk.name: declared_ptk.config
            for declared_ptk in updated
            if declared_ptk.config != registered[declared_ptk.name].config
        },
    )


def _goal(ptk: DeclaredPtk | PtkView) -> Goal:
    return Goal(ptk.target, ptk.epsilon)


def _refused(outcomes: Sequence[Reconciled], error: Refused) -> list[Reconciled]:
    """Nothing was changed: who has no place, why, and what would help."""
    details = error.details
    name, nearest = str(details["ptk"]), details.get("nearest_target")
    rejected = Reconciled(
        "ptk",
        name,
        "REJECTED",
        str(details.get("why", error.message)),
        nearest if isinstance(nearest, float) else None,
        tuple(remedy.text for remedy in remedies_of(error)),
        remedies=remedies_of(error),
    )
    others = [
        rejected if (outcome.what, outcome.name) == ("ptk", name) else outcome
        for outcome in outcomes
    ]
    return _skipped(others, f"nothing was changed: {name} has no place in the plan")


def _skipped(outcomes: Sequence[Reconciled], why: str) -> list[Reconciled]:
    """With whatever was to be done left undone."""
    to_do = ("CREATED", "REGISTERED", "UPDATED")
    return [
        Reconciled(outcome.what, outcome.name, "SKIPPED", why)
        if outcome.status in to_do
        else outcome
        for outcome in outcomes
    ]


def _told(outcome: Reconciled, answer: Registration) -> Reconciled:
    return replace(
        outcome,
        reason=answer.reason,
        planned_epsilon=answer.planned_epsilon,
        planned_samples=answer.planned_samples,
    )
