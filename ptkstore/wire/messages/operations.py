"""Cycles and operations as messages, and back."""

from __future__ import annotations

from ptkstore.api import views
from ptkstore.v1 import operation_pb2
from ptkstore.wire.messages.fields import enum_word, millis, moment, optional

__all__ = ["cycle_message", "cycle_view", "operation_message", "operation_view"]

_STATUS = "OPERATION_STATUS_"


def cycle_message(cycle: views.CycleView) -> operation_pb2.Cycle:
    """A cycle."""
    return operation_pb2.Cycle(
        stream=cycle.stream,
        window=cycle.window,
        status=cycle.status,
        steps=cycle.steps,
        plan_status=cycle.plan_status,
        outcomes=cycle.outcomes,
        shortfall=cycle.shortfall,
        changes=cycle.changes,
        dp_records=cycle.dp_records,
        trained=[
            operation_pb2.Trained(
                ptk=line.ptk,
                outcome=line.outcome,
                version=line.version,
                epsilon=line.epsilon or "",
                samples=line.samples,
                reason=line.reason,
                validation=line.validation,
                error=line.error,
            )
            for line in cycle.trained
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
        validation=line.validation,
        error=line.error,
    )


def operation_message(operation: views.OperationView) -> operation_pb2.Operation:
    """An operation."""
    return operation_pb2.Operation(
        id=operation.id,
        kind=operation.kind,
        stream=operation.stream,
        status=_STATUS + operation.status,
        progress=operation.progress,
        cycles=[cycle_message(cycle) for cycle in operation.cycles],
        reason=operation.reason,
        message=operation.message,
        create_time=moment(operation.created_ms),
        end_time=moment(operation.ended_ms),
    )


def operation_view(message: operation_pb2.Operation) -> views.OperationView:
    """Back."""
    return views.OperationView(
        id=message.id,
        kind=message.kind,
        stream=message.stream,
        status=enum_word(operation_pb2.OperationStatus, message.status, _STATUS),
        progress=message.progress,
        cycles=tuple(cycle_view(cycle) for cycle in message.cycles),
        reason=message.reason,
        message=message.message,
        created_ms=millis(message, "create_time"),
        ended_ms=millis(message, "end_time"),
    )
