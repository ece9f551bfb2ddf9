"""The state as canonical bytes: equal states have equal bytes, so a digest compares them, and
loading is fast.

Layout: 8 bytes with the header's length, the header (JSON), the fates (one byte a charge), then the
loss vectors of all maps in the header's order (little-endian int64). Reason: SNAPSHOT_INVALID.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.encoding.canonical import canonical
from ptklib.errors import JournalDamaged
from ptklib.ledger.loss_map import LossMap
from ptklib.ledger.policy import Policy
from ptklib.ledger.state import Block, Charge, LedgerState, Stream
from ptklib.privacy.filters import filter_from_json

__all__ = ["digest", "dump", "load"]

_VERSION = 1


def digest(state: LedgerState) -> str:
    """SHA-256 of `dump`: equal exactly when the states are."""
    return hashlib.sha256(dump(state)).hexdigest()


def dump(state: LedgerState) -> bytes:
    """The whole state as bytes."""
    rows: list[NDArray[np.int64]] = []
    header = canonical(
        {
            "version": _VERSION,
            "fates": len(state.fates),
            "streams": [_dump_stream(stream, rows) for stream in state.streams.values()],
            "reserved": [charge.as_json() for _, charge in sorted(state.reserved.items())],
        }
    )
    body = b"".join(np.ascontiguousarray(row, dtype="<i8").tobytes() for row in rows)
    return len(header).to_bytes(8, "little") + header + bytes(state.fates) + body


def load(body: bytes) -> LedgerState:
    """Read `dump` back."""
    try:
        length = int.from_bytes(body[:8], "little")
        header = json.loads(body[8 : 8 + length])
        if header["version"] != _VERSION:
            raise ValueError
        state = LedgerState()
        begin = 8 + length + header["fates"]
        state.fates = bytearray(body[8 + length : begin])
        values = np.frombuffer(body, dtype="<i8", offset=begin).astype(np.int64)
        vectors = _Vectors(values)
        for stream_body in header["streams"]:
            state.streams[stream_body["stream"]] = _load_stream(stream_body, vectors)
        state.reserved = {
            charge_body["charge"]: Charge.from_json(charge_body)
            for charge_body in header["reserved"]
        }
        if len(state.fates) != header["fates"] or vectors.at != len(values):
            raise ValueError
    except (ValueError, KeyError, TypeError, IndexError):
        raise JournalDamaged(
            "SNAPSHOT_INVALID", "a snapshot of the ledger cannot be read"
        ) from None
    return state


class _Vectors:
    """A cursor over the flat losses."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values
        self.at = 0

    def take(self, starts: list[int], width: int) -> LossMap:
        end = self.at + len(starts) * width
        rows = self.values[self.at : end].reshape(len(starts), width)
        self.at = end
        return LossMap(starts, rows)


def _dump_stream(stream: Stream, rows: list[NDArray[np.int64]]) -> dict[str, Any]:
    return {
        "stream": stream.name,
        "policy": stream.policy.as_json(),
        "filter": stream.filter.as_json(),
        "quotas": {
            name: [stream.shares[name], quota.as_json()] for name, quota in stream.quotas.items()
        },
        "keys": stream.keys,
        "blocks": [list(_dump_block(block, rows)) for block in stream.blocks],
    }


def _dump_block(block: Block, rows: list[NDArray[np.int64]]) -> Iterator[Any]:
    yield block.name
    yield block.retired
    yield block.keys
    yield block.loss.starts
    rows.append(block.loss.rows)
    contexts = sorted(block.contexts.items())
    yield [[name, loss.starts] for name, loss in contexts]
    rows.extend(loss.rows for _, loss in contexts)


def _load_stream(body: dict[str, Any], vectors: _Vectors) -> Stream:
    privacy_filter = filter_from_json(body["filter"])
    stream = Stream(body["stream"], Policy.from_json(body["policy"]), privacy_filter)
    for context, (share, quota) in body["quotas"].items():
        stream.shares[context] = share
        stream.quotas[context] = filter_from_json(quota)
    stream.keys = body["keys"]
    for name, retired, keys, starts, contexts in body["blocks"]:
        block = Block(len(stream.blocks), name, vectors.take(starts, privacy_filter.width))
        block.retired = retired
        block.keys = keys
        block.contexts = {
            context: vectors.take(begins, privacy_filter.width) for context, begins in contexts
        }
        stream.blocks.append(block)
        stream.by_name[name] = block
        if retired is None:
            stream.alive[name] = block
    return stream
