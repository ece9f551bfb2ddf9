"""Make a store what a project declares. Doing it again changes nothing.

Streams never change once created, so one that differs is rejected, and its PTKs are left as they are. A PTK follows its
declaration as far as the store admits it; what is not declared is left alone and named.

Reason: STREAM_UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptklib.errors import InvalidInput
from ptkstore.views import PtkView, Registration, View

if TYPE_CHECKING:
    from ptkstore.cli.declaration import DeclaredPtk, Project
    from ptkstore.client import Store
    from ptkstore.streams.spec import StreamSpec

__all__ = ["Outcome", "reconcile", "undeclared"]


@dataclass(frozen=True)
class Outcome(View):
    """What became of one declaration. ``status``: CREATED, REGISTERED, UPDATED, UNCHANGED, REJECTED or SKIPPED."""

    what: str
    name: str
    status: str
    reason: str = ""
    nearest_target: float | None = None
    changes: tuple[str, ...] = ()
    planned_epsilon: str | None = None
    planned_samples: int | None = None
    refining: bool = False


def reconcile(store: Store, project: Project) -> list[Outcome]:
    """Create, register and update, in the order of the file."""
    there = {one.name: one for one in store.streams()}
    known = {*there, *(one.name for one in project.streams)}
    for number, ptk in enumerate(project.ptks):
        if ptk.stream not in known:
            place = ("ptks", number, "stream")
            raise InvalidInput(
                "STREAM_UNKNOWN",
                f"{project.document.where(place)}: there is no stream {ptk.stream!r:.60} to train {ptk.name} on",
                line=project.document.line(place),
                stream=ptk.stream,
            )
    streams = [_stream(store, one, there.get(one.name)) for one in project.streams]
    refused = {one.name for one in streams if one.status == "REJECTED"}
    registered = {one.name: one for one in store.ptks()}
    ptks = [
        Outcome("ptk", one.name, "SKIPPED", f"its stream {one.stream} is not as declared")
        if one.stream in refused
        else _ptk(store, one, registered.get(one.name))
        for one in project.ptks
    ]
    return [*streams, *ptks]


def undeclared(store: Store, project: Project) -> list[str]:
    """PTKs that train although the project does not know them."""
    declared = {one.name for one in project.ptks}
    return [one.name for one in store.ptks() if one.name not in declared and one.status in ("ACTIVE", "FAILED")]


def _stream(store: Store, wanted: StreamSpec, there: StreamSpec | None) -> Outcome:
    if there is None:
        store.create_stream(wanted)
        return Outcome("stream", wanted.name, "CREATED")
    old, new = there.as_json(), wanted.as_json()
    differs = sorted(name for name in new if old.get(name) != new[name])
    if not differs:
        return Outcome("stream", wanted.name, "UNCHANGED")
    return Outcome(
        "stream",
        wanted.name,
        "REJECTED",
        f"a stream never changes, and {', '.join(differs)} differs from the one in the store: declare another name",
    )


def _ptk(store: Store, wanted: DeclaredPtk, there: PtkView | None) -> Outcome:
    if there is not None:
        fixed = [one for one in ("stream", "kind", "train_every") if getattr(there, one) != getattr(wanted, one)]
        if fixed or there.status == "RETIRED":
            why = f"{' and '.join(fixed)} of a PTK never change" if fixed else "it is retired"
            return Outcome("ptk", wanted.name, "REJECTED", f"{why}: declare it under another name")
    if there is None or there.status == "REJECTED":
        return _told(
            "REGISTERED",
            store.register(
                wanted.name,
                stream=wanted.stream,
                kind=wanted.kind,
                config=wanted.config,
                target=wanted.target,
                train_every=wanted.train_every,
            ),
        )
    steps: list[Callable[[], Registration]] = []
    if there.config != wanted.config:
        steps.append(lambda: store.update_config(wanted.name, wanted.config))
    if there.target != wanted.target:
        steps.append(lambda: store.update_target(wanted.name, wanted.target))
    if not steps:
        return Outcome("ptk", wanted.name, "UNCHANGED")
    answers = [step() for step in steps]
    if len(steps) > 1 and answers[0].status == "REJECTED" and answers[1].status != "REJECTED":
        # The new configuration may need the new target: now that it is in force, ask again.
        answers[0] = steps[0]()
    return _told("UPDATED", next((one for one in answers if one.status == "REJECTED"), answers[-1]))


def _told(done: str, answer: Registration) -> Outcome:
    return Outcome(
        "ptk",
        answer.name,
        "REJECTED" if answer.status == "REJECTED" else done,
        answer.reason,
        answer.nearest_target,
        answer.changes,
        answer.planned_epsilon,
        answer.planned_samples,
        answer.refining,
    )
