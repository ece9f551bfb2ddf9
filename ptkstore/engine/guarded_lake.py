"""The lake as the engine uses it: before a state is put there, the ledger's head with its charge is
kept elsewhere.

Whoever can read the lake sees a state as soon as it is there, before any row of the metadata tells
of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ptkstore.lake import Lake
from ptkstore.lake.protocol import GRACE_SECONDS

__all__ = ["GuardedLake"]


class GuardedLake:
    """A `Lake`; what only some kinds of lakes have is that of the lake behind it."""

    def __init__(self, lake: Lake, before_put: Callable[[], object]) -> None:
        """``before_put`` is called before every put, and may refuse it."""
        self.behind = lake
        self._before_put = before_put

    def put(self, arrays: bytes, manifest: bytes) -> str:
        """See `Lake.put`."""
        self._before_put()
        return self.behind.put(arrays, manifest)

    def get(self, digest: str) -> tuple[bytes, bytes]:
        """See `Lake.get`."""
        return self.behind.get(digest)

    def exists(self, digest: str) -> bool:
        """See `Lake.exists`."""
        return self.behind.exists(digest)

    def list(self, *, limit: int | None = None, after: str | None = None) -> tuple[str, ...]:
        """See `Lake.list`."""
        return self.behind.list(limit=limit, after=after)

    def delete_unreferenced(
        self, keep: Collection[str], *, grace_seconds: float = GRACE_SECONDS
    ) -> tuple[str, ...]:
        """See `Lake.delete_unreferenced`."""
        return self.behind.delete_unreferenced(keep, grace_seconds=grace_seconds)

    def put_witness(self, name: str, body: bytes) -> None:
        """See `Lake.put_witness`."""
        self.behind.put_witness(name, body)

    def get_witness(self, name: str) -> bytes | None:
        """See `Lake.get_witness`."""
        return self.behind.get_witness(name)

    def witnesses(self) -> tuple[str, ...]:
        """See `Lake.witnesses`."""
        return self.behind.witnesses()

    def __getattr__(self, name: str) -> Any:
        """What only the lake behind it has."""
        return getattr(self.behind, name)
