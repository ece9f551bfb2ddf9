"""Plans as messages, and back."""

from __future__ import annotations

from ptkstore.api import views
from ptkstore.v1 import plan_pb2
from ptkstore.wire.messages.fields import moment, optional
from ptkstore.wire.messages.remedies import remedy_messages, remedy_views

__all__ = ["plan_message", "plan_view"]


def plan_message(plan: views.PlanView, created_ms: int | None = None) -> plan_pb2.Plan:
    """A plan."""
    return plan_pb2.Plan(
        stream=plan.stream,
        window=plan.window,
        status=plan.status,
        total_samples=plan.total_samples,
        lower_bound=plan.lower_bound,
        gap=plan.gap,
        available_samples=plan.available_samples,
        solver=plan.solver,
        solve_seconds=plan.seconds,
        assignments=[
            plan_pb2.PlanAssignment(
                ptk=line.ptk,
                epsilon=line.epsilon,
                samples=line.samples,
                target=line.target or 0.0,
                partitions=line.partitions,
                share=line.share,
                used=line.used,
            )
            for line in plan.lines
        ],
        partitions=[
            plan_pb2.PlanPartition(samples=line.samples, ptks=line.ptks, used=line.used)
            for line in plan.partitions
        ],
        explanation=plan.explanation,
        changes=plan.changes,
        recommended_samples=plan.recommended_samples,
        recommended_window_seconds=plan.recommended_window_seconds,
        create_time=moment(created_ms),
        spent_before=plan.spent_before,
        left_out=[
            plan_pb2.PlanLeftOut(ptk=line.ptk, reason=line.reason, text=line.text)
            for line in plan.left_out
        ],
        remedies=remedy_messages(plan.remedies),
        use=plan.use,
        surplus=[
            plan_pb2.PlanSurplus(
                ptk=line.ptk,
                epsilon=line.epsilon,
                samples=line.samples,
                share=line.share,
                expected_minimum=line.expected_minimum,
                expected=line.expected,
            )
            for line in plan.surplus
        ],
        surplus_samples=plan.surplus_samples,
        gap_reason=plan.gap_reason,
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
                # No target is 0.
                target=line.target or None,
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
        partitions=tuple(
            views.PartitionLine(partition.samples, partition.ptks, partition.used)
            for partition in message.partitions
        ),
        spent_before=optional(message, "spent_before"),
        left_out=tuple(
            views.LeftOutLine(plan_left_out.ptk, plan_left_out.reason, plan_left_out.text)
            for plan_left_out in message.left_out
        ),
        remedies=remedy_views(message.remedies, message.changes),
        use=message.use or "minimum",
        surplus=tuple(
            views.SurplusLine(
                ptk=line.ptk,
                epsilon=line.epsilon,
                samples=line.samples,
                share=line.share,
                expected_minimum=line.expected_minimum,
                expected=line.expected,
            )
            for line in message.surplus
        ),
        surplus_samples=optional(message, "surplus_samples"),
        gap_reason=message.gap_reason,
    )
