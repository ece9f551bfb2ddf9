"""Who is told how far a window has come: spans of a trace, and tests that stop it there.

An observer hears the name of a step and the moment: ``begins``, ``worked``, ``written``, and those
within a step that a crash could fall between. It is called in the thread of the window; what it
raises ends the window as a fault of the step would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Observer", "Observers"]

Observer = Callable[[str, str], None]


class Observers:
    """The observers of a store's windows, told in the order in which they came."""

    def __init__(self) -> None:
        """Nobody yet."""
        self._observers: tuple[Observer, ...] = ()

    def add(self, observer: Observer) -> None:
        """From now on it is told."""
        self._observers = (*self._observers, observer)

    def remove(self, observer: Observer) -> None:
        """No more. Nothing happens if it was not there."""
        self._observers = tuple(known for known in self._observers if known != observer)

    @contextmanager
    def watching(self, observer: Observer) -> Iterator[None]:
        """Told while the block runs."""
        self.add(observer)
        try:
            yield
        finally:
            self.remove(observer)

    def tell(self, step: str, moment: str) -> None:
        """All of them."""
        for observer in self._observers:
            observer(step, moment)
