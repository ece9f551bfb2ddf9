"""Remedies as messages, and back. What an older server sends has words only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptkstore.api.views.remedies import Remedy, known_remedies
from ptkstore.v1 import plan_pb2

__all__ = ["remedy_messages", "remedy_views"]


def remedy_messages(remedies: Iterable[Remedy]) -> list[plan_pb2.Remedy]:
    """What would help."""
    return [_message(remedy) for remedy in remedies]


def remedy_views(
    remedies: Iterable[plan_pb2.Remedy], texts: Sequence[str] = ()
) -> tuple[Remedy, ...]:
    """Back; the ``texts`` alone where nothing else was sent."""
    return known_remedies(map(_view, remedies), texts)


def _message(remedy: Remedy) -> plan_pb2.Remedy:
    message = plan_pb2.Remedy(
        kind=remedy.kind, ptk=remedy.ptk or "", field=remedy.field, text=remedy.text
    )
    if isinstance(remedy.value, int):
        message.count = remedy.value
    elif isinstance(remedy.value, float):
        message.target = remedy.value
    elif remedy.value is not None:
        message.amount = remedy.value
    return message


def _view(message: plan_pb2.Remedy) -> Remedy:
    which = message.WhichOneof("value")
    return Remedy(
        kind=message.kind,
        ptk=message.ptk or None,
        field=message.field,
        value=None if which is None else getattr(message, which),
        text=message.text,
    )
