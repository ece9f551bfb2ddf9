"""What every step is: a value, the name of its row, and one codec to and from the JSON body that is
stored.

A body that an earlier version wrote is read as well: what it does not have is what was meant then.
The rows of one step that belong to single PTKs are named ``STEP:PART``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

__all__ = ["Step", "row_name"]


class Step(Protocol):
    """Something that a window has done, as it is journalled."""

    # Of its row; of all its rows where it has parts.
    STEP: ClassVar[str]

    def as_json(self) -> Any:
        """The body, plain JSON values."""

    @classmethod
    def from_json(cls, body: Any) -> Self:
        """Read `as_json` back, and what earlier versions wrote."""


def row_name(step: type[Step], part: str = "") -> str:
    """The name of the row of a step, or of one part of it."""
    return f"{step.STEP}:{part}" if part else step.STEP
