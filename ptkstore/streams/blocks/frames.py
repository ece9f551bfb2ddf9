"""Frames: the pieces of a block's file.

::

    "SGF1" | kind | producer_bytes | part | parts | ordinal | seq | body_bytes | settled | nonce | producer | crc32 | body
      4       1          2            2      2        8        8        8           8        12      …         4       …

The header is in clear and authenticated together with the names of stream and block (AES-256-GCM
associated data), so a frame cannot be moved, swapped, repeated or dropped unnoticed: ``ordinal``
counts the frames of the block, and the last frame of a sealed block is a *seal*, an authenticated
empty body. ``part`` of ``parts`` ties the frames of one batch together. ``settled`` is the length
up to which the file was durable when the frame was written: after a crash only what lies beyond can
be torn. Nonces are 96 random bits, not counters: a frame that a crash cut off must never share its
nonce with its successor.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from cryptography.exceptions import InvalidTag

from ptkstore.streams.blocks.cipher import MAC_BYTES, BlockCipher

__all__ = ["DATA", "PIECE_BYTES", "SEAL", "Frame", "Header", "frame_pieces", "read_frame", "unlock"]

DATA, SEAL = 1, 2
PIECE_BYTES = 1 << 20

_FIXED = struct.Struct(">4sBHHHQQQQ12s")
_CRC = struct.Struct(">I")
_MAGIC = b"SGF1"
_MOST_HEADER = _FIXED.size + 1000 + _CRC.size
_PURPOSE = b"sage frame v1\0"
# Ciphertext only.
_SCRATCH = threading.local()


@dataclass(frozen=True, slots=True)
class Header:
    """What a frame says of itself, in clear."""

    kind: int
    ordinal: int
    producer: str = ""
    seq: int = 0
    part: int = 0
    parts: int = 1
    settled: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame found in a file: its header, where it lies, and what is needed to open it."""

    header: Header
    raw: bytes
    nonce: bytes
    body_start: int
    stop: int


def frame_pieces(
    cipher: BlockCipher,
    stream: str,
    block: str,
    header: Header,
    plain: memoryview | bytes,
    start: int,
) -> Iterator[memoryview]:
    """The bytes of a frame that will begin at ``start`` of its file, in order; a piece is good
    until the next is asked for.

    Encrypting goes on where the piece before stopped: whoever writes each piece at once keeps the
    disk busy meanwhile, and a long frame needs no more memory than a piece. All pieces but the last
    end at a multiple of `PIECE_BYTES` of the file.
    """
    nonce = os.urandom(12)
    raw = _raw(header, nonce, len(plain) + MAC_BYTES)
    encryptor = cipher.encryptor(nonce, _bound_to(stream, block, raw))
    view = memoryview(plain)
    buffer = _scratch(len(raw) + min(len(view), 2 * PIECE_BYTES) + MAC_BYTES)
    buffer[: len(raw)] = raw
    filled = len(raw)
    while True:
        take = PIECE_BYTES - (start + filled) % PIECE_BYTES
        # Short pieces cost more than they gain: a short one goes with its neighbour.
        take += PIECE_BYTES if take < PIECE_BYTES // 2 else 0
        if len(view) - take < PIECE_BYTES // 2:
            break
        filled += encryptor.update_into(view[:take], buffer[filled:])
        yield buffer[:filled]
        view, start, filled = view[take:], start + filled, 0
    filled += encryptor.update_into(view, buffer[filled:])
    encryptor.finalize()
    buffer[filled : filled + MAC_BYTES] = encryptor.tag
    yield buffer[: filled + MAC_BYTES]


def _raw(header: Header, nonce: bytes, body_bytes: int) -> bytes:
    """The header as it is stored."""
    producer = header.producer.encode()
    raw = _FIXED.pack(
        _MAGIC,
        header.kind,
        len(producer),
        header.part,
        header.parts,
        header.ordinal,
        header.seq,
        body_bytes,
        header.settled,
        nonce,
    )
    raw += producer
    return raw + _CRC.pack(zlib.crc32(raw))


def _scratch(size: int) -> memoryview:
    """Memory of this thread for ciphertext, good until the next.

    Fresh pages for each would cost as much as the encryption.
    """
    buffer: bytearray | None = getattr(_SCRATCH, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _SCRATCH.buffer = bytearray(size)
    return memoryview(buffer)[:size]


def read_frame(descriptor: int, start: int, size: int) -> Frame | None:
    """The frame at ``start`` of a file of ``size`` bytes; None where there is no whole one."""
    raw = os.pread(descriptor, _MOST_HEADER, start)
    if len(raw) < _FIXED.size:
        return None
    magic, kind, producer_bytes, part, parts, ordinal, seq, body_bytes, settled, nonce = (
        _FIXED.unpack_from(raw)
    )
    end = _FIXED.size + producer_bytes
    if (
        magic != _MAGIC
        or len(raw) < end + _CRC.size
        or _CRC.unpack_from(raw, end)[0] != zlib.crc32(raw[:end])
    ):
        return None
    body_start = start + end + _CRC.size
    stop = body_start + body_bytes
    if stop > size:
        return None
    header = Header(kind, ordinal, raw[_FIXED.size : end].decode(), seq, part, parts, settled)
    return Frame(header, raw[: end + _CRC.size], nonce, body_start, stop)


def unlock(
    cipher: BlockCipher, stream: str, block: str, frame: Frame, descriptor: int
) -> bytes | pa.Buffer | None:
    """The frame's contents, or None when it is not what was written."""
    size = frame.stop - frame.body_start
    bound = _bound_to(stream, block, frame.raw)
    try:
        if not hasattr(cipher.whole, "decrypt_into") or size <= MAC_BYTES:
            return cipher.whole.decrypt(
                frame.nonce, os.pread(descriptor, size, frame.body_start), bound
            )
        body = _scratch(size)
        if os.preadv(descriptor, [body], frame.body_start) != size:
            return None
        # Arrow's pool keeps memory for the next frame; fresh pages for each would cost as much as
        # the decryption.
        plain = pa.allocate_buffer(size - MAC_BYTES)
        cipher.whole.decrypt_into(frame.nonce, body, bound, memoryview(plain).cast("B"))
        return plain
    except InvalidTag:
        return None


def _bound_to(stream: str, block: str, raw: bytes) -> bytes:
    names = b"".join(
        struct.pack(">H", len(name)) + name for name in (stream.encode(), block.encode())
    )
    return _PURPOSE + names + raw
