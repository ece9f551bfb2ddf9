"""Which records are in which batch: drawn record by record, from secret bits.

* `PoissonBatches`: at each step every record is in the batch with the same chance, independently of
  all others and of all steps. What is drawn is how many records are passed over before the next one
  that is in, along steps and records in one line: a geometric number, exactly.
* `TaggedBatches`: once an epoch every record is in the batch that its own tag says under the key of
  the epoch. The tag is a keyed hash of the record's row and label, so the batch of a record depends
  on that record and on the key alone: not on other records, not on its place, and the same after a
  run was stopped and taken up again. Records that are alike are in one batch.

**Proof note.** *Unit:* one record. *Poisson:* numbers passed over are at least k with probability
exp(-k / scale) exactly (`sampler.geometric`), and scale is rounded up, so the chance 1 - exp(-1 /
scale) of each record is at most ``rate``, the one that is priced, and draws are independent of each
other. *Tags:* batches of an epoch are disjoint and a record that is added or removed moves no
other, so what an epoch releases is as private as one batch, without amplification. *Cost:* none
here. How many records a batch has is as private as the records: nothing tells it.

Reasons: none of its own.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ptklib.privacy import curves
from ptklib.privacy.noise.sampler import geometric
from ptklib.privacy.noise.source import BitSource, require_secure

__all__ = ["KEY_BYTES", "MAX_RATE", "PoissonBatches", "TaggedBatches", "new_key", "tags_of"]

Places = NDArray[np.intp]
Tags = NDArray[np.uint64]

KEY_BYTES = 32
# The chance of a record at one step, unless it is 1: beyond, hardly any numbers are left to draw.
MAX_RATE = Fraction(99, 100)

# Scales are rounded up to one over this.
_GRID = 10**9
_LEAST_DRAWN, _MOST_DRAWN = 1 << 10, 1 << 16
_WORDS_OF_KEY = KEY_BYTES // 8


class PoissonBatches:
    """Batches of ``records`` records at a rate, step by step without end."""

    def __init__(self, records: int, rate: Fraction, source: BitSource | None) -> None:
        """Nothing is drawn yet."""
        self._records, self._rate = records, float(rate)
        self._whole = rate == 1
        self._source = require_secure(source)
        if not self._whole:
            scale = curves.up(-1 / math.log1p(-float(rate)))
            self._scale = Fraction(math.ceil(scale * _GRID) + 1, _GRID)
        # Places of members, counted along records and steps from the start of the next batch.
        self._ahead: Places = np.zeros(0, dtype=np.intp)
        self._last = -1

    def batch(self) -> Places:
        """Places of the members of the next batch, rising."""
        if self._whole or not self._records:
            return np.arange(self._records)
        while self._last < self._records:
            self._draw()
        stop = int(np.searchsorted(self._ahead, self._records))
        members, self._ahead = self._ahead[:stop], self._ahead[stop:] - self._records
        self._last -= self._records
        return members

    def _draw(self) -> None:
        wanted = 4 * self._rate * self._records
        count = int(min(_MOST_DRAWN, max(_LEAST_DRAWN, wanted)))
        passed = geometric(count, self._scale, source=self._source)
        # A place beyond every batch that will be drawn is as good as any other.
        np.minimum(passed, 1 << 40, out=passed)
        places = np.cumsum(passed + 1) + self._last
        self._ahead = np.concatenate([self._ahead, places])
        self._last = int(places[-1])


class TaggedBatches:
    """The batches of one epoch, from the tags of all records and the key of the epoch."""

    def __init__(self, tags: Tags, key: bytes, batches: int) -> None:
        """Deal all records."""
        numbers = _enciphered(tags, key)
        # The upper 32 bits of a uniform number, times how many batches there are.
        dealt = ((numbers >> np.uint64(32)) * np.uint64(batches)) >> np.uint64(32)
        self._order = np.argsort(dealt, kind="stable")
        self._starts = np.searchsorted(dealt[self._order], np.arange(batches + 1, dtype=np.uint64))

    def batch(self, place: int) -> Places:
        """Places of the members of this batch of the epoch, rising."""
        return self._order[self._starts[place] : self._starts[place + 1]]


def new_key(source: BitSource | None) -> bytes:
    """A fresh key."""
    return require_secure(source).words(_WORDS_OF_KEY).tobytes()


def tags_of(rows: NDArray[np.float32], labels: NDArray[np.float32], key: bytes) -> Tags:
    """A keyed hash of each row of whole numbers with its label: a sum of products with secret odd
    numbers, modulo 2**64, then enciphered.
    """
    words = np.frombuffer(_stream(key, 8 * (rows.shape[1] + 1)), dtype=np.uint64) | np.uint64(1)
    whole = rows.astype(np.int64).view(np.uint64)
    whole *= words[:-1]
    tags = whole.sum(axis=1, dtype=np.uint64)
    tags += labels.astype(np.float64).view(np.uint64) * words[-1]
    return _enciphered(tags, key)


def _enciphered(tags: Tags, key: bytes) -> Tags:
    """The first half of AES of each tag."""
    blocks = np.zeros((len(tags), 2), dtype=np.uint64)
    blocks[:, 0] = tags
    # A block on its own, on purpose: equal tags must have equal numbers.
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305
    made = np.frombuffer(cipher.update(blocks.tobytes()) + cipher.finalize(), dtype=np.uint64)
    return made[::2].copy()


def _stream(key: bytes, size: int) -> bytes:
    """Bytes that follow from a key."""
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))
