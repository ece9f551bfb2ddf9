"""The log of who has joined which cohort: a file that must never shrink, and a witness elsewhere of
how long it is.

::

    STORE/streams/NAME/members-K.log     records, one per group of batches: (tag, cohort) of everybody who joined
    STORE/keys/NAME/members.witness      K, how long the log is for certain, and the end of its chain; in two slots

*What is noticed.* Records are encrypted and authenticated under a key of the stream, each bound to
its place and to the record before (AES-256-GCM). The witness is durable before anybody hears of the
batch. A log that is not whole up to where the witness says is damage, STREAM_DAMAGED: nothing is
cut, whatever was found. What lies behind that is what a crash left: a whole record of the chain is
taken, everything else counts for nothing and is written over.

*What it tells.* The file is random bytes to whoever lacks the key. Its length is that of the
records and at most a page, rounded up to `CHUNK_BYTES`. `write` always writes whole pages to the
log and a slot of the witness, and syncs each once, also where nobody joined, so that the work of an
append does not tell who was new.

*Crashes.* `write` makes the record durable, then the witness; the caller writes the frames of the
batches after that. A crash before the witness leaves a record that may or may not be taken, for a
batch that was not acknowledged; one after it leaves users who joined without their records. Either
is harmless: who joined stays in that cohort, where the batch puts them when it is sent again, and
nobody is ever in two. The other order would not be: frames without a join let a user join twice.

`rewrite` makes a new log (K + 1) from known members, for logs of many short records and for the
format of earlier versions. Reason: STREAM_DAMAGED.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ptklib.encoding.mac import mac_of
from ptkstore.private_files import sync_directory
from ptkstore.streams.blocks.vault import Vault, replace_durably, write_all
from ptkstore.streams.faults import StreamDamaged
from ptkstore.streams.tag_map import Numbers
from ptkstore.streams.tags import Tags

__all__ = ["CHUNK_BYTES", "MemberLog", "Members"]

CHUNK_BYTES = 1 << 16
_PAGE = 1 << 12
_NONCE, _MAC = 12, 16
_COUNT = struct.Struct(">I")
_HEAD_BYTES = _NONCE + _COUNT.size + _MAC
_ENTRY_BYTES = 16
_PLACE = struct.Struct(">QQ16s")
_SLOT = struct.Struct(">QQQ16s")
_SLOT_BYTES = _NONCE + _SLOT.size + _MAC
_START = bytes(_MAC)
_WITNESS = "members.witness"
_LOGS = "members-*.log"
# A log is made anew when its records hold fewer users than this on average, and there are many.
_SHORT, _MANY = 16, 10_000
# Users in one record at most: what is read at once.
_LONGEST = 1 << 20


class Members(NamedTuple):
    """Users by tag, and their cohorts."""

    tags: Tags
    numbers: Numbers


class _End(NamedTuple):
    """How far a log goes: what the witness keeps."""

    generation: int
    number: int
    length: int
    chain: bytes


class MemberLog:
    """The log of one stream. One writer at a time; `read` alone writes nothing."""

    def __init__(self, vault: Vault, key: bytes) -> None:
        """``key`` is the stream's key of tags; the log has one that follows from it.

        Nothing is opened yet.
        """
        self._vault = vault
        self._cipher = AESGCM(mac_of(key, b"sage members v2", vault.stream.encode()))
        self._bound = vault.stream.encode() + b"\0"
        self._end = _End(0, 0, 0, _START)
        self._records = 0
        # True when the log was longer than the witness knew.
        self.is_ahead = False

    def read(self) -> Members:
        """Everybody who has joined.

        Refused: STREAM_DAMAGED, where less is there than the witness knows of.
        """
        end = self._witnessed()
        try:
            body = self._path(end.number).read_bytes()
        except FileNotFoundError:
            raise self._damaged() from None
        records: list[bytes] = []
        at, chain = 0, _START
        while (record := self._record(body, end.number, at, chain)) is not None:
            entries, at, chain = record
            records.append(entries)
            if at == end.length and chain != end.chain:
                raise self._damaged()
        if at < end.length:
            raise self._damaged()
        self.is_ahead = at > end.length
        self._end = end._replace(length=at, chain=chain)
        self._records = len(records)
        both = np.frombuffer(b"".join(records), dtype="<u8").reshape(-1, 2)
        return Members(both[:, 0].astype(np.uint64), both[:, 1].astype(np.int64))

    def is_long_for(self, members: Members) -> bool:
        """True when `rewrite` would make it much shorter."""
        return self._records > _MANY and len(members.tags) < _SHORT * self._records

    def write(self, joined: Members) -> None:
        """Make it durable that these users joined; nobody is as much work as somebody."""
        end, records = self._end, []
        for begin in range(0, len(joined.tags), _LONGEST):
            sealed = self._sealed(
                joined.tags[begin : begin + _LONGEST], joined.numbers[begin : begin + _LONGEST], end
            )
            records.append(sealed)
            end = end._replace(length=end.length + len(sealed), chain=sealed[-_MAC:])
        body = b"".join(records)
        body += os.urandom(_rounded(len(body) or 1, _PAGE) - len(body))
        descriptor = os.open(self._path(end.number), os.O_RDWR)
        try:
            _lengthen(descriptor, self._end.length + len(body))
            write_all(descriptor, body, self._end.length)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self._end = self._testify(end)
        self._records += len(records)

    def rewrite(self, members: Members) -> None:
        """A new log with exactly these members, then its witness, and only then the old log
        goes.
        """
        before = self._end
        self._end = _End(before.generation, before.number + 1, 0, _START)
        self._records = 0
        path = self._path(self._end.number)
        replace_durably(path, b"")
        witness = self._vault.keys / _WITNESS
        if not witness.exists():
            replace_durably(witness, os.urandom(2 * _PAGE))
        self.write(members)
        for log in self._vault.files.glob(_LOGS):
            if log != path:
                log.unlink()

    def forget(self) -> None:
        """Remove everything, readable or not: for a stream that has ended."""
        for path in self._vault.files.glob(_LOGS):
            path.unlink()
        (self._vault.keys / _WITNESS).unlink(missing_ok=True)
        sync_directory(self._vault.keys)
        sync_directory(self._vault.files)

    def _sealed(self, tags: Tags, numbers: Numbers, end: _End) -> bytes:
        """A record: how many users, encrypted by itself for who must know before decrypting the
        rest; then the users.
        """
        place = self._bound + _PLACE.pack(end.number, end.length, end.chain)
        head, nonce = os.urandom(_NONCE), os.urandom(_NONCE)
        head += self._cipher.encrypt(head, _COUNT.pack(len(tags)), place)
        entries = np.empty((len(tags), 2), dtype="<u8")
        entries[:, 0], entries[:, 1] = tags, numbers.view(np.uint64)
        return head + nonce + self._cipher.encrypt(nonce, entries.tobytes(), place + head)

    def _record(
        self, body: bytes, number: int, at: int, chain: bytes
    ) -> tuple[bytes, int, bytes] | None:
        """The users of the record at a place, where it ends and its end of the chain; None where
        there is no whole one.
        """
        place = self._bound + _PLACE.pack(number, at, chain)
        head = body[at : at + _HEAD_BYTES]
        try:
            (count,) = _COUNT.unpack(self._cipher.decrypt(head[:_NONCE], head[_NONCE:], place))
            start = at + _HEAD_BYTES + _NONCE
            stop = start + _ENTRY_BYTES * count + _MAC
            entries = self._cipher.decrypt(
                body[start - _NONCE : start], body[start:stop], place + head
            )
        except (InvalidTag, ValueError):
            # Too short a text is a ValueError.
            return None
        return entries, stop, body[stop - _MAC : stop]

    def _testify(self, end: _End) -> _End:
        """Write the end of the log into the older slot of the witness, durably."""
        end = end._replace(generation=end.generation + 1)
        nonce, slot = os.urandom(_NONCE), end.generation % 2
        sealed = nonce + self._cipher.encrypt(
            nonce, _SLOT.pack(*end), _WITNESS.encode() + self._bound + bytes([slot])
        )
        descriptor = os.open(self._vault.keys / _WITNESS, os.O_WRONLY)
        try:
            write_all(descriptor, sealed, slot * _PAGE)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        return end

    def _witnessed(self) -> _End:
        """What the newest slot says that can be read: a crash may tear the one that was being
        written.
        """
        try:
            body = (self._vault.keys / _WITNESS).read_bytes()
        except FileNotFoundError:
            raise self._damaged() from None
        ends = []
        for slot in (0, 1):
            sealed = body[slot * _PAGE : slot * _PAGE + _SLOT_BYTES]
            with suppress(InvalidTag, ValueError):
                bound = _WITNESS.encode() + self._bound + bytes([slot])
                ends.append(
                    _End(
                        *_SLOT.unpack(self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound))
                    )
                )
        if not ends:
            raise self._damaged()
        return max(ends)

    def _path(self, number: int) -> Path:
        return self._vault.files / f"members-{number}.log"

    def _damaged(self) -> StreamDamaged:
        return StreamDamaged(
            "STREAM_DAMAGED",
            f"the members of stream {self._vault.stream!r} are not as they were written: bring "
            "back streams/ and keys/ as "
            "they were, or `sage restore`; nothing was cut",
            stream=self._vault.stream,
        )


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _lengthen(descriptor: int, length: int) -> None:
    """Let a file have whole chunks for ``length`` bytes, of bytes that look like any others."""
    size = os.fstat(descriptor).st_size
    wanted = _rounded(length, CHUNK_BYTES)
    if size < wanted:
        write_all(descriptor, os.urandom(wanted - size), size)
