"""Plans as messages, and back."""

from __future__ import annotations

from ptkstore import views
from ptkstore.rpc.messages.fields import moment, optional
from ptkstore.v1 import plan_pb2

__all__ = ["plan_message", "plan_view"]


def plan_message(one: views.PlanView, created_ms: int | None = None) -> plan_pb2.Plan:
    """A plan."""
    return plan_pb2.Plan(
        stream=one.stream,
        window=one.window,
        status=one.status,
        total_samples=one.total_samples,
        lower_bound=one.lower_bound,
        gap=one.gap,
        available_samples=one.available_samples,
        solver=one.solver,
        solve_seconds=one.seconds,
        assignments=[
            plan_pb2.PlanAssignment(
                ptk=line.ptk,
                epsilon=line.epsilon,
                samples=line.samples,
                target=line.target,
                partitions=line.partitions,
                share=line.share,
                used=line.used,
            )
            for line in one.lines
        ],
        partitions=[
            plan_pb2.PlanPartition(samples=line.samples, ptks=line.ptks, used=line.used) for line in one.partitions
        ],
        explanation=one.explanation,
        changes=one.changes,
        recommended_samples=one.recommended_samples,
        recommended_window_seconds=one.recommended_window_seconds,
        create_time=moment(created_ms),
        spent_before=one.spent_before,
        left_out=[plan_pb2.PlanLeftOut(ptk=line.ptk, reason=line.reason, text=line.text) for line in one.left_out],
    )


def plan_view(message: plan_pb2.Plan) -> views.PlanView:
    """Back."""
    return views.PlanView(
        stream=message.stream,
        window=message.window,
        status=message.status,
        total_samples=optional(message, "total_samples"),
        available_samples=optional(message, "available_samples"),
        solver=message.solver,
        seconds=message.solve_seconds,
        lines=tuple(
            views.PlanLine(
                ptk=line.ptk,
                epsilon=line.epsilon,
                samples=line.samples,
                share=line.share,
                target=line.target,
                partitions=tuple(line.partitions),
                used=line.used,
            )
            for line in message.assignments
        ),
        explanation=message.explanation,
        changes=tuple(message.changes),
        recommended_samples=optional(message, "recommended_samples"),
        recommended_window_seconds=optional(message, "recommended_window_seconds"),
        lower_bound=optional(message, "lower_bound"),
        gap=optional(message, "gap"),
        partitions=tuple(views.PartitionLine(one.samples, one.ptks, one.used) for one in message.partitions),
        spent_before=optional(message, "spent_before"),
        left_out=tuple(views.LeftOutLine(one.ptk, one.reason, one.text) for one in message.left_out),
    )
