"""Cohorts: which block a user belongs to, for life.

A user spans many spans of time, so at user level time cannot cut the stream into blocks with separate budgets. Instead
a user joins the cohort of the span in which the first record is seen, and all records of the user go to that cohort's
block while it is open. Once it is sealed, later records of its users are quarantined whatever the stream's rule for
late records is: they must not reach another block, whose budget is another one. Where a record goes depends on its own
user only, so adding or removing a user changes nothing for others.

What is remembered is one tag per user (a keyed pseudorandom value, never the id) and the number of the cohort. It has to
outlive the cohort's data: it is the one thing besides DP results that does. See docs/internals/streams.md.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np

from ptkstore.streams.tag_map import Numbers, TagMap
from ptkstore.streams.tags import Tags
from ptkstore.streams.vault import sync_directory, write_all

__all__ = ["NOBODY", "Cohorts"]

NOBODY = int(np.iinfo(np.int64).min)
_ENTRY = struct.Struct(">QqI")


class Cohorts:
    """The members of all cohorts of one stream: a file that grows, and sorted runs in memory."""

    def __init__(self, path: Path) -> None:
        """Read the file, and cut off an entry that a crash left unfinished."""
        self._path = path
        self._known = TagMap(NOBODY)
        body = path.read_bytes() if path.exists() else b""
        at = 0
        while (entry := _entry(body, at)) is not None:
            tags, number, at = entry
            self._known.put(tags, np.full(len(tags), number, dtype=np.int64))
        self._length = at
        if at < len(body):
            os.truncate(path, at)

    def find(self, tags: Tags) -> Numbers:
        """The cohort of each tag, `NOBODY` where there is none."""
        return self._known.find(tags)

    def join(self, tags: Tags, numbers: Numbers) -> None:
        """Add users who are in no cohort yet, durably."""
        if not len(tags):
            return
        fresh = not self._path.exists()
        body = b"".join(_bytes(tags[numbers == one], int(one)) for one in np.unique(numbers))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            length = write_all(descriptor, body, self._length)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        if fresh:
            sync_directory(self._path.parent)
        self._length = length
        self._known.put(tags, numbers)


def _bytes(tags: Tags, number: int) -> bytes:
    body = tags.astype("<u8").tobytes()
    return _ENTRY.pack(len(tags), number, zlib.crc32(body, zlib.crc32(struct.pack(">Qq", len(tags), number)))) + body


def _entry(body: bytes, at: int) -> tuple[Tags, int, int] | None:
    if at + _ENTRY.size > len(body):
        return None
    count, number, crc = _ENTRY.unpack_from(body, at)
    stop = at + _ENTRY.size + 8 * count
    tags = body[at + _ENTRY.size : stop]
    if stop > len(body) or zlib.crc32(tags, zlib.crc32(struct.pack(">Qq", count, number))) != crc:
        return None
    return np.frombuffer(tags, dtype="<u8").astype(np.uint64), number, stop
