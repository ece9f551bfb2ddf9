"""PlanService: plans as they are, as they would be, and the approval of what would be. Reasons:
those of `what_if` and `approving`.
"""

from __future__ import annotations

from ptklib.errors import InvalidInput
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.goal import Goal
from ptkstore.api.over import ALL
from ptkstore.api.stream_spec import USES
from ptkstore.api.views import PlanView
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans import stored
from ptkstore.engine.plans.approving import approve, ask
from ptkstore.metadata import Transaction
from ptkstore.rpc.gate.dispatch import Call
from ptkstore.v1 import plan_pb2
from ptkstore.wire.messages import json_object, plan_message

__all__ = ["MAX_CHANGES", "PlanService"]

MAX_CHANGES = 1000


class PlanService:
    """See the contract."""

    def __init__(self, parts: Parts) -> None:
        """Serve a store."""
        self._parts = parts

    def get_plan(self, request: plan_pb2.GetPlanRequest, _call: Call) -> plan_pb2.GetPlanResponse:
        """See the contract."""
        if request.fresh:
            current = ask(self._parts, request.stream, Changes()).current
            return plan_pb2.GetPlanResponse(plan=plan_message(current))
        window = request.window if request.WhichOneof("which") == "window" else None
        plan = stored.stored_plan(self._parts, request.stream, window)
        if plan is None:
            return plan_pb2.GetPlanResponse()
        picture = stored.picture(self._parts, plan) if request.with_picture else ""
        return plan_pb2.GetPlanResponse(plan=_message(plan), picture_svg=picture)

    def list_plans(
        self, request: plan_pb2.ListPlansRequest, _call: Call
    ) -> plan_pb2.ListPlansResponse:
        """See the contract."""
        page = stored.page_of(
            self._parts, request.stream, limit=request.page_size, page_token=request.page_token
        )
        return plan_pb2.ListPlansResponse(
            plans=[_message(plan) for plan in page.plans], next_page_token=page.next_page_token
        )

    def what_if(self, request: plan_pb2.WhatIfRequest, _call: Call) -> plan_pb2.WhatIfResponse:
        """See the contract."""
        self._parts.specs.named(request.stream)
        answer = ask(self._parts, request.stream, _changes(request))
        return plan_pb2.WhatIfResponse(
            current=plan_message(answer.current),
            proposed=plan_message(answer.proposed),
            token=answer.token,
            unprofiled=answer.unprofiled,
        )

    def approve_plan(
        self, request: plan_pb2.ApprovePlanRequest, call: Call
    ) -> plan_pb2.ApprovePlanResponse:
        """See the contract."""

        def within(tx: Transaction, plan: PlanView) -> None:
            call.once.keep(tx, plan_pb2.ApprovePlanResponse(plan=plan_message(plan)))

        planned = approve(self._parts, request.stream, request.token, within)
        return plan_pb2.ApprovePlanResponse(plan=plan_message(planned))


def _message(plan: stored.StoredPlan) -> plan_pb2.Plan:
    return plan_message(plan.view, plan.created_ms)


def _changes(request: plan_pb2.WhatIfRequest) -> Changes:
    if len(request.changes) > MAX_CHANGES:
        raise InvalidInput(
            "VALUE_INVALID", f"at most {MAX_CHANGES} changes can be asked for at once"
        )
    added, removed, retargeted, best_effort = [], [], {}, {}
    for change in request.changes:
        which = change.WhichOneof("change")
        if which == "add":
            config = json_object(change.add.config_json, "config_json")
            added.append(
                AddedPtk(
                    name=change.add.name,
                    kind=change.add.kind,
                    config=config,
                    # Left out is 0, and no target is.
                    target=change.add.target or None,
                    epsilon=change.add.epsilon or None,
                    over=change.add.over or ALL,
                )
            )
        elif which == "remove":
            removed.append(change.remove)
        elif which == "retarget":
            name = change.retarget.name
            goal = Goal.of(change.retarget.target or None, change.retarget.epsilon or None)
            if goal.epsilon is None:
                retargeted[name] = change.retarget.target
            else:
                best_effort[name] = goal.epsilon
        else:
            raise InvalidInput("VALUE_INVALID", "a change must add, remove or retarget a PTK")
    return Changes(
        add=tuple(added),
        remove=tuple(removed),
        retarget=retargeted,
        best_effort=best_effort,
        epsilon=request.epsilon or None,
        delta=request.delta or None,
        composition=request.composition or None,
        n_max=request.n_max if request.HasField("n_max") else None,
        use=_use(request),
    )


def _use(request: plan_pb2.WhatIfRequest) -> dict[str, str]:
    if not request.use:
        return {}
    if request.use not in USES:
        raise InvalidInput("VALUE_INVALID", f"use must be one of {', '.join(USES)}", field="use")
    return {request.stream: request.use}
