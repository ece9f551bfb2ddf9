"""Noise sources for tests, and the gate that admits them. Never imported by the library itself.

``with planted_noise():`` lets the samplers take sources other than `SystemSource`, in this thread
and context only, and only while a pytest test runs. Outside one it refuses with
TEST_NOISE_OUTSIDE_TESTS.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InsecureNoise
from ptklib.privacy.noise.source import TEST_NOISE_OPEN, BitSource

__all__ = ["PlantedSource", "SeededSource", "planted_noise"]


@contextmanager
def planted_noise() -> Iterator[None]:
    """Admit test sources until the block ends."""
    if "PYTEST_CURRENT_TEST" not in os.environ:
        raise InsecureNoise(
            "TEST_NOISE_OUTSIDE_TESTS",
            "planted_noise() must be used inside a running pytest test, found none; use the "
            "default source",
        )
    token = TEST_NOISE_OPEN.set(True)
    try:
        yield
    finally:
        TEST_NOISE_OPEN.reset(token)


class SeededSource:
    """Deterministic words from a seed (Philox). Repeatable, therefore not private."""

    def __init__(self, seed: int) -> None:
        """The same seed gives the same words, whatever the sizes of the calls."""
        self._generator = np.random.Philox(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next ``count`` words."""
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)


class PlantedSource:
    """Gives the planted words first, in order, then those of ``then`` (or fails when there is
    none).
    """

    def __init__(self, planted: Iterable[int], then: BitSource | None = None) -> None:
        """``planted`` are integers in [0, 2**64)."""
        self._planted = np.array(list(planted), dtype=np.uint64)
        self._then = then

    @property
    def left(self) -> int:
        """How many planted words were not taken yet."""
        return len(self._planted)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next ``count`` words."""
        head, self._planted = self._planted[:count], self._planted[count:]
        missing = count - len(head)
        if missing == 0:
            return head.copy()
        if self._then is None:
            raise LookupError(f"the planted words ran out: {missing} more were asked for")
        return np.concatenate([head, self._then.words(missing)])
