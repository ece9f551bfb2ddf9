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
from ptkstore.streams.senders import Sender
from ptkstore.streams.spans import Spans
from ptkstore.streams.vault import Vault

__all__ = ["recover"]

Batch = tuple[str, int]


def recover(vault: Vault, spans: Spans, progress: Progress) -> dict[str, BlockFile]:
    """The open blocks, brought back to whole batches, which are added to ``progress.accepted``."""
    vault.collect()
    names = [one for one in vault.blocks() if spans.number(one) >= progress.sealed_before]
    files = {name: BlockFile(vault, name) for name in names}
    try:
        found = {name: file.recover() for name, file in files.items()}
        while _cut_incomplete(files, found, progress):
            pass
    except BaseException:
        # It is tried again: what is left open here would be lost each time.
        for file in files.values():
            file.close()
        raise
    batches = {_batch(one) for frames in found.values() for one in frames if _is_data(one)}
    progress.accepted.update((Sender.of_text(text), seq) for text, seq in batches)
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
            if _is_data(one) and not _is_whole(one, parts, progress):
                found[name] = frames[:place]
                files[name].cut(found[name])
                cut = True
                break
    return cut


def _is_whole(one: Found, parts: dict[Batch, set[int]], progress: Progress) -> bool:
    text, seq = _batch(one)
    return len(parts[text, seq]) == one.frame.header.parts or progress.accepted.holds(Sender.of_text(text), seq)


def _batch(one: Found) -> Batch:
    return one.frame.header.producer, one.frame.header.seq


def _is_data(one: Found) -> bool:
    return one.frame.header.kind == DATA
