"""What a worker does: read opened blocks once, train each PTK on its range of tags, give back arrays as bytes.

By the time a worker is called the grants of all its PTKs are spent, durably. It is told what is open and, for each
PTK, the range of tags it may see; it never talks to the ledger. What goes wrong inside a PTK comes back as the type of the
error and the place in the code, never its text: texts may carry data.

Up to `KEEP_BYTES` of opened records are kept in memory for the next PTK of the same call; beyond that blocks are read again.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import safetensors.numpy

from ptklib import registry
from ptklib.errors import SageError
from ptklib.ledger.canonical import canonical
from ptklib.ptk import Batches, Ptk
from ptkstore.streams.opened import Opened, Tagged, read_opened, require_open

__all__ = ["KEEP_BYTES", "Lesson", "Trained", "train_all"]

KEEP_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True)
class Lesson:
    """One PTK to train. ``previous`` are the arrays of its last state, as safetensors."""

    name: str
    kind: str
    config: dict[str, Any]
    epsilon: str
    delta: str
    tag_start: int
    tag_stop: int
    records_per_unit: int
    previous: bytes | None


@dataclass(frozen=True)
class Trained:
    """The arrays of one PTK as safetensors, or what went wrong and where."""

    name: str
    arrays: bytes | None
    failure: str = ""


def train_all(opened: Opened | None, lessons: Sequence[Lesson]) -> list[Trained]:
    """Train every lesson on what is open; one that fails does not stop the others."""
    records = _Records(opened)
    return [_train(records, lesson) for lesson in lessons]


class _Records:
    """The records of the opened blocks with their tags, kept while they fit."""

    def __init__(self, opened: Opened | None) -> None:
        self.opened = opened
        self._kept: list[Tagged] | None = None

    def __iter__(self) -> Iterator[Tagged]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Tagged] | None = []
        size = 0
        for one in read_opened(self.opened) if self.opened else ():
            size += one.batch.nbytes + one.tags.nbytes
            if kept is not None:
                kept.append(one)
                if size > KEEP_BYTES:
                    kept = None
            yield one
        self._kept = kept


def _train(records: _Records, lesson: Lesson) -> Trained:
    try:
        ptk = _ptk(lesson.kind, canonical(lesson.config))
        if records.opened is not None:
            require_open(records.opened, lesson.tag_start, lesson.tag_stop)
        arrays = ptk.train_dp(
            _within(records, ptk, lesson.tag_start, lesson.tag_stop),
            epsilon=lesson.epsilon,
            delta=lesson.delta,
            previous=safetensors.numpy.load(lesson.previous) if lesson.previous is not None else None,
            records_per_unit=lesson.records_per_unit,
        )
        ptk.validate(arrays)
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return Trained(lesson.name, safetensors.numpy.save(plain))
    except Exception as error:  # whatever a PTK raises may carry data: only its type and place leave
        return Trained(lesson.name, None, _place(error))


@lru_cache(maxsize=1024)
def _ptk(kind: str, config: bytes) -> Ptk:
    """The same PTKs come in every window, and checking a configuration takes a while."""
    return registry.make(kind, json.loads(config))


def _within(records: _Records, ptk: Ptk, start: int, stop: int) -> Batches:
    """The PTK's columns of the records whose tag lies in ``[start, stop)``."""
    columns = list(ptk.columns())
    first, width = np.uint64(start), stop - start
    for one in records:
        batch = one.batch.select(columns)
        if width >= 2**64:
            yield batch
            continue
        # Unsigned subtraction wraps, so one comparison does for both bounds.
        inside = (one.tags - first) < np.uint64(width)
        if inside.all():
            yield batch
        elif inside.any():
            yield batch.filter(pa.array(inside))


def _place(error: Exception) -> str:
    reason = f" {error.reason}" if isinstance(error, SageError) else ""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{reason}{where}"
