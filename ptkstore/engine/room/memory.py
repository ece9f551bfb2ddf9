"""Memory that is set aside before data is opened, so that no training fails for how many records
there are.

A training that ran out of memory would answer "more than so many records" without noise. So what a
PTK may need is worked out from public numbers: its configuration (`Ptk.working_bytes`), the
specification of the stream, and the *most* records that can be in its slice. If that is more than a
worker may have, the PTK is not trained in this window, and nothing of it is charged or opened:
MEMORY_TOO_SMALL.

**Proof note.** *What is told:* whether a PTK has room, a function of configurations, settings and
DP counts: post-processing, free. *The most records:* N records lie in a window of B blocks whose
counts have Laplace noise of scale s. The noise of all counts together is below -t with probability
at most 2^-64 for t = s max(sqrt(8 B L), 2 sqrt(2) L), L = 64 ln 2: the log of the moment of one is
at most 2 (s x)^2 for s x <= 1/sqrt(2); and counts that were below 0 were raised, which only adds. A
slice with the share p of all tags holds at most N p + sqrt(2 r N p L) + 2 r L / 3 of them, but for
2^-64 (Bernstein), where a unit has at most r records: tags of units are drawn independently of
everything. So the memory set aside suffices whatever the data, but for a probability below 2^-63 in
each window.

*Bytes:* besides what a PTK declares, a worker holds one frame of a block (bounded where batches are
taken in), a few copies of one batch of it, and at user level a number for each user of a block;
when it is done, the state as it is written. A quarter is added for what allocators lose.

Reasons: MEMORY_TOO_SMALL.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ptklib.errors import Refused
from ptklib.ptk import Ptk
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.streams.blocks.encoding import MAX_BATCH_BYTES, MAX_BATCH_ROWS, MAX_TEXT_BYTES
from ptkstore.streams.reading.reader import MAX_ROWS

__all__ = [
    "MEMORY_TOO_SMALL",
    "least_training_bytes",
    "most_in_slice",
    "most_in_window",
    "profiling_bytes",
    "require_room",
    "row_bytes",
    "training_bytes",
]

MEMORY_TOO_SMALL = "MEMORY_TOO_SMALL"

_LIKELY = 64 * math.log(2)
# Of a tag, and of what is noted of a user while a block is read.
_TAG_BYTES, _USER_BYTES = 8, 64
# A frame is read, decrypted and filtered; a batch of it is decoded, sorted, put in order and cut.
_FRAME_COPIES, _BATCH_COPIES = 3, 6
# A batch for a worker is held, packed, sent and unpacked.
_CHORE_COPIES = 4
_SPARE_BYTES = 32 << 20


def most_in_window(dp_records: int, blocks: int, spec: StreamSpec) -> int:
    """More records than this are not in a window with that DP count. See the proof note."""
    scale = float(spec.count_release().scale)
    below = scale * max(math.sqrt(8 * blocks * _LIKELY), 2 * math.sqrt(2) * _LIKELY)
    return max(0, dp_records) + math.ceil(below)


def most_in_slice(window: int, share: Fraction, records_per_unit: int) -> int:
    """More records than this are not in that share of the tags of a window of at most so many.

    See the proof note.
    """
    mean = window * float(share)
    above = math.sqrt(2 * records_per_unit * mean * _LIKELY) + 2 * records_per_unit * _LIKELY / 3
    return min(window, math.ceil(mean + above) + 1)


def training_bytes(spec: StreamSpec, ptk: Ptk, *, window: int, most: int) -> int:
    """What a worker may hold to train a PTK on at most ``most`` of the records of a window of at
    most ``window``.
    """
    # A state is within a third of what the PTK declares for no records: the last one is read, the
    # new one written.
    return _spare(_reading_bytes(spec, window) + ptk.working_bytes(most) + 2 * ptk.working_bytes(0))


def profiling_bytes(spec: StreamSpec, ptk: Ptk, *, window: int, most: int) -> int:
    """What the engine, or a worker, may hold to profile a PTK on at most ``most`` records."""
    held = most * (row_bytes(spec, ptk.columns()) + _TAG_BYTES) * _CHORE_COPIES
    return _spare(
        _reading_bytes(spec, window) + held + ptk.working_bytes(most) + ptk.working_bytes(0)
    )


def require_room(needed: int, allowed: int, what: str) -> None:
    """Refuse work that may need more memory than a worker has. Public numbers only."""
    if needed > allowed:
        raise Refused(
            MEMORY_TOO_SMALL,
            f"{what} may need {_mib(needed)} MiB of memory, and a worker has {_mib(allowed)}: "
            "raise workers.memory_bytes, "
            "run fewer workers, or ask for less (inputs, bins, cells, samples)",
            needed_bytes=needed,
            allowed_bytes=allowed,
        )


def least_training_bytes(spec: StreamSpec, ptk: Ptk, samples: int) -> int:
    """What training on so many samples may need in any window, however few records there are."""
    return training_bytes(spec, ptk, window=samples, most=samples)


def row_bytes(spec: StreamSpec, columns: tuple[str, ...]) -> int:
    """The most bytes that one record has in these columns, as it is read."""
    return sum(_column_bytes(spec.column(name)) for name in columns) + 1


def _reading_bytes(spec: StreamSpec, window: int) -> int:
    """What reading any block of the stream may hold, whatever its batches were."""
    frame = MAX_BATCH_BYTES + _TAG_BYTES * MAX_BATCH_ROWS
    listed = [column for column in spec.columns if column.domain is not None]
    plain = sum(_column_bytes(column) for column in spec.columns if column.domain is None) + 1
    # What is not listed came in with the frame: many long texts are few records.
    batch = min(frame, MAX_ROWS * (plain + _TAG_BYTES)) + MAX_ROWS * sum(
        _column_bytes(column) for column in listed
    )
    users = _USER_BYTES * window if spec.unit == "user" else 0
    return (
        _FRAME_COPIES * min(frame, MAX_BATCH_ROWS * (plain + _TAG_BYTES + 4 * len(listed)))
        + _BATCH_COPIES * batch
        + users
    )


def _column_bytes(column: Column) -> int:
    if column.type == "dictionary":
        return 5
    if column.type == "string":
        if column.domain is not None:
            return max(len(str(value).encode()) for value in column.domain) + 5
        return (int(column.upper) if isinstance(column.upper, int | float) else MAX_TEXT_BYTES) + 5
    return max(1, int(column.arrow.bit_width) // 8) + 1


def _spare(size: int) -> int:
    return size * 5 // 4 + _SPARE_BYTES


def _mib(count: int) -> int:
    return -(-count // 2**20)
