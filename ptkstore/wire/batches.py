"""Batches on the wire without needless copies.

An AppendRequest with a batch is a few bytes of frame around megabytes of records, which a protobuf
runtime copies at every step. `framed` makes the same bytes as the message; `unframed` finds seq and
records in them where they lie. What does not look exactly like that is None, and is left to the
protobuf runtime.
"""

from __future__ import annotations

__all__ = ["framed", "unframed"]

# Tags of AppendRequest.batch, AppendBatch.seq and AppendBatch.arrow_ipc.
_BATCH, _SEQ, _IPC = b"\x12", b"\x08", b"\x12"


def framed(seq: int, records: memoryview) -> bytes:
    """``AppendRequest(batch=AppendBatch(seq=seq, arrow_ipc=records)).SerializeToString()``."""
    inner = (_SEQ + _varint(seq) if seq else b"") + (
        _IPC + _varint(len(records)) if len(records) else b""
    )
    return b"".join((_BATCH, _varint(len(inner) + len(records)), inner, records))


def unframed(data: bytes) -> tuple[int, memoryview] | None:
    """The seq and the records in the bytes of an AppendRequest, or None where they are not laid out
    as `framed` does.
    """
    if data[:1] != _BATCH:
        return None
    length, at = _read(data, 1)
    if at + length != len(data):
        return None
    seq, at = _read(data, at + 1) if data[at : at + 1] == _SEQ else (0, at)
    if data[at : at + 1] != _IPC:
        return None
    length, at = _read(data, at + 1)
    return (seq, memoryview(data)[at:]) if at + length == len(data) and 0 <= seq < 2**64 else None


def _varint(value: int) -> bytes:
    varint = bytearray()
    while value > 0x7F:
        varint.append(value & 0x7F | 0x80)
        value >>= 7
    varint.append(value)
    return bytes(varint)


def _read(data: bytes, at: int) -> tuple[int, int]:
    """A varint and where it ends; -1 for one that does not end within ten bytes."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    return -1, at
