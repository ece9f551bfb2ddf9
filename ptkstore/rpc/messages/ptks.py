"""PTKs, their registrations, profiles and states as messages, and back."""

from __future__ import annotations

import json
from typing import Any

from ptkstore import views
from ptkstore.rpc.messages.fields import enum_word, json_object, millis, moment, optional
from ptkstore.v1 import ptk_pb2

__all__ = [
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


def registration_message(one: views.Registration) -> ptk_pb2.Registration:
    """The answer to a registration."""
    return ptk_pb2.Registration(
        name=one.name,
        status=status_number(one.status),
        reason=one.reason,
        nearest_target=one.nearest_target,
        changes=one.changes,
        planned_epsilon=one.planned_epsilon or "",
        planned_samples=one.planned_samples,
        refining=one.refining,
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
    )


def ptk_message(one: views.PtkView, etag: int) -> ptk_pb2.Ptk:
    """A PTK."""
    return ptk_pb2.Ptk(
        name=one.name,
        stream=one.stream,
        kind=one.kind,
        config_json=json.dumps(one.config),
        config_version=one.config_version,
        target=one.target,
        train_every=one.train_every,
        status=status_number(one.status),
        reason=one.reason,
        latest_version=one.latest_version or 0,
        etag=str(etag),
        nearest_target=one.nearest_target,
        changes=one.changes,
        refining=one.refining,
    )


def ptk_view(message: ptk_pb2.Ptk) -> views.PtkView:
    """Back."""
    return views.PtkView(
        name=message.name,
        stream=message.stream,
        kind=message.kind,
        config=json_object(message.config_json, "config"),
        config_version=message.config_version,
        target=message.target,
        train_every=message.train_every,
        status=status_word(message.status),
        reason=message.reason,
        latest_version=message.latest_version or None,
        nearest_target=optional(message, "nearest_target"),
        changes=tuple(message.changes),
        refining=message.refining,
    )


def profile_message(one: views.ProfileView) -> ptk_pb2.Profile:
    """A profile."""
    points = zip(one.levels, one.samples, strict=True)
    return ptk_pb2.Profile(
        source=one.source,
        points=[ptk_pb2.ProfilePoint(level=level, samples=samples) for level, samples in points],
        promised=one.promised or "",
        confidence=one.confidence or "",
        reason=one.reason,
        needed_records=one.needed_records,
        status=status_number(one.status),
        trainings=one.trainings,
        measured_json=json.dumps(one.measured) if one.measured else "",
        made_time=moment(one.made_ms),
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


def state_message(one: views.StateView) -> ptk_pb2.State:
    """A state, without its bytes."""
    return ptk_pb2.State(
        name=one.name,
        version=one.version,
        digest=one.digest,
        window=one.window,
        epsilon=one.epsilon,
        delta=one.delta,
        samples=one.samples,
        create_time=moment(one.created_ms),
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
    )
