"""How much memory a PTK holds at its peak, as Python, numpy and Arrow count it.

What other native code takes for itself (buffers of BLAS, of the allocator) is not seen; it is small
and does not grow with the records. One measurement at a time: the counters belong to the process.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

__all__ = ["BATCH_RECORDS", "peak_bytes", "repeated"]

# What a reader gives at once, at most.
BATCH_RECORDS = 1 << 16


def peak_bytes(work: Callable[[], Any]) -> int:
    """The most bytes that were held at once while ``work`` ran, without those that were held
    before.
    """
    gc.collect()
    before = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(before)
    traced = tracemalloc.is_tracing()
    if not traced:
        tracemalloc.start()
    pa.set_memory_pool(counted)
    try:
        tracemalloc.reset_peak()
        held = tracemalloc.get_traced_memory()[0]
        kept = work()
        peak = tracemalloc.get_traced_memory()[1]
        del kept
    finally:
        pa.set_memory_pool(before)
        if not traced:
            tracemalloc.stop()
    return max(0, peak - held) + int(counted.max_memory() or 0)


def repeated(data: pa.Table, records: int) -> Iterator[pa.RecordBatch]:
    """So many records in batches of at most `BATCH_RECORDS`: the same ones again and again, which
    takes no memory.
    """
    (batch,) = data.combine_chunks().to_batches(max_chunksize=BATCH_RECORDS)[:1]
    while records > 0:
        yield batch.slice(0, records)
        records -= len(batch)
