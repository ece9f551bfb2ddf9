"""The name of a state: one digest of its two files, the same in a lake, in an export, in a message
and in memory.

It is ``sha256("sage state v1\\n" | sha256(arrays) | sha256(manifest))`` in lower-case hex, so both
files are bound to it and neither can be swapped. A manifest holds the digest of its arrays:
whoever has the manifest alone (the certificate of an export) knows the name too.
"""

from __future__ import annotations

import hashlib
import re

__all__ = ["digest_of", "digest_of_manifest"]

_PURPOSE = b"sage state v1\n"


def digest_of(arrays: bytes, manifest: bytes) -> str:
    """The digest of a state by the bytes of its files."""
    return digest_of_manifest(hashlib.sha256(arrays).hexdigest(), manifest)


def digest_of_manifest(arrays_sha256: str, manifest: bytes) -> str:
    """The digest of a state whose arrays have this sha256, in hex; ValueError for another text."""
    if not isinstance(arrays_sha256, str) or not re.fullmatch(r"[0-9a-f]{64}", arrays_sha256):
        raise ValueError("a sha256 must be 64 lower-case hex digits")
    parts = bytes.fromhex(arrays_sha256) + hashlib.sha256(manifest).digest()
    return hashlib.sha256(_PURPOSE + parts).hexdigest()
