"""Sessions: a random number in a cookie here, everything else (the store, and with it the token) in
this process alone.

A restart ends them all. Thread-safe.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from ptkstore.api.store import Store
from ptkstore.api.views import CallerView
from ptkstore.console.sessions.settings import ConsoleSettings

__all__ = ["ConsoleSession", "OneTimeKeys", "Sessions"]

Value = TypeVar("Value")
_MOST_REMEMBERED = 2000


@dataclass
class ConsoleSession:
    """One visitor. ``csrf`` must come back with everything that changes something."""

    id: str
    store: Store
    caller: CallerView
    began: float
    seen: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _remembered: dict[Hashable, tuple[float, object]] = field(default_factory=dict)

    def may(self, role: str) -> bool:
        """True for a role of the visitor.

        Operators may do everything; whoever is anything may read, but for producers.
        """
        mine = set(self.caller.roles)
        return bool(mine & {"operator", role} or (role == "reader" and "developer" in mine))

    def remember(self, key: Hashable, seconds: float, read: Callable[[], Value]) -> Value:
        """What ``read`` gave at most so many seconds ago, for this visitor: pages ask for the same
        again and again.
        """
        now = time.monotonic()
        with self._lock:
            until, known = self._remembered.get(key, (now, None))
            if now < until:
                return known  # type: ignore[return-value]
        value = read()
        with self._lock:
            kept = {
                known_key: held for known_key, held in self._remembered.items() if now < held[0]
            }
            self._remembered = kept if len(kept) < _MOST_REMEMBERED else {}
            self._remembered[key] = (now + seconds, value)
        return value

    def forget(self) -> None:
        """Something was changed: look again."""
        with self._lock:
            self._remembered.clear()


class Sessions:
    """All sessions. ``end`` is called with the store of each that is over."""

    def __init__(
        self,
        settings: ConsoleSettings,
        end: Callable[[Store], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nobody is here yet."""
        self._settings = settings
        self._end = end
        self._clock = clock
        self._lock = threading.Lock()
        self._all: dict[str, ConsoleSession] = {}

    def begin(self, store: Store, caller: CallerView) -> ConsoleSession:
        """A new session. Where there are too many, the one that was idle longest ends."""
        now = self._clock()
        made = ConsoleSession(secrets.token_urlsafe(32), store, caller, began=now, seen=now)
        over = []
        with self._lock:
            over += self._take_over(now)
            while len(self._all) >= self._settings.most_sessions:
                oldest = min(self._all.values(), key=lambda session: session.seen)
                over.append(self._all.pop(oldest.id))
            self._all[made.id] = made
        self._close(over)
        return made

    def find(self, number: str, *, touch: bool = True) -> ConsoleSession | None:
        """The session with that number, unless it is over.

        ``touch`` says that somebody is there.
        """
        now = self._clock()
        with self._lock:
            over = self._take_over(now)
            console_session = self._all.get(number)
            if console_session is not None and touch:
                console_session.seen = now
        self._close(over)
        return console_session

    def end(self, number: str) -> None:
        """Sign out."""
        with self._lock:
            console_session = self._all.pop(number, None)
        self._close([console_session] if console_session is not None else [])

    def end_all(self) -> None:
        """The console stops."""
        with self._lock:
            over, self._all = list(self._all.values()), {}
        self._close(over)

    def _take_over(self, now: float) -> list[ConsoleSession]:
        limits = self._settings
        over = [
            console_session
            for console_session in self._all.values()
            if now - console_session.seen >= limits.idle_seconds
            or now - console_session.began >= limits.longest_seconds
        ]
        for console_session in over:
            del self._all[console_session.id]
        return over

    def _close(self, over: list[ConsoleSession]) -> None:
        for console_session in over:
            self._end(console_session.store)


class OneTimeKeys:
    """Secrets in links that open the console once, as notebooks do."""

    def __init__(self) -> None:
        """None is valid yet."""
        self._lock = threading.Lock()
        self._valid: list[str] = []

    def make(self) -> str:
        """A new one."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._valid.append(key)
        return key

    def use(self, key: str) -> bool:
        """True the first time, for one that was made."""
        with self._lock:
            for valid_key in self._valid:
                if hmac.compare_digest(valid_key.encode(), key.encode()):
                    self._valid.remove(valid_key)
                    return True
        return False
