"""Where noise bits come from: a cryptographic generator, and a gate that keeps every other source
inside tests.

`SystemSource` is the only source that production code can use. It is AES-256 in counter mode under
keys taken from the operating system; the key is dropped after `_REKEY_BYTES` of output, so a
captured state says nothing about most of the noise drawn before it. A forked child never repeats
its parent's words: the state is dropped in the child by a fork hook, and the process id is checked
on every call for forks that bypass Python's hooks.

`require_secure` is called by every sampler. A source of any other type (subclasses included: there
are none, the class is final) is refused unless the gate is open, and only
``ptklib.testing.noise.planted_noise`` opens it, which in turn works only while a pytest test runs.

Known limit: a virtual machine that is cloned while running repeats the words of its twin until the
next re-keying.

Reasons: TEST_NOISE_OUTSIDE_TESTS, WORD_COUNT_INVALID.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextvars import ContextVar
from typing import Protocol, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from ptklib.errors import InsecureNoise, InvalidInput

__all__ = ["TEST_NOISE_OPEN", "BitSource", "SystemSource", "require_secure"]

_WORD_BYTES = 8
_BLOCK_BYTES = 16
_CHUNK_BYTES = 1 << 18
_REKEY_BYTES = 1 << 24
_ZEROS = memoryview(bytes(_CHUNK_BYTES))

# Opened only by `ptklib.testing.noise.planted_noise`.
TEST_NOISE_OPEN: ContextVar[bool] = ContextVar("test_noise_open", default=False)


class BitSource(Protocol):
    """Anything that gives independent uniform 64-bit words."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` fresh words in an array that the caller owns and may overwrite."""
        ...


@final
class SystemSource:
    """AES-256-CTR under keys from the operating system; safe across threads and forks.

    Slots, so that no instance can have its ``words`` replaced and still pass for this type.
    """

    __slots__ = ("__weakref__", "_cipher", "_left_bytes", "_lock", "_pid")

    _cipher: CipherContext | None
    _left_bytes: int
    _lock: threading.Lock
    _pid: int

    def __init__(self) -> None:
        """Take no key yet: the first call of `words` does."""
        self._drop()
        _instances.add(self)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` independent uniform words."""
        if count < 0:
            raise InvalidInput("WORD_COUNT_INVALID", f"count must be at least 0, got {count}")
        # The cipher asks for one block of room beyond what it writes.
        room = np.empty(count + _BLOCK_BYTES // _WORD_BYTES, dtype=np.uint64)
        into = room.view(np.uint8).data
        done, total = 0, count * _WORD_BYTES
        with self._lock:
            while done < total:
                size = min(_CHUNK_BYTES, total - done)
                done += self._keyed(size).update_into(_ZEROS[:size], into[done:])
        return room[:count]

    def _keyed(self, size: int) -> CipherContext:
        """The cipher with at least ``size`` bytes left under its key, in this process."""
        pid = os.getpid()
        if self._cipher is None or self._left_bytes < size or self._pid != pid:
            # A fresh random key makes the all-zero counter safe: no (key, counter) pair is used
            # twice.
            self._cipher = Cipher(
                algorithms.AES256(os.urandom(32)), modes.CTR(bytes(_BLOCK_BYTES))
            ).encryptor()
            self._left_bytes = _REKEY_BYTES
            self._pid = pid
        self._left_bytes -= size
        return self._cipher

    def _drop(self) -> None:
        """Forget the key.

        In a forked child the lock may be held by a thread that no longer exists, so it is new too.
        """
        self._lock = threading.Lock()
        self._cipher = None
        self._left_bytes = 0
        self._pid = -1

    def __reduce__(self) -> str | tuple[object, ...]:
        """A copy in another process takes its own key: the state never travels."""
        return (SystemSource, ())


_instances: weakref.WeakSet[SystemSource] = weakref.WeakSet()
_system = SystemSource()


def _drop_all() -> None:
    for instance in list(_instances):
        instance._drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)


def require_secure(source: BitSource | None) -> BitSource:
    """The process-wide `SystemSource` for None, a `SystemSource` as it is; anything else only
    inside a gated test.
    """
    if source is None:
        return _system
    if type(source) is SystemSource or TEST_NOISE_OPEN.get():
        return source
    raise InsecureNoise(
        "TEST_NOISE_OUTSIDE_TESTS",
        f"source must be a SystemSource (or None), got {type(source).__name__}; other sources work "
        "only inside "
        "ptklib.testing.noise.planted_noise() while a pytest test runs",
        source=type(source).__name__,
    )
