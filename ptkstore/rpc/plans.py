"""PlanService: plans as they are, as they would be, and the approval of what would be. Reasons: those of `what_if` and
`approving`."""

from __future__ import annotations

from ptklib.errors import InvalidInput
from ptkstore.client import Store
from ptkstore.engine.approving import approve
from ptkstore.engine.planning import draw_plan
from ptkstore.engine.what_if import AddedPtk, Changes
from ptkstore.metadata import Transaction, rows
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.messages import json_object, plan_message
from ptkstore.rpc.pages import Page
from ptkstore.v1 import plan_pb2
from ptkstore.views import PlanView

__all__ = ["MAX_CHANGES", "Plans"]

MAX_CHANGES = 1000


class Plans:
    """See the contract."""

    def __init__(self, store: Store) -> None:
        """Serve a store."""
        self._store = store

    def get_plan(self, request: plan_pb2.GetPlanRequest, _call: Call) -> plan_pb2.GetPlanResponse:
        """See the contract."""
        if request.fresh:
            return plan_pb2.GetPlanResponse(plan=plan_message(self._store.plan_now(request.stream)))
        spec = self._store.stream(request.stream)
        row = self._row(request)
        if row is None:
            return plan_pb2.GetPlanResponse()
        picture = draw_plan(spec, row.body) if request.with_picture else ""
        return plan_pb2.GetPlanResponse(plan=_message(row), picture_svg=picture)

    def list_plans(self, request: plan_pb2.ListPlansRequest, _call: Call) -> plan_pb2.ListPlansResponse:
        """See the contract."""
        self._store.stream(request.stream)
        page = Page(f"plans {request.stream}", request.page_size, request.page_token)
        with self._store.home.metadata.read() as tx:
            found = tx.plans.list(request.stream, limit=page.size + 1, after=page.after)
        part, token = page.cut(found, lambda row: row.id)
        return plan_pb2.ListPlansResponse(plans=[_message(row) for row in part], next_page_token=token)

    def what_if(self, request: plan_pb2.WhatIfRequest, _call: Call) -> plan_pb2.WhatIfResponse:
        """See the contract."""
        self._store.stream(request.stream)
        found = self._store.what_if(request.stream, _changes(request))
        return plan_pb2.WhatIfResponse(
            current=plan_message(found.current),
            proposed=plan_message(found.proposed),
            token=found.token,
            unprofiled=found.unprofiled,
        )

    def approve_plan(self, request: plan_pb2.ApprovePlanRequest, call: Call) -> plan_pb2.ApprovePlanResponse:
        """See the contract."""
        self._store.stream(request.stream)

        def within(tx: Transaction, plan: PlanView) -> None:
            call.once.keep(tx, plan_pb2.ApprovePlanResponse(plan=plan_message(plan)))

        planned = approve(self._store.home, request.stream, request.token, within)
        return plan_pb2.ApprovePlanResponse(plan=plan_message(planned))

    def _row(self, request: plan_pb2.GetPlanRequest) -> rows.Plan | None:
        with self._store.home.metadata.read() as tx:
            window = request.window if request.WhichOneof("which") == "window" else None
            return tx.plans.latest(request.stream, window=window)


def _message(row: rows.Plan) -> plan_pb2.Plan:
    return plan_message(PlanView.from_json(row.body["view"]), row.created_ms)


def _changes(request: plan_pb2.WhatIfRequest) -> Changes:
    if len(request.changes) > MAX_CHANGES:
        raise InvalidInput("VALUE_INVALID", f"at most {MAX_CHANGES} changes can be asked for at once")
    added, removed, retargeted = [], [], {}
    for one in request.changes:
        which = one.WhichOneof("change")
        if which == "add":
            config = json_object(one.add.config_json, "config_json")
            added.append(AddedPtk(name=one.add.name, kind=one.add.kind, config=config, target=one.add.target))
        elif which == "remove":
            removed.append(one.remove)
        elif which == "retarget":
            retargeted[one.retarget.name] = one.retarget.target
        else:
            raise InvalidInput("VALUE_INVALID", "a change must add, remove or retarget a PTK")
    return Changes(
        add=tuple(added),
        remove=tuple(removed),
        retarget=retargeted,
        epsilon=request.epsilon or None,
        delta=request.delta or None,
        composition=request.composition or None,
        n_max=request.n_max if request.HasField("n_max") else None,
    )
