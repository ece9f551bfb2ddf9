"""One group of batches on its way to the disk: the files it needs, and its frames.

Making a file takes several fsyncs, so the files of a whole group are made together. Frames are
written to a few files at a time: a group may touch thousands, and how many files a process may hold
open must not decide whether a batch is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from ptkstore.streams.blocks.file import BlockFile
from ptkstore.streams.blocks.vault import Vault

__all__ = ["BlockPart", "make_files", "write_parts"]

_OPEN_AT_ONCE = 64


class BlockPart(NamedTuple):
    """The records of one batch that go to one block."""

    block: str
    rows: pa.RecordBatch
    producer: str
    seq: int
    part: int
    parts: int


def make_files(vault: Vault, files: dict[str, BlockFile], names: Iterable[str]) -> None:
    """Let there be a file with a key for each of the names, durably."""
    unknown = [name for name in dict.fromkeys(names) if name not in files]
    missing = [name for name in unknown if not vault.path(name).exists()]
    for begin in range(0, len(missing), _OPEN_AT_ONCE):
        vault.make_keys(missing[begin : begin + _OPEN_AT_ONCE])
    vault.make_empty(missing)
    for name in unknown:
        files[name] = BlockFile(vault, name)
        files[name].named = True


def write_parts(
    files: Mapping[str, BlockFile], parts: Iterable[BlockPart], *, least_syncs: int = 0
) -> None:
    """Make all parts durable, in their order within each file, with at least so many files synced
    (of those there are).
    """
    by_block: dict[str, list[BlockPart]] = {}
    for part in parts:
        by_block.setdefault(part.block, []).append(part)
    names = list(by_block)
    try:
        for begin in range(0, len(names), _OPEN_AT_ONCE):
            together = [files[name] for name in names[begin : begin + _OPEN_AT_ONCE]]
            for file in together:
                _append(file, by_block[file.block])
            # While the first file is synced the disk works on the others.
            for file in together[1:]:
                file.start()
            for file in together:
                file.sync()
    except BaseException:
        for name in names:
            files[name].roll_back()
        raise
    idle = (file for name, file in files.items() if name not in by_block)
    for file in islice(idle, max(0, least_syncs - len(names))):
        file.sync_idle()


def _append(file: BlockFile, parts: Iterable[BlockPart]) -> None:
    for part in parts:
        plain = memoryview(part.rows.serialize()).cast("B")
        file.append(plain, producer=part.producer, seq=part.seq, part=part.part, parts=part.parts)
