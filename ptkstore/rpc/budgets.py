"""BudgetService: what a stream promises, what was charged, what is left."""

from __future__ import annotations

from typing import Any

from ptkstore.client import Store
from ptkstore.engine.budgets import block_lines
from ptkstore.engine.ledger_map import COLUMNS
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.messages import block_message, budget_message, charge_message, ledger_map_message
from ptkstore.v1 import budget_pb2

__all__ = ["Budgets"]


class Budgets:
    """See the contract."""

    def __init__(self, store: Store) -> None:
        """Serve a store."""
        self._store = store

    def get_budget(self, request: Any, _call: Call) -> budget_pb2.GetBudgetResponse:
        """See the contract."""
        return budget_pb2.GetBudgetResponse(budget=budget_message(self._store.budget_summary(request.stream)))

    def list_blocks(self, request: Any, _call: Call) -> budget_pb2.ListBlocksResponse:
        """See the contract."""
        page = self._store.blocks(request.stream, limit=request.page_size, page_token=request.page_token)
        blocks = [block_message(one) for one in page.blocks]
        return budget_pb2.ListBlocksResponse(blocks=blocks, next_page_token=page.next_page_token)

    def get_block(self, request: Any, _call: Call) -> budget_pb2.GetBlockResponse:
        """See the contract."""
        home = self._store.home
        self._store.stream(request.stream)
        with home.metadata.read() as tx:
            row = tx.blocks.get(request.stream, request.name)
        (line,) = block_lines(home, request.stream, [row])
        losses = []
        if home.ledger.rests(request.stream, [row.name]):
            losses = [
                budget_pb2.TagLoss(start=str(tags.start), stop=str(tags.stop), loss=loss)
                for tags, loss in home.ledger.block(request.stream, row.name).losses
            ]
        return budget_pb2.GetBlockResponse(block=block_message(line), losses=losses)

    def list_charges(self, request: Any, _call: Call) -> budget_pb2.ListChargesResponse:
        """See the contract."""
        page = self._store.charges(
            request.stream,
            limit=request.page_size,
            page_token=request.page_token,
            newest_first=request.newest_first,
            find=request.find,
            blocks=request.blocks,
        )
        charges = [charge_message(one) for one in page.charges]
        return budget_pb2.ListChargesResponse(charges=charges, next_page_token=page.next_page_token)

    def get_ledger_map(self, request: Any, _call: Call) -> budget_pb2.GetLedgerMapResponse:
        """See the contract."""
        begin = request.begin if request.HasField("begin") else None
        return ledger_map_message(self._store.ledger_map(request.stream, begin=begin, count=request.count or COLUMNS))
