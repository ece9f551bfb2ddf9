"""The loss of the best constant, where a profile has measured it: for PTKs that have no profile of
their own. Post-processing of what was charged then: free.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptkstore.metadata.database.store import Transaction

__all__ = ["known_constant"]


def known_constant(
    tx: Transaction, stream: str, kind: str, config: Mapping[str, Any]
) -> float | None:
    """By the newest profile of a PTK of this configuration on the stream; None where none says so."""
    known = [
        (profile.id, (profile.samples.get("constant") or {}).get("risk"))
        for row in tx.ptks.list(stream)
        if row.kind == kind and row.config == config
        for profile in tx.profiles.list(row.id)
        if profile.config_version == row.config_version
    ]
    risks = [(number, risk) for number, risk in known if risk is not None]
    return max(risks)[1] if risks else None
