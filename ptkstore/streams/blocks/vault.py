"""The vault: block files and the keys that open them, kept apart.

::

    STORE/streams/NAME/BLOCK.block     frames under the block's key
    STORE/keys/NAME/BLOCK.key          32 random bytes, mode 600
    STORE/keys/NAME/tags.key           the key of user tags, and the sign that the keys of the stream are here at all

A key is durable before the first frame under it is written. Destroying goes the other way:
overwrite, fsync, unlink, fsync of the directory, and only then the file. A crash between any two
steps leaves a key without a file, a file without a key, or a file with an overwritten key. What is
to be destroyed is noted first (`acknowledged`), so that this is told from a file or a key that was
lost. Overwriting is a courtesy to disks that write in place: on copy-on-write and flash the old
sectors may survive until reclaimed. Reasons: STREAM_KEYS_MISSING, BLOCK_EXPIRED.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ptkstore.ledger.key_file import KEY_BYTES, read_key, read_or_make_key
from ptkstore.private_files import sync_directory
from ptkstore.streams.blocks.cipher import BlockCipher
from ptkstore.streams.blocks.writeback import start_writeback
from ptkstore.streams.faults import BlockRefused, StreamDamaged

__all__ = ["Vault", "replace_durably", "write_all"]

_GONE = bytes(KEY_BYTES)
_UNLINKERS = 4


class Vault:
    """The files and keys of one stream."""

    def __init__(self, store: Path, stream: str) -> None:
        """Name the two directories; `prepare` makes them."""
        self.stream = stream
        self.files = store / "streams" / stream
        self.keys = store / "keys" / stream

    def prepare(self) -> None:
        """Make the directories, durably."""
        for folder in (self.files, self.keys):
            missing = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for path in missing:
                sync_directory(path.parent)

    def tag_key(self) -> bytes:
        """The key of user tags, made with the stream.

        Where it is missing later, all keys are: refuse to go on.
        """
        path = self.keys / "tags.key"
        if not path.exists() and any(self.files.iterdir()):
            raise StreamDamaged(
                "STREAM_KEYS_MISSING",
                f"stream {self.stream!r} has files but no keys: mount its key directory; nothing "
                "was deleted",
                stream=self.stream,
            )
        return read_or_make_key(path)

    def path(self, block: str) -> Path:
        """The file of a block."""
        return self.files / f"{block}.block"

    def blocks(self) -> list[str]:
        """All blocks and quarantines with a file."""
        return sorted(path.name.removesuffix(".block") for path in self.files.glob("*.block"))

    def make_key(self, block: str) -> BlockCipher:
        """A fresh key, durable when this returns.

        One without a file is left from a crash and served nobody: it is replaced.
        """
        self.make_keys([block])
        return self.key(block)

    def make_keys(self, blocks: Sequence[str]) -> None:
        """Fresh keys, durable when this returns: many together cost little more than one.

        A few dozen at a time.
        """
        with ExitStack() as opened:
            made = []
            for block in blocks:
                assert not self.path(block).exists()
                path = self._key_path(block)
                path.unlink(missing_ok=True)
                made.append(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                opened.callback(os.close, made[-1])
                write_all(made[-1], secrets.token_bytes(KEY_BYTES), 0)
            for descriptor in made[1:]:
                start_writeback(descriptor, 0, KEY_BYTES)
            for descriptor in made:
                os.fsync(descriptor)
        sync_directory(self.keys)

    def make_empty(self, blocks: Sequence[str]) -> None:
        """Empty files for blocks that have a key, their names durable when this returns."""
        for block in blocks:
            os.close(os.open(self.path(block), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if blocks:
            sync_directory(self.files)

    def key(self, block: str) -> BlockCipher:
        """The cipher of a block. Refused: BLOCK_EXPIRED."""
        return BlockCipher(self.key_bytes(block))

    def key_bytes(self, block: str) -> bytes:
        """The key of a block itself, for a process that may not read the others.

        Refused: BLOCK_EXPIRED.
        """
        if not self.holds(block):
            raise BlockRefused(
                "BLOCK_EXPIRED", f"the key of block {block!r} was destroyed", block=block
            )
        return read_key(self._key_path(block))

    def holds(self, block: str) -> bool:
        """True while the block can be opened."""
        try:
            key = self._key_path(block).read_bytes()
        except FileNotFoundError:
            return False
        return len(key) == KEY_BYTES and key != _GONE

    def destroy(self, *blocks: str) -> None:
        """Make blocks unrecoverable: first all keys, then the files.

        Doing it again does nothing.
        """
        for block in blocks:
            path = self._key_path(block)
            with suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_WRONLY)
                try:
                    os.pwrite(descriptor, _GONE, 0)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                path.unlink()
        sync_directory(self.keys)
        # Unlinking a long file takes the system a while: do several side by side.
        with ThreadPoolExecutor(_UNLINKERS) as pool:
            list(pool.map(lambda block: self.path(block).unlink(missing_ok=True), blocks))
        sync_directory(self.files)

    def collect(self) -> bool:
        """Remove what a crash left of blocks that nobody was promised: files without a usable key,
        keys without a file.

        True when there was a file. Whoever calls this has made sure that nothing acknowledged is in
        that state (`recovery`).
        """
        named = {path.name.removesuffix(".key") for path in self.keys.glob("*.key")} - {"tags"}
        unusable = [
            block
            for block in {*named, *self.blocks()}
            if not self.holds(block) or not self.path(block).exists()
        ]
        files = any(self.path(block).exists() for block in unusable)
        if unusable:
            self.destroy(*unusable)
        return files

    @contextmanager
    def reading(self, block: str) -> Iterator[int]:
        """A descriptor of the block's file. Refused: BLOCK_EXPIRED."""
        try:
            descriptor = os.open(self.path(block), os.O_RDONLY)
        except FileNotFoundError:
            raise BlockRefused(
                "BLOCK_EXPIRED", f"block {block!r} was destroyed", block=block
            ) from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _key_path(self, block: str) -> Path:
        return self.keys / f"{block}.key"


def replace_durably(path: Path, body: bytes) -> None:
    """Put ``body`` into ``path``, whole or not at all, durable when this returns."""
    draft = path.with_name(path.name + ".draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(descriptor, body, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.replace(path)
    sync_directory(path.parent)


def write_all(descriptor: int, body: bytes | memoryview, offset: int) -> int:
    """Write all of ``body`` at ``offset``; returns where it ends."""
    view = memoryview(body)
    while view:
        done = os.pwrite(descriptor, view, offset)
        view, offset = view[done:], offset + done
    return offset
