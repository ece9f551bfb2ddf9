"""Plans behind a server: as they are, as they would be, and the approval of what would be."""

from __future__ import annotations

from typing import Any

from ptkstore.api.changes import Changes
from ptkstore.api.views import PlanView, WhatIfView
from ptkstore.client.channel import Connection
from ptkstore.client.requests import fresh_id, plan_changes
from ptkstore.client.timeouts import LONG_SECONDS
from ptkstore.v1 import plan_pb2, plan_pb2_grpc
from ptkstore.wire import messages

__all__ = ["RemotePlans"]


class RemotePlans:
    """PlanService."""

    def __init__(self, connection: Connection) -> None:
        """Over a connection."""
        self._connection = connection
        self._plans = plan_pb2_grpc.PlanServiceStub(connection.channel)

    def plan(self, stream: str, *, window: int | None = None) -> PlanView | None:
        """The newest plan of a stream, or of one of its windows; None where there is none (yet)."""
        response = self._call(
            self._plans.GetPlan, plan_pb2.GetPlanRequest(stream=stream, window=window)
        )
        return messages.plan_view(response.plan) if response.HasField("plan") else None

    def plan_picture(self, stream: str) -> str | None:
        """The newest plan of a stream as an SVG document, or None before its first window."""
        response = self._call(
            self._plans.GetPlan, plan_pb2.GetPlanRequest(stream=stream, with_picture=True)
        )
        return response.picture_svg if response.HasField("plan") else None

    def plan_now(self, stream: str) -> PlanView:
        """What the plan of a fresh window would be with the PTKs as they are; touches nothing."""
        request = plan_pb2.GetPlanRequest(stream=stream, fresh=True)
        return messages.plan_view(self._call(self._plans.GetPlan, request, LONG_SECONDS).plan)

    def what_if(self, stream: str, changes: Changes | None = None) -> WhatIfView:
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
        )
        response = self._call(self._plans.WhatIf, request, LONG_SECONDS)
        plans = messages.plan_view(response.current), messages.plan_view(response.proposed)
        return WhatIfView(*plans, unprofiled=tuple(response.unprofiled), token=response.token)

    def approve(self, stream: str, token: str, *, request_id: str = "") -> PlanView:
        """Carry out the changes of a what-if that gave this token, all of them or none; returns the
        plan that was approved.
        """
        request = plan_pb2.ApprovePlanRequest(
            request_id=request_id or fresh_id(), stream=stream, token=token
        )
        return messages.plan_view(self._call(self._plans.ApprovePlan, request, LONG_SECONDS).plan)

    def _call(self, method: Any, request: Any, timeout_seconds: float | None = None) -> Any:
        return self._connection.call(method, request, timeout_seconds=timeout_seconds)
