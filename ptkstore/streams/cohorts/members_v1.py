"""The list of members as earlier versions kept it, to be read once: ``STORE/streams/NAME/members``.

Entries of (count, cohort, crc32, tags), in clear, with no witness of the length. An entry that is
cut short at the end of the file is what a crash left, as it was then. Anything else that does not
fit is damage: STREAM_DAMAGED, and nothing is changed.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from ptkstore.streams.cohorts.member_log import Members
from ptkstore.streams.faults import StreamDamaged
from ptkstore.streams.tags import Tags

__all__ = ["FILE", "read_members_v1"]

FILE = "members"
_ENTRY = struct.Struct(">QqI")


def read_members_v1(folder: Path) -> Members:
    """All members; none where there is no file."""
    path = folder / FILE
    body = path.read_bytes() if path.exists() else b""
    tags, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    at = 0
    while (entry := _entry(body, at)) is not None:
        joined, number, at = entry
        tags.append(joined)
        numbers.append(np.full(len(joined), number, dtype=np.int64))
    if at < len(body) and (_is_whole(body, at) or _goes_on(body, at)):
        raise StreamDamaged(
            "STREAM_DAMAGED",
            f"the members of stream {folder.name!r} are not as they were written: bring the file "
            f"{FILE!r} back; "
            "nothing was cut",
            stream=folder.name,
        )
    return Members(np.concatenate(tags), np.concatenate(numbers))


def _is_whole(body: bytes, at: int) -> bool:
    """True where all of the entry is there, so that it was not cut short: by its count, or by what
    would be the right one.
    """
    if at + _ENTRY.size > len(body):
        return False
    count, number, crc = _ENTRY.unpack_from(body, at)
    rest = body[at + _ENTRY.size :]
    return bool(8 * count <= len(rest)) or _crc(len(rest) // 8, number, rest) == crc


def _goes_on(body: bytes, at: int) -> bool:
    """True where a sound entry lies behind the place: entries were written in order, each durable
    before the next.

    All entries begin at multiples of four bytes.
    """
    return any(
        _entry(body, place) is not None for place in range(at + 4, len(body) - _ENTRY.size, 4)
    )


def _entry(body: bytes, at: int) -> tuple[Tags, int, int] | None:
    if at + _ENTRY.size > len(body):
        return None
    count, number, crc = _ENTRY.unpack_from(body, at)
    stop = at + _ENTRY.size + 8 * count
    if stop > len(body):
        return None
    tags = body[at + _ENTRY.size : stop]
    # Empty entries were never written, and zeros would look like one.
    if not count or _crc(count, number, tags) != crc:
        return None
    return np.frombuffer(tags, dtype="<u8").astype(np.uint64), number, stop


def _crc(count: int, number: int, tags: bytes) -> int:
    return zlib.crc32(tags, zlib.crc32(struct.pack(">Qq", count, number)))
