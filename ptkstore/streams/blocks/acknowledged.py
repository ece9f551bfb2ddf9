"""What was acknowledged, kept outside of the blocks' files: how long each must be, how it ends, and
what was destroyed.

A crash leaves a torn tail, and so does a disk that lost what it had promised; a file by itself
cannot tell the two apart. So every group of appends, once it is durable, is noted in
``STREAM/acknowledged`` before anybody hears of it: bytes up to there must be there for ever, or
until their destruction is noted, which comes before the destruction. What lies behind is what a
crash left.

::

    STORE/streams/NAME/acknowledged    records of [bytes | JSON | MAC], the MAC chained to the record before; then zeros
    STORE/keys/NAME/acknowledged       32 random bytes; the chain hangs on them and on the key of user tags

The file is as long as zeros were written ahead, so that a note changes no length. Notes of appends
are handed to the disk at once and are not waited for: a flush for each would cost a quarter of what
appends can do. Whoever is killed has written them all the same. A power cut may take the newest
with it, while the bytes they tell of are on the disk already: then these are taken for batches that
nobody heard of, as after any crash, and as they are whole nothing is missing. Notes of what is
sealed or destroyed are waited for, and those before them with them.

The key is made after the file: where the key is there, the file must be. A stream of an earlier
release has neither, and what it has is taken for what was acknowledged. Whoever reads the directory
sees the lengths of the files in it anyway. Reason: STREAM_DAMAGED.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ptklib.encoding.canonical import canonical
from ptklib.encoding.mac import mac_of
from ptkstore.ledger.key_file import KEY_BYTES, read_key
from ptkstore.streams.blocks.cipher import MAC_BYTES
from ptkstore.streams.blocks.vault import Vault, replace_durably, write_all
from ptkstore.streams.blocks.writeback import start_writeback
from ptkstore.streams.faults import StreamDamaged

__all__ = ["Acknowledged", "Extent", "Known", "forget", "lost", "read_known"]

_FILE = "acknowledged"
_LENGTH_BYTES = 4
_AHEAD = 1 << 16
# Records are put together when they are so many bytes, and many times what they come to.
_LEAST_COMPACTED = 1 << 20
_WASTE = 4


def lost(stream: str, what: str) -> StreamDamaged:
    """The error for a stream of which something is gone.

    It names no block: which ones are open depends on records.
    """
    return StreamDamaged(
        "STREAM_DAMAGED",
        f"{what} of stream {stream!r} is not as it was acknowledged: records are gone or changed "
        "on the disk, and nothing was "
        "deleted. Put the newest files back; if that cannot be done, `sage restore` gives up what "
        "is there",
        stream=stream,
    )


class Extent(NamedTuple):
    """How long a file is, and its last bytes: those of an authentication tag, so they stand for the
    frame they end.
    """

    length: int
    tail: bytes

    @classmethod
    def of(cls, descriptor: int, length: int) -> Extent:
        """Of an open file that is at least so long."""
        return cls(length, os.pread(descriptor, min(MAC_BYTES, length), max(0, length - MAC_BYTES)))


@dataclass
class Known:
    """What the records come to.

    ``gone`` are files whose destruction was noted, and perhaps not finished.
    """

    extents: dict[str, Extent] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    sealed_before: int | None = None

    def add(self, body: Mapping[str, Any]) -> None:
        """Fold one record."""
        for name in body.get("gone", ()):
            self.extents.pop(name, None)
            self.gone.add(name)
        for name, (length, tail) in body.get("extents", {}).items():
            self.extents[name] = Extent(int(length), bytes.fromhex(tail))
            self.gone.discard(name)
        if "sealed_before" in body:
            self.sealed_before = int(body["sealed_before"])

    def as_record(self) -> dict[str, Any]:
        """All in one record. What is gone and finished is left out."""
        return _record(self.extents, sorted(self.gone), self.sealed_before)


class Acknowledged:
    """The notes of one stream. Belongs to its writer, which holds the stream's lock."""

    def __init__(self, vault: Vault, tag_key: bytes) -> None:
        """Read what there is; None is `known` where nothing was ever noted.

        Nothing can be noted before `begin`.
        """
        self._vault = vault
        self._path = vault.files / _FILE
        self._tag_key = tag_key
        self._descriptor: int | None = None
        self._key = b""
        self._mac = b""
        self._end = self._size = self._compacted = 0
        known = read_known(vault, tag_key)
        self.adopted = known is None
        self.known = known or Known()

    def begin(self) -> None:
        """Write what is known into one record, and be ready for more."""
        key_path = self._vault.keys / _FILE
        own = secrets.token_bytes(KEY_BYTES) if self.adopted else read_key(key_path)
        self._key = _chain_key(own, self._tag_key)
        self._compact()
        if self.adopted:
            replace_durably(key_path, own)
            self.adopted = False

    def note(self, extents: Mapping[str, Extent], *, sealed_before: int | None = None) -> None:
        """Files are durable up to there. Waited for where something was sealed."""
        self.known.extents.update(extents)
        self.known.gone.difference_update(extents)
        self.known.sealed_before = (
            self.known.sealed_before if sealed_before is None else sealed_before
        )
        self._append(_record(extents, (), sealed_before), wait=sealed_before is not None)

    def destroying(self, names: Iterable[str]) -> None:
        """These files will be destroyed: durable when this returns, and only then may they be."""
        wanted = sorted(names)
        if wanted:
            # Before it is written: where the notes are put together instead, this one must be among
            # them.
            self.known.add({"gone": wanted})
            self._append(_record({}, wanted, None), wait=True)

    def destroyed(self) -> None:
        """All that was to be destroyed is."""
        self.known.gone.clear()

    def close(self) -> None:
        """Let the file go. Safe to call twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)

    def let_go(self) -> None:
        """Let the file go without waiting for the disk, for somebody who reads it again.

        Safe to call twice.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _append(self, record: Mapping[str, Any], *, wait: bool) -> None:
        assert self._descriptor is not None
        body = canonical(record)
        self._mac = _mac(self._key, self._mac, body)
        data = len(body).to_bytes(_LENGTH_BYTES, "big") + body + self._mac
        # The four zeros of the record after it are always there.
        if self._end + len(data) + _LENGTH_BYTES > self._size:
            if self._end > max(_LEAST_COMPACTED, _WASTE * self._compacted):
                self._compact()
                return
            self._grow(self._end + len(data) + _LENGTH_BYTES)
        start, self._end = self._end, write_all(self._descriptor, data, self._end)
        if wait:
            os.fdatasync(self._descriptor)
        else:
            start_writeback(self._descriptor, start, len(data))

    def _grow(self, least: int) -> None:
        assert self._descriptor is not None
        size = -(-least // _AHEAD) * _AHEAD
        try:
            write_all(self._descriptor, bytes(size - self._size), self._size)
            # A length that is not a multiple is a sign of damage: it must not come from a crash.
            os.fdatasync(self._descriptor)
        except OSError:
            # Nor from a disk that was full in the middle of it.
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size = size

    def _compact(self) -> None:
        body = canonical(self.known.as_record())
        self._mac = _mac(self._key, b"", body)
        data = len(body).to_bytes(_LENGTH_BYTES, "big") + body + self._mac
        self._end = self._compacted = len(data)
        self._size = -(-(self._end + _LENGTH_BYTES) // _AHEAD) * _AHEAD
        replace_durably(self._path, data.ljust(self._size, b"\0"))
        self.close()
        self._descriptor = os.open(self._path, os.O_RDWR)


def read_known(vault: Vault, tag_key: bytes) -> Known | None:
    """What was noted of a stream, for anybody who may read its keys; None where nothing ever
    was.
    """
    key_path, path = vault.keys / _FILE, vault.files / _FILE
    if not key_path.exists():
        return None
    key = _chain_key(read_key(key_path), tag_key)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise lost(vault.stream, "the list of what was acknowledged") from None
    known, mac, at = Known(), b"", 0
    while (record := _record_at(data, at)) is not None:
        body, stored_mac, at = record
        mac = _mac(key, mac, body)
        if not hmac.compare_digest(mac, stored_mac):
            break
        known.add(json.loads(body))
    if not mac or known.sealed_before is None or len(data) % _AHEAD:
        raise lost(vault.stream, "the list of what was acknowledged")
    return known


def forget(vault: Vault) -> None:
    """For a restore, when nothing is left that was acknowledged: the next writer begins a new
    list.
    """
    # The key first: a list without its key counts for nothing.
    for path in (vault.keys / _FILE, vault.files / _FILE):
        path.unlink(missing_ok=True)


def _record(
    extents: Mapping[str, Extent], gone: Iterable[str], sealed_before: int | None
) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if extents:
        body["extents"] = {
            name: [extent.length, extent.tail.hex()] for name, extent in extents.items()
        }
    if gone:
        body["gone"] = list(gone)
    if sealed_before is not None:
        body["sealed_before"] = sealed_before
    return body


def _record_at(data: bytes, at: int) -> tuple[bytes, bytes, int] | None:
    """The body and the MAC of a record, and where it ends; None where there is no whole one."""
    length = int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
    start, stop = at + _LENGTH_BYTES, at + _LENGTH_BYTES + length
    if not length or stop + hashlib.sha256().digest_size > len(data):
        return None
    return (
        data[start:stop],
        data[stop : stop + hashlib.sha256().digest_size],
        stop + hashlib.sha256().digest_size,
    )


def _chain_key(own: bytes, tag_key: bytes) -> bytes:
    return mac_of(tag_key, b"sage promised v1", own)


def _mac(key: bytes, before: bytes, body: bytes) -> bytes:
    return hmac.digest(key, before + body, "sha256")
