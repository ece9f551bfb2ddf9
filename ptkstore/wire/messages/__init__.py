"""Views to messages and back, subject by subject.

What goes through here and back again is equal to what went in.
"""

from ptkstore.wire.messages.budgets import (
    block_line,
    block_message,
    budget_message,
    budget_summary,
    charge_line,
    charge_message,
    ledger_map,
    ledger_map_message,
)
from ptkstore.wire.messages.events import (
    audit_message,
    audit_view,
    delivery_message,
    delivery_view,
    event_message,
    event_view,
)
from ptkstore.wire.messages.fields import json_object, millis, moment
from ptkstore.wire.messages.operations import (
    cycle_message,
    cycle_view,
    operation_message,
    operation_view,
)
from ptkstore.wire.messages.plans import plan_message, plan_view
from ptkstore.wire.messages.ptks import (
    applied_message,
    applied_view,
    profile_message,
    profile_view,
    ptk_message,
    ptk_view,
    registration_message,
    registration_view,
    state_message,
    state_view,
    status_number,
    status_word,
)
from ptkstore.wire.messages.streams import spec_of, stream_message

__all__ = [
    "applied_message",
    "applied_view",
    "audit_message",
    "audit_view",
    "block_line",
    "block_message",
    "budget_message",
    "budget_summary",
    "charge_line",
    "charge_message",
    "cycle_message",
    "cycle_view",
    "delivery_message",
    "delivery_view",
    "event_message",
    "event_view",
    "json_object",
    "ledger_map",
    "ledger_map_message",
    "millis",
    "moment",
    "operation_message",
    "operation_view",
    "plan_message",
    "plan_view",
    "profile_message",
    "profile_view",
    "ptk_message",
    "ptk_view",
    "registration_message",
    "registration_view",
    "spec_of",
    "state_message",
    "state_view",
    "status_number",
    "status_word",
    "stream_message",
]
