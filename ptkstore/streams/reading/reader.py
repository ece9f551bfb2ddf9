"""The only way to raw data: a grant, spent before the first byte is read.

`open_slice` spends the grant (durable; there is no way back), then opens the granted blocks frame
by frame and keeps the records whose tag lies in the granted ranges. `count_blocks` does the same
and lets out one DP count per block, nothing else. Tags never leave. At user level at most
``records_per_user`` records of a user are kept, the first to arrive.

Reasons: those of ``Ledger.spend``; GRANT_WRONG_STREAM, LEDGER_REQUIRED and LEDGER_FOREIGN before
anything is spent; after it BLOCK_UNKNOWN, BLOCK_NOT_SEALED, BLOCK_EXPIRED and FRAME_DAMAGED
(without contents).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.errors import GrantRefused, InvalidInput
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import TagRange
from ptklib.privacy.noise.source import BitSource
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.ledger import Ledger
from ptkstore.streams.blocks.binding import require_bound
from ptkstore.streams.blocks.cipher import BlockCipher
from ptkstore.streams.blocks.encoding import Encoding
from ptkstore.streams.blocks.file import damaged, stroll
from ptkstore.streams.blocks.frames import DATA, SEAL, Frame, unlock
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.faults import BlockRefused
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.spans import Spans
from ptkstore.streams.tag_map import TagMap
from ptkstore.streams.tags import Tags

__all__ = ["MAX_ROWS", "StreamReader"]

MAX_ROWS = 1 << 16

Ranges = dict[str, list[TagRange]]


class StreamReader:
    """Reads sealed blocks of one stream. Any process may have one; it writes nothing."""

    def __init__(
        self, store: str | Path, spec: StreamSpec, *, keys: Mapping[str, bytes] | None = None
    ) -> None:
        """Name the stream; nothing is opened.

        With ``keys`` of blocks, those are used and none is read.
        """
        self.spec = spec
        self._keys = keys
        self._store = Path(store)
        self._vault = Vault(self._store, spec.name)
        self._spans = Spans(spec)
        self._encoding = Encoding(spec)

    def open_slice(self, grant: Grant, ledger: Ledger) -> Iterator[pa.RecordBatch]:
        """Spend the grant now, then yield its records in batches of at most `MAX_ROWS`.

        Unit: the stream's. Cost: what the grant was charged. The number of records is as private as
        the records.
        """
        plan = self.spend([grant], ledger)
        return (
            self._encoding.decode(
                pa.RecordBatch.from_arrays(stored.columns[1:], schema=self._stored)
            )
            for block, ranges in plan.items()
            for stored in self._records(block, ranges)
        )

    def count_blocks(
        self, grant: Grant, ledger: Ledger, *, noise: BitSource | None = None
    ) -> dict[str, int]:
        """Spend the grant, and release the number of its records in each block, with noise.

        Unit and sensitivity: those of `StreamSpec.count_release`; charge its ``cost`` for the
        grant. Counts may be negative.
        """
        plan = self.spend([grant], ledger)
        mechanism = self.spec.count_release()
        counts = [
            sum(len(stored) for stored in self._records(block, ranges))
            for block, ranges in plan.items()
        ]
        noisy = mechanism.release(np.array(counts, dtype=np.int64), source=noise).values
        return {block: int(value) for block, value in zip(plan, noisy, strict=True)}

    def _tagged(self, block: str, ranges: list[TagRange]) -> Iterator[tuple[pa.RecordBatch, Tags]]:
        """Records with their tags, of ranges that `spend` returned: for `opened`, which hides the
        tags again.
        """
        for stored in self._records(block, ranges):
            records = pa.RecordBatch.from_arrays(stored.columns[1:], schema=self._stored)
            yield self._encoding.decode(records), stored.column(0).to_numpy()

    @property
    def _stored(self) -> pa.Schema:
        return pa.schema(list(self._encoding.stored_schema)[1:])

    def spend(self, grants: Sequence[Grant], ledger: Ledger) -> Ranges:
        """Charge, then look: the blocks of the grants with their tag ranges, all of them sealed and
        held.
        """
        if not isinstance(ledger, Ledger):
            raise InvalidInput(
                "LEDGER_REQUIRED", f"a slice opens with a Ledger, got {type(ledger).__name__}"
            )
        require_bound(self._store, ledger)
        for grant in grants:
            if not isinstance(grant, Grant) or grant.stream != self.spec.name:
                raise GrantRefused(
                    "GRANT_WRONG_STREAM",
                    f"the grant is not for stream {self.spec.name!r}; it was not used",
                )
        ledger.spend_all(grants)
        plan: Ranges = {}
        for grant in grants:
            for slice_ in grant.slices:
                for block in slice_.blocks:
                    plan.setdefault(block, []).append(slice_.tags)
        sealed_before = Progress.read(self._vault.files, self._spans.first).sealed_before
        for block in plan:
            if self._spans.block_number(block) >= sealed_before:
                raise BlockRefused(
                    "BLOCK_NOT_SEALED", f"block {block!r} is still open", block=block
                )
            self._vault.key(block)
        return plan

    def _records(self, block: str, ranges: list[TagRange]) -> Iterator[pa.RecordBatch]:
        """The stored records, tag first, of one block within the ranges."""
        bound = _UserBound(self.spec.records_per_user) if self.spec.unit == "user" else None
        cipher = self._vault.key(block) if self._keys is None else BlockCipher(self._keys[block])
        with self._vault.reading(block) as descriptor:
            # Twice over the headers rather than a list of them: there may be as many frames as
            # records.
            last: Frame | None = None
            for _, frame in stroll(descriptor):
                if last is not None and last.header.kind != DATA:
                    raise damaged(self.spec.name, block)
                last = frame
            if (
                last is None
                or last.header.kind != SEAL
                or last.stop != os.fstat(descriptor).st_size
            ):
                raise damaged(self.spec.name, block)
            if unlock(cipher, self.spec.name, block, last, descriptor) is None:
                raise damaged(self.spec.name, block)
            for _, frame in stroll(descriptor):
                if frame.header.kind == SEAL:
                    break
                plain = unlock(cipher, self.spec.name, block, frame, descriptor)
                if plain is None:
                    raise damaged(self.spec.name, block)
                stored = pa.ipc.read_record_batch(pa.py_buffer(plain), self._encoding.stored_schema)
                stored = _kept(stored, ranges, bound)
                for start in range(0, len(stored), MAX_ROWS):
                    yield stored.slice(start, MAX_ROWS)


class _UserBound:
    """At most so many records of each user in a block, in the order of arrival."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen = TagMap(0)

    def keep(self, tags: Tags) -> NDArray[np.bool_]:
        """Which of these records are within the bound, after all that came before."""
        users, inverse, counts = np.unique(tags, return_inverse=True, return_counts=True)
        before = self._seen.find(users)
        self._seen.put(users, np.minimum(before + counts, self._most))
        order = np.argsort(inverse, kind="stable")
        rank = np.empty(len(tags), dtype=np.int64)
        rank[order] = np.arange(len(tags)) - np.repeat(np.cumsum(counts) - counts, counts)
        result: NDArray[np.bool_] = before[inverse] + rank < self._most
        return result


def _kept(
    stored: pa.RecordBatch, ranges: list[TagRange], bound: _UserBound | None
) -> pa.RecordBatch:
    tags = stored.column(0).to_numpy()
    inside = np.zeros(len(tags), dtype=bool)
    for range_ in ranges:
        # The largest tag is 2^64 - 1, so the end is compared as the last tag inside.
        inside |= (tags >= np.uint64(range_.start)) & (tags <= np.uint64(range_.stop - 1))
    if bound is not None:
        stored, tags = stored.filter(pa.array(inside)), tags[inside]
        inside = bound.keep(tags)
    return stored if inside.all() else stored.filter(pa.array(inside))
