"""BudgetService: what a stream promises, what was charged, what is left."""

from __future__ import annotations

from typing import Any

from ptklib.ledger.canonical import canonical
from ptkstore.client import Store
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.messages import block_message, budget_message
from ptkstore.rpc.pages import Page
from ptkstore.v1 import budget_pb2
from ptkstore.views import BlockLine

__all__ = ["Budgets"]

_SHOWN = ("reserve", "spend", "release", "retire")


class Budgets:
    """See the contract."""

    def __init__(self, store: Store) -> None:
        """Serve a store."""
        self._store = store

    def get_budget(self, request: Any, _call: Call) -> budget_pb2.GetBudgetResponse:
        """See the contract."""
        return budget_pb2.GetBudgetResponse(budget=budget_message(self._store.budget(request.stream)))

    def list_blocks(self, request: Any, _call: Call) -> budget_pb2.ListBlocksResponse:
        """See the contract."""
        page = Page(f"blocks {request.stream}", request.page_size, request.page_token, kind=str)
        lines = self._store.budget(request.stream).blocks
        places = {one.name: place for place, one in enumerate(lines)}
        begin = 0 if page.after is None else places.get(page.after, -1) + 1
        part, token = page.cut(lines[begin : begin + page.size + 1], lambda one: one.name)
        return budget_pb2.ListBlocksResponse(blocks=[block_message(one) for one in part], next_page_token=token)

    def get_block(self, request: Any, _call: Call) -> budget_pb2.GetBlockResponse:
        """See the contract."""
        home = self._store.home
        self._store.stream(request.stream)
        with home.metadata.read() as tx:
            row = tx.blocks.get(request.stream, request.name)
        if row.name not in home.ledger.blocks(request.stream):
            judge = home.judge(request.stream)
            line = BlockLine(row.name, row.window, row.status, row.dp_count, float(judge.left([0] * judge.width)), None)
            return budget_pb2.GetBlockResponse(block=block_message(line))
        view = home.ledger.block(request.stream, row.name)
        line = BlockLine(row.name, row.window, row.status, row.dp_count, float(view.left), view.retired)
        losses = [
            budget_pb2.TagLoss(start=str(tags.start), stop=str(tags.stop), loss=loss) for tags, loss in view.losses
        ]
        return budget_pb2.GetBlockResponse(block=block_message(line), losses=losses)

    def list_charges(self, request: Any, _call: Call) -> budget_pb2.ListChargesResponse:
        """See the contract."""
        self._store.stream(request.stream)
        page = Page(f"charges {request.stream}", request.page_size, request.page_token)
        found = [one for one in self._charges(request.stream) if page.after is None or one.number > page.after]
        part, token = page.cut(found[: page.size + 1], lambda one: one.number)
        return budget_pb2.ListChargesResponse(charges=part, next_page_token=token)

    def _charges(self, stream: str) -> list[budget_pb2.Charge]:
        """The entries of a stream, numbered as the journal has them; those about a charge follow its stream and key."""
        owners: dict[int, tuple[str, str]] = {}
        found = []
        for number, entry in enumerate(self._store.home.ledger.history(), 1):
            charge = entry.get("charge")
            if "stream" in entry and charge is not None:
                owners[charge] = (entry["stream"], entry.get("key") or "")
            owner, key = owners.get(charge, ("", "")) if charge is not None else (entry.get("stream", ""), "")
            if owner == stream and entry["kind"] in _SHOWN:
                text = canonical(entry).decode()
                found.append(budget_pb2.Charge(number=number, kind=str(entry["kind"]), key=key, entry_json=text))
        return found
