"""Several grants at once, for training: spend them all, then read their blocks once with the tags at hand.

Many PTKs train on nested ranges of the same blocks. `spend_and_open` spends every grant, durably, before anything is read;
what it returns says which blocks and ranges are open now and travels to the workers, which read with `read_opened`. It is
signed under a key of the stream: one that was not made by spending opens nothing (OPENED_FORGED). Tags are for choosing
records inside the worker; they never reach a PTK.

A worker process cannot read keys: it gets those of the blocks that are open with them (`with_keys`), and no others.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.errors import GrantRefused
from ptklib.ledger.canonical import canonical
from ptklib.ledger.grants import Grant
from ptklib.ledger.mac import mac_of
from ptklib.ledger.slices import WHOLE, TagRange
from ptkstore.ledger import Ledger
from ptkstore.streams.reader import StreamReader
from ptkstore.streams.spec import StreamSpec
from ptkstore.streams.vault import Vault

__all__ = ["Opened", "Tagged", "read_opened", "require_open", "spend_and_open", "with_keys"]


class Opened(NamedTuple):
    """Blocks and ranges of tags whose charges are spent. Made by `spend_and_open` only."""

    store: str
    spec: dict[str, Any]
    ranges: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    mac: bytes = b""
    keys: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        """Without keys."""
        return f"Opened(store={self.store!r}, blocks={[block for block, _ in self.ranges]!r})"


class Tagged(NamedTuple):
    """Some records and their tags."""

    batch: pa.RecordBatch
    tags: NDArray[np.uint64]


def spend_and_open(store: str | Path, spec: StreamSpec, grants: Sequence[Grant], ledger: Ledger) -> Opened:
    """Spend all grants in one durable step, or none where one is refused; what they open together."""
    found = StreamReader(store, spec).spend(grants, ledger)
    joined = tuple((block, _joined(ranges)) for block, ranges in found.items())
    opened = Opened(str(store), spec.as_json(), joined)
    return opened._replace(mac=_mac(opened))


def read_opened(opened: Opened) -> Iterator[Tagged]:
    """The records of the blocks that are open, with their tags: choose those of a range that `require_open` lets through.

    Whole blocks are read, for many ranges are chosen from one reading. Refused: OPENED_FORGED.
    """
    if opened.keys is None:
        _require_true(opened)
    # Whoever has the keys got them with the blocks, from a process that has looked.
    reader = StreamReader(opened.store, StreamSpec.from_json(opened.spec), keys=opened.keys)
    for block, _ in opened.ranges:
        for batch, tags in reader._tagged(block, [WHOLE]):
            yield Tagged(batch, tags)


def with_keys(opened: Opened) -> Opened:
    """The same with the keys of its blocks, for a process that cannot read any. Refused: OPENED_FORGED, BLOCK_EXPIRED."""
    _require_true(opened)
    vault = Vault(Path(opened.store), StreamSpec.from_json(opened.spec).name)
    return opened._replace(keys={block: vault.key_bytes(block) for block, _ in opened.ranges})


def require_open(opened: Opened, start: int, stop: int) -> None:
    """Refuse a range of tags that is not open in every block (OPENED_TOO_FAR)."""
    for _, ranges in opened.ranges:
        if not any(first <= start and stop <= last for first, last in ranges):
            raise GrantRefused("OPENED_TOO_FAR", "the range of tags is wider than what was spent for")


def _require_true(opened: Opened) -> None:
    if not hmac.compare_digest(opened.mac, _mac(opened)):
        raise GrantRefused("OPENED_FORGED", "nothing was spent for this: slices open with grants")


def _mac(opened: Opened) -> bytes:
    stream = StreamSpec.from_json(opened.spec).name
    ranges = [[block, [[str(start), str(stop)] for start, stop in ranges]] for block, ranges in opened.ranges]
    body = canonical([opened.store, opened.spec, ranges])
    return mac_of(Vault(Path(opened.store), stream).tag_key(), b"sage opened v1", body)


def _joined(ranges: Iterable[TagRange]) -> tuple[tuple[int, int], ...]:
    """The union, as disjoint ranges in order."""
    joined: list[tuple[int, int]] = []
    for one in sorted(ranges):
        if joined and one.start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], one.stop))
        else:
            joined.append((one.start, one.stop))
    return tuple(joined)
