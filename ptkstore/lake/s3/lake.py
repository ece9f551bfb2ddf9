"""A lake in a bucket of any S3 server: ``sha256/ab/abcd….safetensors`` and
``sha256/ab/abcd….json``, as in a directory.

A state is there once its ``.json`` is: the arrays are put and checked, and only then the manifest
follows. Deleting goes the other way round. S3 has no locks, so a sweep announces each state it is
about to delete under ``sweeping/DIGEST/`` and looks at its age after that; whoever puts that state
waits until the announcement is gone and then looks whether the state is there. Either the sweep
sees that the state is young, or the put sees that it is gone and puts it again; no order of the two
loses it. A put of a state that is there and sound makes it young again through ``touched/DIGEST``.
Ages are told by the server's clock.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from ptklib.encoding.state_digest import digest_of
from ptklib.errors import InvalidInput
from ptkstore.api.paging import check_limit
from ptkstore.lake.protocol import (
    ARRAYS,
    GRACE_SECONDS,
    MANIFEST,
    STATES,
    LakeUnavailable,
    StateDamaged,
    StateMissing,
    check_digest,
    checked_state,
    state_key,
    state_missing,
)
from ptkstore.lake.s3.bucket import Bucket, StoredObject

__all__ = ["ANNOUNCED_SECONDS", "Presigned", "S3Lake"]

_TOUCHED = "touched/"
_WITNESSES = "witness/"
_SWEEPING = "sweeping/"
# A sweep deletes within half of this after its announcement, or not at all; after the whole of it
# its owner is dead.
ANNOUNCED_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.05
_LONGEST_URL_SECONDS = 7 * 24 * 3600
_PUTS = 5


class Presigned(NamedTuple):
    """Where anybody can read a state for a while.

    Whoever reads checks the digest: see `ptkstore.lake.digest_of`.
    """

    arrays: str
    manifest: str


class S3Lake:
    """A `Lake` in a bucket, which is made if missing."""

    def __init__(self, bucket: Bucket) -> None:
        """Make the bucket."""
        self._bucket = bucket
        bucket.make()

    def put(self, arrays: bytes, manifest: bytes) -> str:
        """See `Lake.put`."""
        digest = digest_of(arrays, manifest)
        for _ in range(_PUTS):
            if not self._refreshed(digest):
                self._bucket.put(state_key(digest, ARRAYS), arrays)
                self._bucket.put(state_key(digest, MANIFEST), manifest)
            self._await_sweeps(digest)
            if self.exists(digest):
                return digest
        raise LakeUnavailable(
            "LAKE_UNAVAILABLE", f"state {digest} is deleted as fast as it is put", digest=digest
        )

    def get(self, digest: str) -> tuple[bytes, bytes]:
        """See `Lake.get`."""
        check_digest(digest)
        try:
            return self._read(digest)
        except (StateMissing, StateDamaged):
            # Some servers replace an object in two steps, and bytes may be hurt on their way: look
            # twice.
            time.sleep(_LOOK_AGAIN_SECONDS)
            return self._read(digest)

    def exists(self, digest: str) -> bool:
        """See `Lake.exists`."""
        check_digest(digest)
        return all(
            self._bucket.stat(state_key(digest, suffix)) is not None
            for suffix in (MANIFEST, ARRAYS)
        )

    def list(self, *, limit: int | None = None, after: str | None = None) -> tuple[str, ...]:
        """See `Lake.list`."""
        check_limit(limit)
        digests: list[str] = []
        for digest, parts in self._states(None if after is None else check_digest(after)):
            if len(parts) == 2:
                digests.append(digest)
                if len(digests) == limit:
                    break
        return tuple(digests)

    def delete_unreferenced(
        self, keep: Collection[str], *, grace_seconds: float = GRACE_SECONDS
    ) -> tuple[str, ...]:
        """See `Lake.delete_unreferenced`."""
        kept = {check_digest(digest) for digest in keep}
        now = self._now()
        newest = now - timedelta(seconds=grace_seconds)
        deleted = []
        for digest, parts in self._states(None):
            old = max(part.modified for part in parts.values()) <= newest
            if old and digest not in kept and self._swept(digest, newest) and MANIFEST in parts:
                deleted.append(digest)
        self._sweep_strays(now, newest)
        return tuple(deleted)

    def presigned(self, digest: str, *, seconds: int = 3600) -> Presigned:
        """URLs that let somebody without credentials read a state for a while.

        STATE_MISSING when it is not there.
        """
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, int)
            or not 1 <= seconds <= _LONGEST_URL_SECONDS
        ):
            raise InvalidInput(
                "VALUE_INVALID",
                f"a URL lives 1 to {_LONGEST_URL_SECONDS} seconds, got {seconds!r:.60}",
            )
        if not self.exists(digest):
            raise state_missing(digest)
        return Presigned(
            *(self._bucket.url(state_key(digest, suffix), seconds) for suffix in (ARRAYS, MANIFEST))
        )

    def presigned_url(self, digest: str, *, seconds: int = 3600) -> str:
        """The URL of the arrays alone, for whoever has the manifest already."""
        return self.presigned(digest, seconds=seconds).arrays

    def put_witness(self, name: str, body: bytes) -> None:
        """See `Lake.put_witness`."""
        self._bucket.put(f"{_WITNESSES}{check_digest(name)}{MANIFEST}", body)

    def get_witness(self, name: str) -> bytes | None:
        """See `Lake.get_witness`."""
        return self._bucket.get(f"{_WITNESSES}{check_digest(name)}{MANIFEST}")

    def witnesses(self) -> tuple[str, ...]:
        """See `Lake.witnesses`."""
        names = [
            stored_object.key.removeprefix(_WITNESSES).removesuffix(MANIFEST)
            for stored_object in self._bucket.keys(_WITNESSES)
        ]
        return tuple(sorted(names))

    def _refreshed(self, digest: str) -> bool:
        """True when the state is there and sound; its age then starts anew."""
        try:
            self._read(digest)
        except (StateMissing, StateDamaged):
            return False
        self._bucket.put(_TOUCHED + digest, b"")
        return True

    def _read(self, digest: str) -> tuple[bytes, bytes]:
        return checked_state(digest, lambda suffix: self._bucket.get(state_key(digest, suffix)))

    def _states(self, after: str | None) -> Iterator[tuple[str, dict[str, StoredObject]]]:
        """Every digest with the objects there are of it, in order."""
        digest, parts = "", dict[str, StoredObject]()
        for stored_object in self._bucket.keys(
            STATES, after=None if after is None else state_key(after, ARRAYS)
        ):
            name, dot, suffix = stored_object.key.rsplit("/", 1)[1].partition(".")
            if stored_object.key != state_key(name, dot + suffix) or dot + suffix not in {
                ARRAYS,
                MANIFEST,
            }:
                continue
            if name != digest and parts:
                yield digest, parts
                parts = {}
            digest = name
            parts[dot + suffix] = stored_object
        if parts:
            yield digest, parts

    def _await_sweeps(self, digest: str) -> None:
        """Until no sweep that may have looked before our put can still delete."""
        deadline = time.monotonic() + ANNOUNCED_SECONDS
        while (
            next(self._bucket.keys(f"{_SWEEPING}{digest}/"), None) is not None
            and time.monotonic() < deadline
        ):
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _swept(self, digest: str, newest: datetime) -> bool:
        """Delete a state unless it became young; True when it was deleted."""
        announcement = f"{_SWEEPING}{digest}/{secrets.token_hex(8)}"
        deadline = time.monotonic() + ANNOUNCED_SECONDS / 2
        self._bucket.put(announcement, b"")
        try:
            keys = [state_key(digest, MANIFEST), state_key(digest, ARRAYS), _TOUCHED + digest]
            seen = [self._bucket.stat(key) for key in keys]
            if any(
                stored_object is not None and stored_object.modified > newest
                for stored_object in seen
            ):
                return False
            for key in keys:
                if time.monotonic() > deadline:
                    return False
                self._bucket.delete(key, attempts=1)  # a late try would come after the time is over
            return True
        finally:
            self._bucket.delete(announcement)

    def _sweep_strays(self, now: datetime, newest: datetime) -> None:
        """What protects nothing any more, and what crashes left behind: announcements of the dead,
        uploads begun.
        """
        for stored_object in self._bucket.keys(_TOUCHED):
            if stored_object.modified <= newest:
                self._bucket.delete(stored_object.key)
        for stored_object in self._bucket.keys(_SWEEPING):
            if stored_object.modified < now - timedelta(seconds=2 * ANNOUNCED_SECONDS):
                self._bucket.delete(stored_object.key)
        self._bucket.abort_uploads(STATES, newest)

    def _now(self) -> datetime:
        """The time by the server's clock."""
        key = f"{_SWEEPING}clock/{secrets.token_hex(8)}"
        self._bucket.put(key, b"")
        try:
            stored_object = self._bucket.stat(key)
        finally:
            self._bucket.delete(key)
        if stored_object is None:
            raise LakeUnavailable("LAKE_UNAVAILABLE", "the lake lost what it just took")
        return stored_object.modified
