"""A block of very many frames is read in a memory that does not grow with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from ptklib.ledger.slices import WHOLE
from ptklib.testing.ptk_memory import peak_bytes
from ptkstore.streams.reading.reader import StreamReader
from tests.engine.small import DAY_MS, FIRST_MS, day, open_store, spec


def _read(reader: StreamReader) -> int:
    return sum(len(batch) for batch, _ in reader._tagged("2026-01-01T00:00Z", [WHOLE]))


def test_reading_one_record_at_a_time_takes_no_note_of_all(tmp_path: Path) -> None:
    held = {}
    for frames in (50, 1_000):
        rows = day(0, frames).sort_by("at")
        # All in the first block.
        at = pa.array(FIRST_MS + np.arange(frames), pa.timestamp("ms"))
        rows = rows.set_column(0, "at", at)
        with open_store(tmp_path / str(frames)) as store:
            for k in range(frames):
                store.push("rides", rows.slice(k, 1))
            store.parts.writer("rides").seal_due(FIRST_MS + DAY_MS)
            reader = StreamReader(store.parts.path, spec())
            assert _read(reader) == frames
            held[frames] = peak_bytes(lambda: _read(reader))  # noqa: B023 - called at once
    assert held[1_000] < held[50] + 64 * 1024, held
