"""What streams behind a server promise, what was charged, and what is left."""

from __future__ import annotations

from functools import cached_property

from ptkstore.api import views
from ptkstore.api.limits import MAP_BLOCKS, MAP_BLOCKS_MOST
from ptkstore.client.channel import Connection
from ptkstore.client.requests import LONGEST, page_size
from ptkstore.v1 import budget_pb2, budget_pb2_grpc
from ptkstore.wire import messages

__all__ = ["RemoteBudgets"]


class RemoteBudgets:
    """BudgetService."""

    _connection: Connection

    @cached_property
    def _budgets(self) -> budget_pb2_grpc.BudgetServiceStub:
        return self._connection.stub(budget_pb2_grpc.BudgetServiceStub)

    def budget(self, stream: str) -> views.BudgetView:
        """What the stream promises and what is left of it, block by block."""
        told = self.budget_summary(stream)
        pages = self._connection.pages(
            self._budgets.ListBlocks, budget_pb2.ListBlocksRequest(stream=stream)
        )
        lines = tuple(messages.block_line(block) for page in pages for block in page.blocks)
        return views.BudgetView(
            stream, told.unit, told.epsilon, told.delta, told.composition, told.exposure, lines
        )

    def budget_summary(self, stream: str) -> views.BudgetSummary:
        """What the stream promises and holds, without its blocks: quick, however many there are."""
        request = budget_pb2.GetBudgetRequest(stream=stream)
        return messages.budget_summary(
            self._connection.call(self._budgets.GetBudget, request).budget
        )

    def blocks(self, stream: str, *, limit: int = 100, page_token: str = "") -> views.BlockPage:
        """The blocks of a stream, oldest first: a page of at most ``limit`` (up to 1,000), and the
        token of the next.
        """
        request = budget_pb2.ListBlocksRequest(
            stream=stream, page_size=page_size(limit), page_token=page_token
        )
        page = self._connection.call(self._budgets.ListBlocks, request)
        return views.BlockPage(
            tuple(messages.block_line(block) for block in page.blocks), page.next_page_token
        )

    def charges(
        self,
        stream: str,
        *,
        limit: int = 100,
        page_token: str = "",
        newest_first: bool = False,
        find: str = "",
        blocks: str = "",
    ) -> views.ChargePage:
        """What the ledger wrote about a stream, oldest first: a page, and the token of the next."""
        request = budget_pb2.ListChargesRequest(
            stream=stream,
            page_size=page_size(limit),
            page_token=page_token,
            newest_first=newest_first,
            find=find,
            blocks=blocks,
        )
        page = self._connection.call(self._budgets.ListCharges, request)
        return views.ChargePage(
            tuple(messages.charge_line(charge) for charge in page.charges), page.next_page_token
        )

    def ledger_map(
        self, stream: str, *, begin: int | None = None, count: int = MAP_BLOCKS
    ) -> views.LedgerMap:
        """What was spent at some blocks, range of tags by range of tags, and who spent most over
        all time.
        """
        # What fits the message and means the same; 0 would be the default.
        asked = min(count, MAP_BLOCKS_MOST + 1) if count > 0 else -1
        place = None if begin is None else max(-1, min(begin, LONGEST))
        request = budget_pb2.GetLedgerMapRequest(stream=stream, begin=place, count=asked)
        return messages.ledger_map(self._connection.call(self._budgets.GetLedgerMap, request))
