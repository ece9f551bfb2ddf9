"""A small stream for tests: its specification, batches of it, and a store with a real ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ptklib.errors import SageError
from ptklib.ledger.grants import Grant
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import WHOLE, Slice, TagRange
from ptklib.privacy.costs import PureCost
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.ledger import Ledger
from ptkstore.streams import Ack, StreamReader, StreamWriter
from ptkstore.streams.blocks.binding import bind

BASE_MS = 1_767_225_600_000
HOUR_MS = 3_600_000
FIRST, SECOND, THIRD = "2026-01-01T00:00Z", "2026-01-01T01:00Z", "2026-01-01T02:00Z"

COLUMNS = (
    Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
    Column(name="who", type="int64", lower=0, upper=10**12),
    Column(name="note", type="string", upper=100),
)


def spec(**changes: Any) -> StreamSpec:
    """Hourly blocks of three columns."""
    return StreamSpec(
        **{
            "name": "rides",
            "columns": COLUMNS,
            "time_column": "at",
            "window_seconds": 7200,
            "block_seconds": 3600,
            "policy": Policy(epsilon=100, delta=0),
            **changes,
        }
    )


def user_spec(**changes: Any) -> StreamSpec:
    """Cohorts of an hour."""
    policy = Policy(unit="user", epsilon=100, delta=0)
    fields = {
        "policy": policy,
        "user_column": "who",
        "window_seconds": 3600,
        "records_per_user": 2,
        **changes,
    }
    return spec(**fields)


def batch(
    whos: Sequence[int], *, hours: Sequence[float] | float = 0.0, note: str = "x"
) -> pa.RecordBatch:
    """One record per ``who``, ``hours`` after the beginning."""
    times = [hours] * len(whos) if isinstance(hours, int | float) else hours
    return pa.record_batch(
        [
            pa.array([BASE_MS + int(one * HOUR_MS) for one in times], pa.timestamp("ms")),
            pa.array(whos, pa.int64()),
            pa.array([note] * len(whos), pa.string()),
        ],
        names=["at", "who", "note"],
    )


def append_together(
    writer: StreamWriter, batches: Mapping[int, pa.RecordBatch]
) -> list[Ack | SageError]:
    """The answers to batches of one producer, by number, that are written as one group."""
    handed: list[Any] = []
    submit = writer._group.submit
    writer._group.submit = handed.append  # type: ignore[method-assign,assignment]
    try:
        for seq, one in batches.items():
            writer.append(one, producer="p", seq=seq)
    finally:
        writer._group.submit = submit  # type: ignore[method-assign]
    answers: list[Ack | SageError] = []
    for ticket in [writer._group.enqueue(one) for one in handed]:
        try:
            answers.append(writer._group.wait(ticket))
        except SageError as refusal:
            answers.append(refusal)
    return answers


class Store:
    """A store directory with a ledger that knows the sealed blocks."""

    def __init__(self, path: Path, stream: StreamSpec) -> None:
        self.path = path
        self.spec = stream
        self.ledger = Ledger.open(path / "ledger.db")
        if stream.name not in self.ledger.streams():
            self.ledger.create_stream(stream.name, stream.policy)
        bind(path, self.ledger)
        self.reader = StreamReader(path, stream)

    def writer(self) -> StreamWriter:
        return StreamWriter.open(self.path, self.spec)

    def grant(self, blocks: Sequence[str], tags: TagRange = WHOLE) -> Grant:
        known = set(self.ledger.blocks(self.spec.name))
        new = [one for one in blocks if one not in known]
        if new:
            self.ledger.add_blocks(self.spec.name, new)
        return self.ledger.reserve(
            self.spec.name, [Slice(tuple(blocks), tags)], PureCost(epsilon="0.01")
        )

    def whos(self, blocks: Sequence[str], tags: TagRange = WHOLE) -> list[int]:
        """The ``who`` of every record in the blocks, in order of arrival."""
        opened = self.reader.open_slice(self.grant(blocks, tags), self.ledger)
        return [one for found in opened for one in found.column("who").to_pylist()]

    def seal_all(self, writer: StreamWriter, hours: int = 5) -> list[str]:
        writer.seal_due(BASE_MS + hours * HOUR_MS)
        return writer.sealed()

    def after_restart(self) -> list[int]:
        """Every record that a writer which opens now still has."""
        with self.writer() as writer:
            return sorted(self.whos(self.seal_all(writer)))
