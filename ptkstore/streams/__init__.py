"""Streams: a specification, ingest into encrypted blocks, and the one way to read them.

``StreamSpec`` and ``Column`` (``spec``, ``columns``) say what a stream is. ``StreamWriter`` (``writer``) takes batches
in, seals and expires blocks; below it: ``encoding`` (checks and stored form), ``tags``, ``routing`` and ``cohorts``
(which block a record goes to), ``block_file`` and ``frames`` (the file format), ``vault`` (files and keys),
``progress``, ``accepted`` and ``recovery`` (what survives a crash). ``StreamReader`` (``reader``) opens slices with a
grant. ``Exposure`` is what an operator may see.
"""

from ptkstore.streams.columns import Column
from ptkstore.streams.exposure import Exposure
from ptkstore.streams.faults import BlockRefused, StreamDamaged, StreamUnavailable
from ptkstore.streams.reader import StreamReader
from ptkstore.streams.spec import StreamSpec
from ptkstore.streams.writer import Ack, StreamWriter

__all__ = [
    "Ack",
    "BlockRefused",
    "Column",
    "Exposure",
    "StreamDamaged",
    "StreamReader",
    "StreamSpec",
    "StreamUnavailable",
    "StreamWriter",
]
