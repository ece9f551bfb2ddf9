"""After a crash: only whole batches are left, and only those.

The frames of a group go to several files and become durable one file after the other; nobody hears of the group before
all are. So after a crash the newest group may be there in part: frames cut short, or some parts of a batch without the
others. Both are cut off the ends of their files, until every batch that is left is complete. Sealed blocks hold
promised frames only and are not touched; what they accepted is in `Progress`.
"""

from __future__ import annotations

from collections import defaultdict

from ptkstore.streams.block_file import BlockFile, Found
from ptkstore.streams.frames import DATA
from ptkstore.streams.progress import Progress
from ptkstore.streams.spans import Spans
from ptkstore.streams.vault import Vault

__all__ = ["recover"]

Batch = tuple[str, int]


def recover(vault: Vault, spans: Spans, progress: Progress) -> dict[str, BlockFile]:
    """The open blocks, brought back to whole batches, which are added to ``progress.accepted``."""
    vault.collect()
    names = [one for one in vault.blocks() if spans.number(one) >= progress.sealed_before]
    files = {name: BlockFile(vault, name) for name in names}
    found = {name: file.recover() for name, file in files.items()}
    while _cut_incomplete(files, found, progress):
        pass
    progress.accepted.update({_batch(one) for frames in found.values() for one in frames if _is_data(one)})
    return files


def _cut_incomplete(files: dict[str, BlockFile], found: dict[str, list[Found]], progress: Progress) -> bool:
    """Cut every file at its first frame of an incomplete batch; true when something was cut: look again."""
    parts: dict[Batch, set[int]] = defaultdict(set)
    for frames in found.values():
        for one in frames:
            parts[_batch(one)].add(one.frame.header.part)
    cut = False
    for name, frames in found.items():
        for place, one in enumerate(frames):
            whole = len(parts[_batch(one)]) == one.frame.header.parts or _batch(one) in progress.accepted
            if _is_data(one) and not whole:
                found[name] = frames[:place]
                files[name].cut(found[name])
                cut = True
                break
    return cut


def _batch(one: Found) -> Batch:
    return one.frame.header.producer, one.frame.header.seq


def _is_data(one: Found) -> bool:
    return one.frame.header.kind == DATA
