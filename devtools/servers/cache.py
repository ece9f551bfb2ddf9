"""What was fetched or built, kept for the user and by version, so that a second run and a fresh
clone find it.

A directory of the cache is there as a whole or not at all: it is made under another name and
renamed. Two who want the same at once take turns, and the second finds what the first made.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Say", "ServerMissing", "cache_directory", "cached", "find_cached", "tell", "unpack"]

Say = Callable[[str], None]


class ServerMissing(Exception):
    """A server cannot be had here. The text says which, why, and what to do."""


_REMOVALS = 20


def tell(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def unpack(packed: Path, place: Path) -> None:
    """Unpack a tar archive, with nothing outside of the place where Python can see to it (3.11.4
    and later).
    """
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(packed) as archive:
        archive.extractall(place, **safely)  # type: ignore[arg-type]


def cache_directory() -> Path:
    """``$SAGE_SERVERS_CACHE``, or a directory of ours in the user's cache."""
    own = os.environ.get("SAGE_SERVERS_CACHE")
    users = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(own) if own else Path(users) / "sage-servers"


def find_cached(name: str, version: str) -> Path | None:
    """The directory, where there is one already."""
    place = _place(name, version)
    return place if place.is_dir() else None


def cached(name: str, version: str, make: Callable[[Path], None], say: Say) -> Path:
    """The directory of that version; ``make`` fills it the first time."""
    place = _place(name, version)
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with _turn(place, say):
            if not place.is_dir():
                _fill(place, make)
    return place


def _place(name: str, version: str) -> Path:
    return cache_directory() / f"{name}-{version}-{platform.system().lower()}-{platform.machine()}"


def _fill(place: Path, make: Callable[[Path], None]) -> None:
    for left in place.parent.glob(f".{place.name}-*"):
        shutil.rmtree(left, ignore_errors=True)  # of one who was killed: it is our turn
    draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        make(draft)
        draft.chmod(0o755)
        draft.rename(place)
    except BaseException:
        # What was stopped may still be writing for a moment.
        for _ in range(_REMOVALS):
            shutil.rmtree(draft, ignore_errors=True)
            if not draft.exists():
                break
            time.sleep(0.1)
        raise


@contextmanager
def _turn(place: Path, say: Say) -> Iterator[None]:
    """Nobody else makes this one meanwhile; the lock goes with its process."""
    with open(place.with_name(f".{place.name}.lock"), "w") as lock:
        said = time.monotonic()
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - said > 15:
                    said = time.monotonic()
                    say(f"{place.name}: waiting for another process that is getting it")
                time.sleep(0.1)
        yield
