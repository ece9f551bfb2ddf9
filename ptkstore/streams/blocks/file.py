"""The file of one block: frames are appended in groups, and a group is durable as a whole before
anybody hears of it.

Appending, syncing and rolling back belong to one writer (which holds the stream's lock); whoever
reads waits for the seal. After a crash `recover` keeps the longest run of whole, authentic frames
and cuts off the rest, which nobody was promised. A fault in front of frames that were promised
(`acknowledged`) is damage, never a torn tail: it stops the writer and nothing is cut. Reasons:
FRAME_DAMAGED, STREAM_DAMAGED.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ptkstore.private_files import sync_directory
from ptkstore.streams.blocks.acknowledged import Extent, lost
from ptkstore.streams.blocks.cipher import MAC_BYTES, BlockCipher
from ptkstore.streams.blocks.frames import (
    DATA,
    PIECE_BYTES,
    SEAL,
    Frame,
    Header,
    frame_pieces,
    read_frame,
    unlock,
)
from ptkstore.streams.blocks.vault import Vault, write_all
from ptkstore.streams.blocks.writeback import start_writeback
from ptkstore.streams.faults import StreamDamaged

__all__ = ["BlockFile", "PlacedFrame", "damaged", "stroll", "walk"]

_MAGIC = b"SGF1"


class PlacedFrame(NamedTuple):
    """A frame and where it starts."""

    start: int
    frame: Frame


def damaged(stream: str, block: str) -> StreamDamaged:
    """The error for a file that is not what was written; says where, never what."""
    return StreamDamaged(
        "FRAME_DAMAGED",
        f"block {block!r} of stream {stream!r} is not as it was written",
        stream=stream,
        block=block,
    )


def stroll(descriptor: int) -> Iterator[PlacedFrame]:
    """The frames from the start of a file as far as headers are whole and in order, one at a
    time.
    """
    size = os.fstat(descriptor).st_size
    count = at = 0
    while (frame := read_frame(descriptor, at, size)) is not None and frame.header.ordinal == count:
        yield PlacedFrame(at, frame)
        at, count = frame.stop, count + 1


def walk(descriptor: int) -> list[PlacedFrame]:
    """All frames of `stroll`."""
    return list(stroll(descriptor))


class BlockFile:
    """An open block. Not thread-safe: the writer's turn guards it."""

    def __init__(self, vault: Vault, block: str) -> None:
        """Nothing is opened or made yet."""
        self.block = block
        self.sealed = False
        # True when `recover` or `cut` dropped what nobody was promised.
        self.was_cut = False
        # Set by who made the file and its name durable beforehand.
        self.named = False
        self._vault = vault
        self._cipher: BlockCipher | None = None
        self._descriptor: int | None = None
        self._settled = self._length = 0
        self._settled_frames = self._frames = 0
        self._settled_tail = self._tail = b""
        self._promised = Extent(0, b"")

    @property
    def extent(self) -> Extent:
        """How far the file is durable, and how it ends there."""
        return Extent(self._settled, self._settled_tail)

    def recover(self, promised: Extent | None = None) -> list[PlacedFrame]:
        """Bring the file back to whole, authentic frames, which are returned.

        What was ``promised`` is never cut.
        """
        descriptor = self._open()
        self._promised = promised or Extent(0, b"")
        if promised is not None:
            self._require_promised(descriptor)
        size = os.fstat(descriptor).st_size
        placed_frames = walk(descriptor)
        stop = placed_frames[-1].frame.stop if placed_frames else 0
        self._refuse_damage(descriptor, stop, size)
        safe = placed_frames[-1].frame.header.settled if placed_frames else 0
        for place, (start, frame) in enumerate(placed_frames):
            if (
                start >= safe
                and unlock(self._key(), self._vault.stream, self.block, frame, descriptor) is None
            ):
                placed_frames = placed_frames[:place]
                break
        self.sealed = bool(placed_frames) and placed_frames[-1].frame.header.kind == SEAL
        self.cut(placed_frames)
        return placed_frames

    def cut(self, kept: list[PlacedFrame]) -> None:
        """Keep these frames, the first ones of the file, and cut off the rest."""
        descriptor = self._open()
        length = kept[-1].frame.stop if kept else 0
        if length < self._promised.length:
            self._close()
            raise lost(self._vault.stream, "an open block")
        self._settled = self._length = length
        self._settled_frames = self._frames = len(kept)
        self._settled_tail = self._tail = Extent.of(descriptor, length).tail
        if os.fstat(descriptor).st_size != length:
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
            self.was_cut = True
        self._close()

    def append(self, plain: memoryview, *, producer: str, seq: int, part: int, parts: int) -> None:
        """Write one frame, not yet durable."""
        assert not self.sealed
        self._write(Header(DATA, self._frames, producer, seq, part, parts, self._settled), plain)

    def start(self) -> None:
        """Let the disk begin with everything written: worth it where other files are synced first.

        Promises nothing.
        """
        if self._descriptor is not None:
            start_writeback(self._descriptor, self._settled, self._length - self._settled)

    def sync(self) -> None:
        """Make everything written durable."""
        if self._descriptor is None:
            return
        os.fdatasync(self._descriptor)
        if self._settled == 0 and not self.named:
            sync_directory(self._vault.files)
        self._settled, self._settled_frames, self._settled_tail = (
            self._length,
            self._frames,
            self._tail,
        )
        self._close()

    def sync_idle(self) -> None:
        """Sync the file though nothing was written: an append takes as many syncs wherever its
        records go.
        """
        descriptor = os.open(self._vault.path(self.block), os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def roll_back(self) -> None:
        """Forget everything since the last `sync`."""
        if self._descriptor is None:
            return
        os.ftruncate(self._descriptor, self._settled)
        self._length, self._frames, self._tail = (
            self._settled,
            self._settled_frames,
            self._settled_tail,
        )
        self._close()

    def prove(self, size: int) -> None:
        """Write so many bytes behind what is durable and take them back, to meet what a frame would
        meet there.
        """
        descriptor = self._open()
        try:
            for start in range(0, size, PIECE_BYTES):
                write_all(descriptor, bytes(min(PIECE_BYTES, size - start)), self._settled + start)
            os.fdatasync(descriptor)
        finally:
            os.ftruncate(descriptor, self._settled)
            self._close()

    def seal(self) -> None:
        """Close the block for good, durably. Doing it again does nothing."""
        if not self.sealed:
            self._write(Header(SEAL, self._frames, settled=self._settled), b"")
            self.sync()
            self.sealed = True

    def close(self) -> None:
        """Let the file go as it lies, for somebody who recovers it. Safe to call twice."""
        self._close()

    def _write(self, header: Header, plain: memoryview | bytes) -> None:
        cipher, descriptor = self._key(), self._open()
        for piece in frame_pieces(
            cipher, self._vault.stream, self.block, header, plain, self._length
        ):
            start, self._length = self._length, write_all(descriptor, piece, self._length)
            self._tail = bytes(piece[-MAC_BYTES:])
            # The disk may begin while the next piece is encrypted, which touches none of these
            # pages again.
            if self._length % PIECE_BYTES == 0:
                start_writeback(descriptor, start, len(piece))
        self._frames += 1

    def _key(self) -> BlockCipher:
        if self._cipher is None:
            exists = self._vault.path(self.block).exists()
            self._cipher = (
                self._vault.key(self.block) if exists else self._vault.make_key(self.block)
            )
        return self._cipher

    def _open(self) -> int:
        if self._descriptor is None:
            self._key()
            self._descriptor = os.open(self._vault.path(self.block), os.O_RDWR | os.O_CREAT, 0o600)
        return self._descriptor

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _require_promised(self, descriptor: int) -> None:
        length = self._promised.length
        if os.fstat(descriptor).st_size < length or Extent.of(descriptor, length) != self._promised:
            self._close()
            raise lost(self._vault.stream, "an open block")

    def _refuse_damage(self, descriptor: int, stop: int, size: int) -> None:
        """A later header that knew the file to be durable beyond ``stop`` proves that this is no
        torn tail.
        """
        at, step, overlap = stop, 1 << 20, len(_MAGIC) - 1
        while at < size:
            chunk = os.pread(descriptor, step + overlap, at)
            place = chunk.find(_MAGIC)
            while 0 <= place < step:
                frame = read_frame(descriptor, at + place, size)
                if frame is not None and frame.header.settled > stop:
                    self._close()
                    raise damaged(self._vault.stream, self.block)
                place = chunk.find(_MAGIC, place + 1)
            at += step
