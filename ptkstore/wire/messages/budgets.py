"""Budgets, blocks, entries of the ledger and its map as messages, and back."""

from __future__ import annotations

from ptklib.encoding.canonical import canonical
from ptkstore.api import views
from ptkstore.v1 import budget_pb2
from ptkstore.wire.messages.fields import json_object, millis, moment, optional

__all__ = [
    "block_line",
    "block_message",
    "budget_message",
    "budget_summary",
    "charge_line",
    "charge_message",
    "ledger_map",
    "ledger_map_message",
]


def budget_message(budget: views.BudgetSummary) -> budget_pb2.Budget:
    """A budget without its blocks."""
    held = budget.exposure
    return budget_pb2.Budget(
        stream=budget.stream,
        unit=budget.unit,
        epsilon=budget.epsilon,
        delta=budget.delta,
        composition=budget.composition,
        exposure=budget_pb2.Exposure(
            oldest=moment(held.oldest_ms),
            newest=moment(held.newest_ms),
            blocks=held.blocks,
            dp_records=held.dp_records,
        ),
        blocks_alive=budget.blocks_alive,
        blocks_retired=budget.blocks_retired,
        least_left=budget.least_left,
        most_left=budget.most_left,
    )


def budget_summary(message: budget_pb2.Budget) -> views.BudgetSummary:
    """Back."""
    held = message.exposure
    return views.BudgetSummary(
        stream=message.stream,
        unit=message.unit,
        epsilon=message.epsilon,
        delta=message.delta,
        composition=message.composition,
        exposure=views.ExposureView(
            millis(held, "oldest"), millis(held, "newest"), held.blocks, held.dp_records
        ),
        blocks_alive=message.blocks_alive,
        blocks_retired=message.blocks_retired,
        least_left=optional(message, "least_left"),
        most_left=optional(message, "most_left"),
    )


def block_message(block: views.BlockLine) -> budget_pb2.Block:
    """A block."""
    return budget_pb2.Block(
        name=block.name,
        window=block.window,
        status=block.status,
        dp_records=block.dp_records,
        left=block.left,
        retired=block.retired or "",
    )


def block_line(message: budget_pb2.Block) -> views.BlockLine:
    """Back."""
    return views.BlockLine(
        name=message.name,
        window=message.window,
        status=message.status,
        dp_records=optional(message, "dp_records"),
        left=message.left,
        retired=message.retired or None,
    )


def charge_message(charge: views.ChargeLine) -> budget_pb2.Charge:
    """An entry of the ledger."""
    text = canonical(charge.entry).decode()
    return budget_pb2.Charge(
        number=charge.number, kind=charge.kind, key=charge.key, entry_json=text
    )


def charge_line(message: budget_pb2.Charge) -> views.ChargeLine:
    """Back."""
    entry = json_object(message.entry_json, "an entry of the ledger")
    return views.ChargeLine(message.number, message.kind, message.key, entry)


def ledger_map_message(book: views.LedgerMap) -> budget_pb2.GetLedgerMapResponse:
    """The ledger as a map."""
    return budget_pb2.GetLedgerMapResponse(
        stream=book.stream,
        begin=book.begin,
        count=book.count,
        blocks=book.blocks,
        columns=[budget_pb2.LedgerColumn(**column.as_json()) for column in book.columns],
        spenders=[budget_pb2.Spender(**spender.as_json()) for spender in book.spenders],
        entries=book.entries,
        oldest_entry=book.oldest_entry,
        purposes=[budget_pb2.Spender(**purpose.as_json()) for purpose in book.purposes],
        holders=book.holders,
    )


def ledger_map(message: budget_pb2.GetLedgerMapResponse) -> views.LedgerMap:
    """Back."""
    columns = (
        views.LedgerColumn(
            column.first,
            column.last,
            column.window,
            column.blocks,
            column.retired,
            tuple(column.shares),
            column.mean,
            column.flat,
        )
        for column in message.columns
    )
    spenders, purposes = (
        tuple(
            views.Spender(spender.who, spender.purpose, spender.charges, spender.most, spender.part)
            for spender in some
        )
        for some in (message.spenders, message.purposes)
    )
    return views.LedgerMap(
        message.stream,
        message.begin,
        message.count,
        message.blocks,
        tuple(columns),
        spenders,
        message.entries,
        message.oldest_entry,
        purposes,
        message.holders,
    )
