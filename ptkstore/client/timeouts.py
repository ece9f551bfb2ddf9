"""How long a call may take, in seconds."""

from __future__ import annotations

__all__ = ["LONG_SECONDS", "TIMEOUT_SECONDS"]

TIMEOUT_SECONDS = 30.0
# Registering tries a PTK out and plans for all; a doctor reads everything.
LONG_SECONDS = 300.0
