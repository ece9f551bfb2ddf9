"""Streams: ingest into encrypted blocks, and the one way to read them.

What a stream is, is said by `ptkstore.api.stream_spec`. ``StreamWriter`` (`ingest`) takes batches
in, seals and expires blocks; below it are `cohorts` (which block a user belongs to), `progress`
(what survives a crash) and `blocks` (the stored form, files and keys). ``StreamReader`` (`reading`)
opens slices with a grant. ``Exposure`` is what an operator may see.
"""

from ptkstore.streams.faults import BlockRefused, StreamDamaged, StreamUnavailable
from ptkstore.streams.ingest.writer import Ack, StreamWriter
from ptkstore.streams.progress.exposure import Exposure
from ptkstore.streams.reading.reader import StreamReader

__all__ = [
    "Ack",
    "BlockRefused",
    "Exposure",
    "StreamDamaged",
    "StreamReader",
    "StreamUnavailable",
    "StreamWriter",
]
