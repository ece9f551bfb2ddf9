"""The one message authentication code of the project: keyed BLAKE2b-256, a purpose bound in.

Messages are fed in small pieces: hashing larger ones lets other threads run in between, which in
the middle of a group commit costs far more than the hash.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["MAC_BYTES", "mac_of"]

MAC_BYTES = 32
# hashlib gives up the interpreter lock from 2048 bytes on.
_PIECE = 2047


def mac_of(key: bytes, purpose: bytes, *parts: bytes) -> bytes:
    """The MAC of the parts, one after the other.

    Callers give parts of fixed length, but for the last one.
    """
    code = blake2b(key=key, digest_size=MAC_BYTES, person=purpose)
    for part in parts:
        for at in range(0, len(part), _PIECE):
            code.update(part[at : at + _PIECE])
    return code.digest()
