"""What all views have in common."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

__all__ = ["View"]


class View:
    """A value that can be printed."""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]
