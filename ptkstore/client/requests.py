"""What goes into requests: fresh ids, configurations, statuses, sizes of pages, and the changes of
a what-if. Reasons: JSON_INVALID, VALUE_INVALID.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from ptklib.errors import InvalidInput
from ptkstore.api.changes import Changes
from ptkstore.v1 import plan_pb2
from ptkstore.wire import messages

__all__ = [
    "LARGEST",
    "LONGEST",
    "PAGE",
    "config_json",
    "fresh_id",
    "page_size",
    "plan_changes",
    "ptk_status",
]

# What a server gives at once.
PAGE = 1000
# The largest numbers of fields with 32 and 64 bits.
LARGEST, LONGEST = (1 << 31) - 1, (1 << 63) - 1


def fresh_id() -> str:
    """A request_id that nobody has used."""
    return uuid.uuid4().hex


def config_json(config: Mapping[str, Any]) -> str:
    """A configuration as JSON. Reason: JSON_INVALID."""
    try:
        return json.dumps(dict(config), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("JSON_INVALID", "a configuration must be a JSON object") from None


def ptk_status(word: str) -> Any:
    """The status of a PTK on the wire. Reason: VALUE_INVALID."""
    try:
        return messages.status_number(word)
    except ValueError:
        raise InvalidInput(
            "VALUE_INVALID", f"status must be one that a PTK can have, got {word!r:.80}"
        ) from None


def page_size(limit: int) -> int:
    """What fits the message and means the same."""
    return max(-1, min(limit, PAGE))


def plan_changes(asked: Changes) -> list[plan_pb2.PlanChange]:
    """The PTKs that a what-if adds, removes and retargets."""
    added = [
        plan_pb2.AddPtk(
            name=ptk.name,
            kind=ptk.kind,
            config_json=config_json(ptk.config),
            target=ptk.goal.target or 0.0,
            over=ptk.over,
            epsilon=ptk.goal.epsilon or "",
        )
        for ptk in asked.add
    ]
    retargeted = [
        plan_pb2.RetargetPtk(name=name, target=goal.target or 0.0, epsilon=goal.epsilon or "")
        for name, goal in asked.goals.items()
    ]
    return [
        *(plan_pb2.PlanChange(add=add_ptk) for add_ptk in added),
        *(plan_pb2.PlanChange(remove=name) for name in asked.remove),
        *(plan_pb2.PlanChange(retarget=retarget_ptk) for retarget_ptk in retargeted),
    ]
