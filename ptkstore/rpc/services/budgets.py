"""BudgetService: what a stream promises, what was charged, what is left."""

from __future__ import annotations

from typing import Any

from ptkstore.api.limits import MAP_BLOCKS
from ptkstore.engine.budgets import budgets
from ptkstore.engine.budgets.charges import charge_page
from ptkstore.engine.budgets.ledger_map import LedgerMaps
from ptkstore.engine.parts import Parts
from ptkstore.rpc.gate.dispatch import Call
from ptkstore.v1 import budget_pb2
from ptkstore.wire.messages import block_message, budget_message, charge_message, ledger_map_message

__all__ = ["BudgetService"]


class BudgetService:
    """See the contract."""

    def __init__(self, parts: Parts) -> None:
        """Serve a store."""
        self._parts = parts
        self._ledger_maps = LedgerMaps(parts)

    def get_budget(self, request: Any, _call: Call) -> budget_pb2.GetBudgetResponse:
        """See the contract."""
        return budget_pb2.GetBudgetResponse(
            budget=budget_message(budgets.summary(self._parts, request.stream))
        )

    def list_blocks(self, request: Any, _call: Call) -> budget_pb2.ListBlocksResponse:
        """See the contract."""
        page = budgets.block_page(
            self._parts, request.stream, limit=request.page_size, page_token=request.page_token
        )
        blocks = [block_message(line) for line in page.blocks]
        return budget_pb2.ListBlocksResponse(blocks=blocks, next_page_token=page.next_page_token)

    def get_block(self, request: Any, _call: Call) -> budget_pb2.GetBlockResponse:
        """See the contract."""
        account = budgets.block(self._parts, request.stream, request.name)
        losses = [
            budget_pb2.TagLoss(start=str(tags.start), stop=str(tags.stop), loss=loss)
            for tags, loss in account.losses
        ]
        return budget_pb2.GetBlockResponse(block=block_message(account.line), losses=losses)

    def list_charges(self, request: Any, _call: Call) -> budget_pb2.ListChargesResponse:
        """See the contract."""
        page = charge_page(
            self._parts,
            request.stream,
            limit=request.page_size,
            page_token=request.page_token,
            newest_first=request.newest_first,
            find=request.find,
            blocks=request.blocks,
        )
        charges = [charge_message(line) for line in page.charges]
        return budget_pb2.ListChargesResponse(charges=charges, next_page_token=page.next_page_token)

    def get_ledger_map(self, request: Any, _call: Call) -> budget_pb2.GetLedgerMapResponse:
        """See the contract."""
        begin = request.begin if request.HasField("begin") else None
        return ledger_map_message(
            self._ledger_maps.of(request.stream, begin=begin, count=request.count or MAP_BLOCKS)
        )
