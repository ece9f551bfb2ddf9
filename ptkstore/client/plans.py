"""Plans behind a server: as they are, as they would be, and the approval of what would be."""

from __future__ import annotations

from functools import cached_property

from ptkstore.api import views
from ptkstore.api.changes import Changes
from ptkstore.client.channel import Connection
from ptkstore.client.requests import fresh_id, plan_changes
from ptkstore.client.timeouts import LONG_SECONDS
from ptkstore.v1 import plan_pb2, plan_pb2_grpc
from ptkstore.wire import messages

__all__ = ["RemotePlans"]


class RemotePlans:
    """PlanService."""

    _connection: Connection

    @cached_property
    def _plans(self) -> plan_pb2_grpc.PlanServiceStub:
        return self._connection.stub(plan_pb2_grpc.PlanServiceStub)

    def plan(self, stream: str, *, window: int | None = None) -> views.PlanView | None:
        """The newest plan of a stream, or of one of its windows; None where there is none (yet)."""
        response = self._connection.call(
            self._plans.GetPlan, plan_pb2.GetPlanRequest(stream=stream, window=window)
        )
        return messages.plan_view(response.plan) if response.HasField("plan") else None

    def plan_picture(self, stream: str) -> str | None:
        """The newest plan of a stream as an SVG document, or None before its first window."""
        response = self._connection.call(
            self._plans.GetPlan, plan_pb2.GetPlanRequest(stream=stream, with_picture=True)
        )
        return response.picture_svg if response.HasField("plan") else None

    def plan_now(self, stream: str) -> views.PlanView:
        """What the plan of a fresh window would be with the PTKs as they are; touches nothing."""
        request = plan_pb2.GetPlanRequest(stream=stream, fresh=True)
        return messages.plan_view(
            self._connection.call(self._plans.GetPlan, request, timeout_seconds=LONG_SECONDS).plan
        )

    def what_if(self, stream: str, changes: Changes | None = None) -> views.WhatIfView:
        """The plan of a fresh window as it is, and as it would be after some changes; touches
        nothing.
        """
        asked = changes or Changes()
        request = plan_pb2.WhatIfRequest(
            stream=stream,
            changes=plan_changes(asked),
            epsilon="" if asked.epsilon is None else str(asked.epsilon),
            delta="" if asked.delta is None else str(asked.delta),
            composition=asked.composition or "",
            n_max=asked.n_max,
            use=asked.use.get(stream, ""),
        )
        response = self._connection.call(self._plans.WhatIf, request, timeout_seconds=LONG_SECONDS)
        plans = messages.plan_view(response.current), messages.plan_view(response.proposed)
        return views.WhatIfView(*plans, unprofiled=tuple(response.unprofiled), token=response.token)

    def approve(self, stream: str, token: str, *, request_id: str = "") -> views.PlanView:
        """Carry out the changes of a what-if that gave this token, all of them or none; returns the
        plan that was approved.
        """
        request = plan_pb2.ApprovePlanRequest(
            request_id=request_id or fresh_id(), stream=stream, token=token
        )
        return messages.plan_view(
            self._connection.call(
                self._plans.ApprovePlan, request, timeout_seconds=LONG_SECONDS
            ).plan
        )
