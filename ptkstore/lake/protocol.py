"""What a lake is: states under the digest of their bytes, immutable, whole or not there.

The digest of a state is that of `ptklib.encoding.state_digest`. Besides, a lake keeps a witness for
each store that uses it: a few bytes, which are replaced. Reasons: DIGEST_INVALID, STATE_MISSING,
STATE_DAMAGED, LAKE_UNAVAILABLE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Protocol

from ptklib.encoding.state_digest import digest_of
from ptklib.errors import InvalidInput, LakeUnavailable, StateDamaged, StateMissing

__all__ = [
    "ARRAYS",
    "GRACE_SECONDS",
    "MANIFEST",
    "STATES",
    "Lake",
    "LakeUnavailable",
    "StateDamaged",
    "StateMissing",
    "check_digest",
    "checked_state",
    "state_key",
    "state_missing",
]

# A state is two files, whose names are its digest and one of these.
STATES = "sha256/"
ARRAYS, MANIFEST = ".safetensors", ".json"

# Bytes are put before the row that refers to them is committed; nothing that young is ever swept.
GRACE_SECONDS = 24 * 3600.0


class Lake(Protocol):
    """A place for states. Safe for many threads and processes at once."""

    def put(self, arrays: bytes, manifest: bytes) -> str:
        """Keep a state and return its digest.

        Durable on return; the same again is the same digest, and mends damage.
        """

    def get(self, digest: str) -> tuple[bytes, bytes]:
        """The arrays and the manifest, checked against the digest:

        STATE_MISSING or STATE_DAMAGED otherwise.
        """

    def exists(self, digest: str) -> bool:
        """True when the state is there and whole, as far as one can tell without reading it."""

    def list(self, *, limit: int | None = None, after: str | None = None) -> tuple[str, ...]:
        """The digests of whole states in order; ``after`` is the last one of the page before."""

    def delete_unreferenced(
        self, keep: Collection[str], *, grace_seconds: float = GRACE_SECONDS
    ) -> tuple[str, ...]:
        """Delete every state not in ``keep`` that was last put more than ``grace_seconds`` ago, and
        what crashes left behind; return the digests deleted. The grace protects states whose row is
        not committed yet.
        """

    def put_witness(self, name: str, body: bytes) -> None:
        """Keep a few bytes under a name of 64 hex digits, in place of those before.

        Durable on return.
        """

    def get_witness(self, name: str) -> bytes | None:
        """What was kept last under the name, or None."""

    def witnesses(self) -> tuple[str, ...]:
        """The names under which something is kept, in order."""


def state_key(digest: str, suffix: str) -> str:
    """Where a file of a state lies in a lake: a path in a directory, a key in a bucket."""
    return f"{STATES}{digest[:2]}/{digest}{suffix}"


def check_digest(digest: object) -> str:
    """A digest, or DIGEST_INVALID: nothing else ever becomes part of a path."""
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise InvalidInput(
            "DIGEST_INVALID", f"a digest must be 64 lower-case hex digits, got {digest!r:.80}"
        )
    return digest


def checked_state(digest: str, read: Callable[[str], bytes | None]) -> tuple[bytes, bytes]:
    """The arrays and the manifest of a state, checked against its digest; ``read`` gives the file
    of a suffix, or None where there is none. STATE_MISSING or STATE_DAMAGED otherwise.
    """
    manifest = read(MANIFEST)
    if manifest is None:
        raise state_missing(digest)
    arrays = read(ARRAYS)
    if arrays is None:
        raise _damaged(digest, "its arrays are gone")
    if digest_of(arrays, manifest) != digest:
        raise _damaged(digest, "its bytes were changed")
    return arrays, manifest


def state_missing(digest: str) -> StateMissing:
    """What is said of a state that a lake does not have."""
    return StateMissing("STATE_MISSING", f"the lake has no state {digest}", digest=digest)


def _damaged(digest: str, what: str) -> StateDamaged:
    return StateDamaged(
        "STATE_DAMAGED", f"state {digest} in the lake is damaged: {what}", digest=digest
    )
