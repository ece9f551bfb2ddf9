"""Streams and blocks by name, and the refusals where there are none.

Reasons: STREAM_UNKNOWN, BLOCK_UNKNOWN, BLOCK_RETIRED.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptklib.errors import Refused
from ptklib.ledger.state import Block, LedgerState, Stream

__all__ = ["MAX_SHOWN", "blocks_of", "missing", "named", "retired", "stream_of"]

# How many blocks a refusal names.
MAX_SHOWN = 10


def stream_of(state: LedgerState, name: str) -> Stream:
    """The stream of this name."""
    stream = state.streams.get(name)
    if stream is None:
        raise Refused(
            "STREAM_UNKNOWN", f"there is no stream {name!r}: create it first", stream=name
        )
    return stream


def blocks_of(stream: Stream, names: Sequence[str]) -> list[Block]:
    """The living blocks of these names."""
    try:
        return [stream.alive[name] for name in names]
    except KeyError:
        raise missing(stream, names) from None


def missing(stream: Stream, names: Sequence[str]) -> Refused:
    """Why some of the blocks cannot be used."""
    unknown = [name for name in names if name not in stream.by_name]
    if not unknown:
        return retired(stream.name, [name for name in names if name not in stream.alive])
    return Refused(
        "BLOCK_UNKNOWN",
        f"stream {stream.name!r} has no block {named(unknown)}",
        stream=stream.name,
        blocks=unknown[:MAX_SHOWN],
    )


def retired(stream: str, names: list[str]) -> Refused:
    """The refusal of blocks that are closed."""
    return Refused(
        "BLOCK_RETIRED",
        f"stream {stream!r}: {named(names)} retired, nothing is charged to it again",
        stream=stream,
        blocks=names[:MAX_SHOWN],
    )


def named(names: Sequence[str]) -> str:
    """Some of the names, for a message."""
    return ", ".join(repr(name) for name in names[:MAX_SHOWN]) + (
        " …" if len(names) > MAX_SHOWN else ""
    )
