"""PTKs, their registrations, profiles and states as messages, and back."""

from __future__ import annotations

import json
from typing import Any

from ptkstore.api import views
from ptkstore.api.over import ALL
from ptkstore.v1 import ptk_pb2
from ptkstore.wire.messages.fields import enum_word, json_object, millis, moment, optional
from ptkstore.wire.messages.remedies import remedy_messages, remedy_views

__all__ = [
    "applied_message",
    "applied_view",
    "profile_message",
    "profile_view",
    "ptk_message",
    "ptk_view",
    "registration_message",
    "registration_view",
    "state_message",
    "state_view",
    "status_number",
    "status_word",
]

_STATUS = "PTK_STATUS_"


def status_number(word: str) -> Any:
    """The enum of a PTK's status."""
    return ptk_pb2.PtkStatus.Value(_STATUS + word)


def status_word(number: int) -> str:
    """The status of an enum; empty for none, or for one that is newer than this release."""
    return enum_word(ptk_pb2.PtkStatus, number, _STATUS)


def registration_message(registration: views.Registration) -> ptk_pb2.Registration:
    """The answer to a registration."""
    return ptk_pb2.Registration(
        name=registration.name,
        status=status_number(registration.status),
        reason=registration.reason,
        nearest_target=registration.nearest_target,
        changes=registration.changes,
        planned_epsilon=registration.planned_epsilon or "",
        planned_samples=registration.planned_samples,
        refining=registration.refining,
        remedies=remedy_messages(registration.remedies),
    )


def registration_view(message: ptk_pb2.Registration) -> views.Registration:
    """Back."""
    return views.Registration(
        name=message.name,
        status=status_word(message.status),
        reason=message.reason,
        nearest_target=optional(message, "nearest_target"),
        changes=tuple(message.changes),
        planned_epsilon=message.planned_epsilon or None,
        planned_samples=optional(message, "planned_samples"),
        refining=message.refining,
        remedies=remedy_views(message.remedies, message.changes),
    )


def applied_message(applied: views.AppliedView) -> ptk_pb2.ApplyChangesResponse:
    """What became of changes."""
    return ptk_pb2.ApplyChangesResponse(
        streams=applied.streams,
        registrations=[
            registration_message(registration) for registration in applied.registrations
        ],
        retired=applied.retired,
    )


def applied_view(message: ptk_pb2.ApplyChangesResponse) -> views.AppliedView:
    """Back."""
    return views.AppliedView(
        streams=tuple(message.streams),
        registrations=tuple(map(registration_view, message.registrations)),
        retired=tuple(message.retired),
    )


def ptk_message(ptk: views.PtkView, etag: int) -> ptk_pb2.Ptk:
    """A PTK."""
    return ptk_pb2.Ptk(
        name=ptk.name,
        stream=ptk.stream,
        kind=ptk.kind,
        config_json=json.dumps(ptk.config),
        config_version=ptk.config_version,
        target=ptk.target or 0.0,
        epsilon=ptk.epsilon or "",
        train_every=ptk.train_every,
        over=ptk.over,
        status=status_number(ptk.status),
        reason=ptk.reason,
        latest_version=ptk.latest_version or 0,
        etag=str(etag),
        nearest_target=ptk.nearest_target,
        changes=ptk.changes,
        refining=ptk.refining,
        remedies=remedy_messages(ptk.remedies),
    )


def ptk_view(message: ptk_pb2.Ptk) -> views.PtkView:
    """Back."""
    return views.PtkView(
        name=message.name,
        stream=message.stream,
        kind=message.kind,
        config=json_object(message.config_json, "config"),
        config_version=message.config_version,
        target=message.target if not message.epsilon else None,
        epsilon=message.epsilon or None,
        train_every=message.train_every,
        over=message.over or ALL,
        status=status_word(message.status),
        reason=message.reason,
        latest_version=message.latest_version or None,
        nearest_target=optional(message, "nearest_target"),
        changes=tuple(message.changes),
        refining=message.refining,
        remedies=remedy_views(message.remedies, message.changes),
    )


def profile_message(profile: views.ProfileView) -> ptk_pb2.Profile:
    """A profile."""
    points = zip(profile.levels, profile.samples, strict=True)
    return ptk_pb2.Profile(
        source=profile.source,
        points=[ptk_pb2.ProfilePoint(level=level, samples=samples) for level, samples in points],
        promised=profile.promised or "",
        confidence=profile.confidence or "",
        reason=profile.reason,
        needed_records=profile.needed_records,
        status=status_number(profile.status),
        trainings=profile.trainings,
        measured_json=json.dumps(profile.measured) if profile.measured else "",
        made_time=moment(profile.made_ms),
    )


def profile_view(name: str, message: ptk_pb2.Profile) -> views.ProfileView:
    """Back."""
    return views.ProfileView(
        ptk=name,
        status=status_word(message.status),
        source=message.source,
        levels=tuple(point.level for point in message.points),
        samples=tuple(optional(point, "samples") for point in message.points),
        promised=message.promised or None,
        confidence=message.confidence or None,
        trainings=message.trainings,
        measured=tuple(json.loads(message.measured_json)) if message.measured_json else (),
        made_ms=millis(message, "made_time"),
        needed_records=optional(message, "needed_records"),
        reason=message.reason,
    )


def state_message(state: views.StateView) -> ptk_pb2.State:
    """A state, without its bytes."""
    return ptk_pb2.State(
        name=state.name,
        version=state.version,
        digest=state.digest,
        window=state.window,
        epsilon=state.epsilon,
        delta=state.delta,
        samples=state.samples,
        create_time=moment(state.created_ms),
        validation=state.validation,
        validation_reason=state.validation_reason,
        error=None if state.error is None else ptk_pb2.StateError(**state.error.as_json()),
    )


def state_view(message: ptk_pb2.State) -> views.StateView:
    """Back."""
    return views.StateView(
        name=message.name,
        version=message.version,
        digest=message.digest,
        window=message.window,
        epsilon=message.epsilon,
        delta=message.delta,
        samples=optional(message, "samples"),
        created_ms=millis(message, "create_time") or 0,
        validation=message.validation,
        validation_reason=message.validation_reason,
        error=_error(message.error) if message.HasField("error") else None,
    )


def _error(message: ptk_pb2.StateError) -> views.StateError:
    return views.StateError(
        source=message.source,
        at_most=message.at_most,
        confidence=message.confidence,
        at_least=optional(message, "at_least"),
        estimate=optional(message, "estimate"),
        constant=optional(message, "constant"),
    )
