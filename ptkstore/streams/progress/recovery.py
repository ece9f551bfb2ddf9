"""After a crash: only whole batches are left, and only those.

The frames of a group go to several files and become durable one file after the other; nobody hears
of the group before all are. So after a crash the newest group may be there in part: frames cut
short, or some parts of a batch without the others. Both are cut off the ends of their files, until
every batch that is left is complete. Sealed blocks hold promised frames only and are not touched;
what they accepted is in `Progress`.

What was acknowledged (`acknowledged`) is never cut, and where it is not there nothing is repaired:
STREAM_DAMAGED.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass

from ptkstore.streams.blocks.acknowledged import Acknowledged, Extent, Known, lost
from ptkstore.streams.blocks.file import BlockFile, PlacedFrame
from ptkstore.streams.blocks.frames import DATA
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.progress.senders import Sender
from ptkstore.streams.spans import Spans

__all__ = ["Recovered", "check_promises", "recover"]

Batch = tuple[str, int]


@dataclass(frozen=True)
class Recovered:
    """The open blocks, and whether something was dropped that nobody had been promised."""

    files: dict[str, BlockFile]
    dropped: bool


def recover(
    vault: Vault, spans: Spans, progress: Progress, acknowledged: Acknowledged
) -> Recovered:
    """The open blocks, brought back to whole batches, which are added to ``progress.accepted``.

    All that was acknowledged must be there, or STREAM_DAMAGED, and nothing is deleted. Destruction
    that was begun is finished.
    """
    if not acknowledged.adopted:
        check_promises(
            vault, spans, progress.sealed_before, progress.oldest_open, acknowledged.known
        )
        if acknowledged.known.gone:
            vault.destroy(*acknowledged.known.gone)
            acknowledged.destroyed()
    dropped = vault.collect()
    promised = acknowledged.known.extents
    names = [block for block in vault.blocks() if spans.number(block) >= progress.sealed_before]
    files = {name: BlockFile(vault, name) for name in names}
    try:
        frames_by_block = {name: file.recover(promised.get(name)) for name, file in files.items()}
        while _cut_incomplete(files, frames_by_block, progress):
            pass
    except BaseException:
        # It is tried again: what is left open here would be lost each time.
        for file in files.values():
            file.close()
        raise
    batches = {
        _batch(frame) for frames in frames_by_block.values() for frame in frames if _is_data(frame)
    }
    progress.accepted.update((Sender.of_text(text), seq) for text, seq in batches)
    _begin(vault, progress, acknowledged, files)
    return Recovered(files, dropped or any(file.was_cut for file in files.values()))


def check_promises(
    vault: Vault, spans: Spans, sealed_before: int, oldest_open: int, known: Known
) -> None:
    """Refuse (STREAM_DAMAGED) a stream of which a file, a key or a part of a file is gone that was
    acknowledged.
    """
    if known.sealed_before is not None and oldest_open < known.sealed_before:
        raise lost(vault.stream, "the progress")
    for name, extent in known.extents.items():
        what = "an open block" if spans.number(name) >= sealed_before else f"block {name!r}"
        if not vault.holds(name) or not vault.path(name).exists():
            raise lost(vault.stream, what)
        with vault.reading(name) as descriptor:
            size = os.fstat(descriptor).st_size
            # A sealed block never changes; an open one may be longer by what nobody was promised.
            whole = (
                size == extent.length
                if spans.number(name) < sealed_before
                else size >= extent.length
            )
            if not whole or Extent.of(descriptor, extent.length) != extent:
                raise lost(vault.stream, what)


def _begin(
    vault: Vault, progress: Progress, acknowledged: Acknowledged, files: dict[str, BlockFile]
) -> None:
    """From here on what is there is what was acknowledged: whole batches are, even if their answer
    was lost.
    """
    extents = acknowledged.known.extents
    if acknowledged.adopted:
        for name in vault.blocks():
            with vault.reading(name) as descriptor:
                extents[name] = Extent.of(descriptor, os.fstat(descriptor).st_size)
    extents.update({name: file.extent for name, file in files.items()})
    acknowledged.known.sealed_before = max(
        progress.sealed_before, acknowledged.known.sealed_before or 0
    )
    acknowledged.begin()


def _cut_incomplete(
    files: dict[str, BlockFile], frames_by_block: dict[str, list[PlacedFrame]], progress: Progress
) -> bool:
    """Cut every file at its first frame of an incomplete batch; true when something was cut: look
    again.
    """
    parts: dict[Batch, set[int]] = defaultdict(set)
    for frames in frames_by_block.values():
        for placed_frame in frames:
            parts[_batch(placed_frame)].add(placed_frame.frame.header.part)
    cut = False
    for name, frames in frames_by_block.items():
        for place, placed_frame in enumerate(frames):
            if _is_data(placed_frame) and not _is_whole(placed_frame, parts, progress):
                frames_by_block[name] = frames[:place]
                files[name].cut(frames_by_block[name])
                cut = True
                break
    return cut


def _is_whole(placed_frame: PlacedFrame, parts: dict[Batch, set[int]], progress: Progress) -> bool:
    text, seq = _batch(placed_frame)
    return len(parts[text, seq]) == placed_frame.frame.header.parts or progress.accepted.holds(
        Sender.of_text(text), seq
    )


def _batch(placed_frame: PlacedFrame) -> Batch:
    return placed_frame.frame.header.producer, placed_frame.frame.header.seq


def _is_data(placed_frame: PlacedFrame) -> bool:
    return placed_frame.frame.header.kind == DATA
