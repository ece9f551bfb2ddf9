"""What all views have in common."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ptklib.encoding.notebook import html_of

__all__ = ["View"]


class View:
    """A value that can be printed."""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return html_of(type(self).__name__.removesuffix("View"), self.as_json())
