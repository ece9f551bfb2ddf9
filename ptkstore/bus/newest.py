"""Follow what hints are about: hints only say when to look, the truth is read.

`Newest` calls back with the newest value of something that has versions, each version at most once and never an older one. It
looks at the start, when a hint comes, after every connection of a bus that can lose it, and from time to time anyway; so no
lost hint, no restart of the bus and no silence costs more than a delay.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

from ptklib.errors import InvalidInput, SageError
from ptkstore.bus.protocol import Bus, Handle

__all__ = ["Newest"]

Value = TypeVar("Value")
_LOG = logging.getLogger(__name__)


class Newest(Generic[Value]):
    """Follows the subject ``name`` of the events on a bus.

    ``read`` returns the newest (version, value), or None while there is none; ``changed`` is called with a value whose version
    is above all before. Both run in one thread of its own. ``read`` may raise a SageError: it is asked again, later.
    """

    def __init__(
        self,
        bus: Bus,
        name: str,
        read: Callable[[], tuple[int, Value] | None],
        changed: Callable[[Value], None],
        *,
        poll_seconds: float = 60.0,
        first_delay_seconds: float = 0.1,
        longest_delay_seconds: float = 10.0,
    ) -> None:
        """Listen and look."""
        if poll_seconds <= 0 or not 0 < first_delay_seconds <= longest_delay_seconds:
            raise InvalidInput("VALUE_INVALID", "times must be positive, the first delay not above the longest")
        self._name = name
        self._read = read
        self._changed = changed
        self._poll = poll_seconds
        self._first_delay = first_delay_seconds
        self._longest_delay = longest_delay_seconds
        self._woken = threading.Event()
        self._closed = threading.Event()
        self._version: int | None = None
        self._handles: list[Handle] = [bus.subscribe("sage.*", self._hint)]
        on_connect = getattr(bus, "on_connect", None)
        if on_connect is not None:
            self._handles.append(on_connect(self._woken.set))
        # Listening comes first: what happens from now on wakes us, what happened before is read.
        threading.Thread(target=self._follow, name=f"sage-newest {name:.40}", daemon=True).start()

    def close(self) -> None:
        """Look no more. A call under way may still be running. Safe to call twice, and from the callback."""
        for handle in self._handles:
            handle.close()
        self._closed.set()
        self._woken.set()

    def __enter__(self) -> Newest[Value]:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _hint(self, _topic: str, message: dict[str, Any]) -> None:
        if message.get("subject") == self._name:
            self._woken.set()

    def _follow(self) -> None:
        delay = self._first_delay
        while not self._closed.is_set():
            self._woken.clear()
            try:
                self._look()
                wait, delay = self._poll, self._first_delay
            except SageError as error:
                _LOG.warning("the newest of %s cannot be read now: %s", self._name, error.reason)
                wait, delay = delay, min(self._longest_delay, 2 * delay)
            self._woken.wait(wait)

    def _look(self) -> None:
        found = self._read()
        if found is None or (self._version is not None and found[0] <= self._version) or self._closed.is_set():
            return
        self._version = found[0]
        try:
            self._changed(found[1])
        except Exception as error:  # a callback that fails is told of the next version all the same
            _LOG.warning("a follower of %s failed with %s", self._name, type(error).__name__)
