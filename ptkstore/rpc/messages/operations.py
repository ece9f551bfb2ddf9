"""Cycles and operations as messages, and back."""

from __future__ import annotations

from ptkstore import views
from ptkstore.rpc.messages.fields import enum_word, millis, moment, optional
from ptkstore.v1 import operation_pb2

__all__ = ["cycle_message", "cycle_view", "operation_message", "operation_view"]

_STATUS = "OPERATION_STATUS_"


def cycle_message(one: views.CycleView) -> operation_pb2.Cycle:
    """A cycle."""
    return operation_pb2.Cycle(
        stream=one.stream,
        window=one.window,
        status=one.status,
        steps=one.steps,
        plan_status=one.plan_status,
        outcomes=one.outcomes,
        shortfall=one.shortfall,
        changes=one.changes,
        dp_records=one.dp_records,
        trained=[
            operation_pb2.Trained(
                ptk=line.ptk,
                outcome=line.outcome,
                version=line.version,
                epsilon=line.epsilon or "",
                samples=line.samples,
                reason=line.reason,
            )
            for line in one.trained
        ],
    )


def cycle_view(message: operation_pb2.Cycle) -> views.CycleView:
    """Back."""
    return views.CycleView(
        stream=message.stream,
        window=message.window,
        status=message.status,
        steps=tuple(message.steps),
        plan_status=message.plan_status,
        dp_records=message.dp_records,
        trained=tuple(_trained(line) for line in message.trained),
        outcomes=dict(message.outcomes),
        shortfall=message.shortfall,
        changes=tuple(message.changes),
    )


def _trained(line: operation_pb2.Trained) -> views.TrainedLine:
    return views.TrainedLine(
        ptk=line.ptk,
        outcome=line.outcome,
        version=optional(line, "version"),
        epsilon=line.epsilon or None,
        samples=optional(line, "samples"),
        reason=line.reason,
    )


def operation_message(one: views.OperationView) -> operation_pb2.Operation:
    """An operation."""
    return operation_pb2.Operation(
        id=one.id,
        kind=one.kind,
        stream=one.stream,
        status=_STATUS + one.status,
        progress=one.progress,
        cycles=[cycle_message(cycle) for cycle in one.cycles],
        reason=one.reason,
        message=one.message,
        create_time=moment(one.created_ms),
        end_time=moment(one.ended_ms),
    )


def operation_view(message: operation_pb2.Operation) -> views.OperationView:
    """Back."""
    return views.OperationView(
        id=message.id,
        kind=message.kind,
        stream=message.stream,
        status=enum_word(operation_pb2.OperationStatus, message.status, _STATUS),
        progress=message.progress,
        cycles=tuple(cycle_view(one) for one in message.cycles),
        reason=message.reason,
        message=message.message,
        created_ms=millis(message, "create_time"),
        ended_ms=millis(message, "end_time"),
    )
