"""Tags: 64 bits for every record, which say nothing about other records.

Event level: uniform random bits from the system's source, fresh for every record. User level: a
keyed pseudorandom function of the user, so that all records of a user share one tag and fall into
the same slices: AES-256 of the integer id (a permutation of 128-bit blocks, cut to 64 bits) or
keyed BLAKE2b of the text. The key is made with the stream and never leaves its key directory;
without it a tag does not tell its user.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ptklib.privacy.noise.source import BitSource, require_secure

__all__ = ["Tags", "random_tags", "user_tags"]

Tags = NDArray[np.uint64]

_PERSON = b"sage user tag v1"


def random_tags(count: int, *, source: BitSource | None = None) -> Tags:
    """``count`` fresh tags. Unit: records, event level."""
    return require_secure(source).words(count)


def user_tags(users: pa.Array, key: bytes) -> Tags:
    """One tag per row, equal for equal users. Unit: users."""
    if pa.types.is_integer(users.type):
        blocks = np.zeros((len(users), 2), dtype="<i8")
        blocks[:, 0] = users.to_numpy(zero_copy_only=False)
        # ECB on purpose: a deterministic function of each block by itself is what a tag is.
        cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305
        return np.frombuffer(cipher.update(blocks.tobytes()) + cipher.finalize(), dtype="<u8")[
            ::2
        ].astype(np.uint64)
    encoded = pc.dictionary_encode(users)
    hashed = [
        hashlib.blake2b(user.encode(), digest_size=8, key=key, person=_PERSON).digest()
        for user in encoded.dictionary.to_pylist()
    ]
    tags = np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64)
    result: Tags = tags[encoded.indices.to_numpy(zero_copy_only=False)]
    return result
