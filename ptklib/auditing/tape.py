"""What a training releases, call by call, and the same training on other data that is told the
same.

`record` runs a function and keeps every release that it makes: the mechanism, what it was given and
what it told, and the words that were drawn besides (random starts, trees of records). `replay` runs
a function on other data **with those answers and words in place of fresh ones**, and keeps what the
mechanisms were given this time. So for an adaptive chain of releases one learns what the other data
would have put behind each answer: the exact log-likelihood ratio of the whole chain is the sum of
those of its links (`likelihood`).

Words drawn besides are the same whatever the data: they may be given away with the releases without
telling anything. Where the other data asks for more words than were recorded (one record more needs
a tree of its own), fresh ones follow.

*How.* While a tape runs, the ``release`` of the mechanisms in `TAPPED` and `SystemSource.words` are
replaced by ones that look for a tape in their own context; every other thread and task of the
process goes straight through. Raw inputs are kept in memory, so this must see invented data only:
it is not used by anything that opens a stream.

Reason of `InvalidInput`: RELEASES_DIFFER (how many releases there are, or of which mechanisms,
depends on the data: an unnoised answer by itself).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.mechanisms.release import CountRelease, GaussianRelease, LaplaceRelease
from ptklib.privacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from ptklib.privacy.noise.source import SystemSource
from ptklib.ptks.clusters.noise import CubeRelease
from ptklib.ptks.covariance.noise import WishartRelease

__all__ = ["TAPPED", "Tape", "TapeEntry", "record", "replay"]

TAPPED = (
    CountRelease,
    CubeRelease,
    ExponentialMechanism,
    GaussianRelease,
    LaplaceRelease,
    LargeMargin,
    NoisyMax,
    WishartRelease,
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class TapeEntry:
    """One release: the mechanism, its exact input (whole numbers) and its answer."""

    mechanism: Any
    given: NDArray[Any]
    answer: Any

    @property
    def told(self) -> NDArray[np.int64]:
        """The answer as whole numbers."""
        for name in ("values", "value", "index"):
            if hasattr(self.answer, name):
                return np.atleast_1d(np.asarray(getattr(self.answer, name), dtype=np.int64))
        return np.asarray(self.answer, dtype=np.int64)


@dataclass
class Tape:
    """The releases of one run, in order, and the words drawn besides."""

    entries: list[TapeEntry] = field(default_factory=list)
    words: list[NDArray[np.uint64]] = field(default_factory=list)


@dataclass
class _Run:
    """A tape in the making; with ``heard`` the answers of another one are given."""

    made: Tape
    heard: Tape | None = None
    inside: bool = False

    def release(
        self, original: Callable[..., Any], mechanism: Any, values: Any, source: Any
    ) -> Any:
        given = np.array(values)
        if self.heard is None:
            self.inside = True
            try:
                answer = original(mechanism, values, source=source)
            finally:
                self.inside = False
        else:
            answer = self._heard(mechanism, given)
        self.made.entries.append(
            TapeEntry(mechanism, given, answer.copy() if isinstance(answer, np.ndarray) else answer)
        )
        return answer

    def _heard(self, mechanism: Any, given: NDArray[Any]) -> Any:
        assert self.heard is not None
        place = len(self.made.entries)
        if place >= len(self.heard.entries):
            raise _differ(f"release number {place + 1} is made on one side only")
        tape_entry = self.heard.entries[place]
        if tape_entry.mechanism != mechanism or tape_entry.given.shape != given.shape:
            raise _differ(f"release number {place + 1} is another one on the other side")
        return (
            tape_entry.answer.copy()
            if isinstance(tape_entry.answer, np.ndarray)
            else tape_entry.answer
        )

    def words(self, original: Callable[..., Any], source: Any, count: int) -> NDArray[np.uint64]:
        place, words = len(self.made.words), original(source, count)
        if self.heard is not None and place < len(self.heard.words):
            known = self.heard.words[place][:count]
            words[: len(known)] = known
        self.made.words.append(words.copy())
        return np.asarray(words, dtype=np.uint64)


_running: ContextVar[_Run | None] = ContextVar("_running", default=None)
_lock = threading.Lock()
_users = 0
_originals: dict[type, Any] = {}


def record(run: Callable[[], Result]) -> tuple[Tape, Result]:
    """The tape of a run with fresh noise, and what the run gave."""
    return _taped(_Run(Tape()), run)


def replay(tape: Tape, run: Callable[[], Result]) -> tuple[Tape, Result]:
    """The tape of a run that is told what ``tape`` has, and what the run gave.

    Raises RELEASES_DIFFER.
    """
    made = _taped(_Run(Tape(), tape), run)
    if len(made[0].entries) != len(tape.entries):
        raise _differ(
            f"one side makes {len(tape.entries)} releases and the other {len(made[0].entries)}"
        )
    return made


def _taped(state: _Run, run: Callable[[], Result]) -> tuple[Tape, Result]:
    with _tapped():
        token = _running.set(state)
        try:
            return state.made, run()
        finally:
            _running.reset(token)


@contextmanager
def _tapped() -> Iterator[None]:
    """Put the taps in place for as long as anybody needs them."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            for kind in TAPPED:
                _originals[kind] = kind.release
                kind.release = _release_of(kind.release)  # type: ignore[method-assign]
            _originals[SystemSource] = SystemSource.words
            SystemSource.words = _words_of(SystemSource.words)  # type: ignore[method-assign]
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for kind in TAPPED:
                    kind.release = _originals.pop(kind)  # type: ignore[method-assign]
                SystemSource.words = _originals.pop(SystemSource)  # type: ignore[method-assign]


def _release_of(original: Callable[..., Any]) -> Callable[..., Any]:
    def release(self: Any, values: Any, *, source: Any = None) -> Any:
        state = _running.get()
        if state is None or state.inside:
            return original(self, values, source=source)
        return state.release(original, self, values, source)

    return release


def _words_of(original: Callable[..., Any]) -> Callable[..., Any]:
    def words(self: Any, count: int) -> NDArray[np.uint64]:
        state = _running.get()
        if state is None or state.inside:
            fresh_words: NDArray[np.uint64] = original(self, count)
            return fresh_words
        return state.words(original, self, count)

    return words


def _differ(words: str) -> InvalidInput:
    return InvalidInput(
        "RELEASES_DIFFER", f"the releases of a training must not depend on its data: {words}"
    )
