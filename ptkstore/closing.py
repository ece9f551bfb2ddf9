"""What is closed at the end of a ``with`` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """Something with an end: ``with`` gives it, and closes it when the block is left."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Safe to call twice."""

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, however the block ended."""
        self.close()
