"""Several grants at once, for training: spend them all, then read their blocks once with the tags
at hand.

Many PTKs train on nested ranges of the same blocks. `spend_and_open` spends every grant, durably,
before anything is read; what it returns opens these blocks within these ranges and travels to the
workers, which read with it. It is signed under a key of the stream: one that was not made by
spending opens nothing (OPENED_FORGED). Tags are for choosing records inside the worker;
they never reach a PTK.

A worker process cannot read keys: it gets those of the blocks that are open with them
(`for_worker`), and no others.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.encoding.canonical import canonical
from ptklib.encoding.mac import mac_of
from ptklib.errors import GrantRefused
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import WHOLE, TagRange
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.ledger import Ledger
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.reading.reader import StreamReader

__all__ = ["GRANT_SECONDS", "DirectoryOpener", "Tagged", "spend_and_open"]

# Long enough for any cycle; a cycle that was interrupted for longer reserves again.
GRANT_SECONDS = 24 * 3600


class Tagged(NamedTuple):
    """Some records and their tags."""

    batch: pa.RecordBatch
    tags: NDArray[np.uint64]


class DirectoryOpener(NamedTuple):
    """Opens blocks of a store in a directory within ranges of tags whose charges are spent. Made by
    `spend_and_open` only.
    """

    store: str
    spec: dict[str, Any]
    ranges: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    mac: bytes = b""
    keys: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        """Without keys."""
        blocks = [block for block, _ in self.ranges]
        return f"DirectoryOpener(store={self.store!r}, blocks={blocks!r})"

    def read(self) -> Iterator[Tagged]:
        """The records of the blocks that are open, with their tags: choose those of a range that
        `require` lets through.

        Whole blocks are read, for many ranges are chosen from one reading. Refused: OPENED_FORGED.
        """
        if self.keys is None:
            _require_true(self)
        # Whoever has the keys got them with the blocks, from a process that has looked.
        reader = StreamReader(self.store, StreamSpec.from_json(self.spec), keys=self.keys)
        for block, _ in self.ranges:
            for batch, tags in reader._tagged(block, [WHOLE]):
                yield Tagged(batch, tags)

    def require(self, start: int, stop: int) -> None:
        """Refuse a range of tags that is not open in every block (OPENED_TOO_FAR)."""
        for _, ranges in self.ranges:
            if not any(first <= start and stop <= last for first, last in ranges):
                raise GrantRefused(
                    "OPENED_TOO_FAR", "the range of tags is wider than what was spent for"
                )

    def for_worker(self) -> DirectoryOpener:
        """The same with the keys of its blocks, for a process that cannot read any.

        Refused: OPENED_FORGED, BLOCK_EXPIRED.
        """
        _require_true(self)
        vault = Vault(Path(self.store), StreamSpec.from_json(self.spec).name)
        return self._replace(keys={block: vault.key_bytes(block) for block, _ in self.ranges})


def spend_and_open(
    store: str | Path, spec: StreamSpec, grants: Sequence[Grant], ledger: Ledger
) -> DirectoryOpener:
    """Spend all grants in one durable step, or none where one is refused; what they open
    together.
    """
    slices = StreamReader(store, spec).spend(grants, ledger)
    joined = tuple((block, _joined(ranges)) for block, ranges in slices.items())
    opened = DirectoryOpener(str(store), spec.as_json(), joined)
    return opened._replace(mac=_mac(opened))


def _require_true(opened: DirectoryOpener) -> None:
    if not hmac.compare_digest(opened.mac, _mac(opened)):
        raise GrantRefused("OPENED_FORGED", "nothing was spent for this: slices open with grants")


def _mac(opened: DirectoryOpener) -> bytes:
    stream = StreamSpec.from_json(opened.spec).name
    ranges = [
        [block, [[str(start), str(stop)] for start, stop in ranges]]
        for block, ranges in opened.ranges
    ]
    body = canonical([opened.store, opened.spec, ranges])
    return mac_of(Vault(Path(opened.store), stream).tag_key(), b"sage opened v1", body)


def _joined(ranges: Iterable[TagRange]) -> tuple[tuple[int, int], ...]:
    """The union, as disjoint ranges in order."""
    joined: list[tuple[int, int]] = []
    for range_ in sorted(ranges):
        if joined and range_.start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], range_.stop))
        else:
            joined.append((range_.start, range_.stop))
    return tuple(joined)
