"""Counts of 39 features with a label, against exact tables of the same features without privacy,
one million rows.

A third of the features are numbers in 32 public bins of growing width, a third are ids in public
ranges of 10 to 10,000 values, a third are texts of high cardinality, hashed to 65,536 cells. For
each the baseline takes what was fastest of numpy and pyarrow on the same columns in memory:
`searchsorted` for bins, `dictionary_encode` for texts (faster than `group_by`), and `bincount` for
all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.bars import Say
from ptklib.columns.keys import Bins, IntegerRange
from ptklib.ptks.counts import Counts
from ptklib.ptks.tables.hashing import Hashed

WHAT = "39 features by label, 1 million rows / exact tables by numpy bincount (texts: pyarrow dictionaries)"
LIMIT = 1.5

_ROWS = 1_000_000
_ROUNDS = 7
_EACH = 13
_EDGES = (0.0, *np.geomspace(0.1, 100, 32).tolist())
_SIZES = tuple(int(one) for one in np.geomspace(10, 10_000, _EACH))
_WIDTH = 1 << 16


def rounds(say: Say) -> Iterator[tuple[float, float]]:
    table = _clicks()
    binned = [Bins(column=f"number-{place}", edges=_EDGES) for place in range(_EACH)]
    ids = [
        IntegerRange(column=f"id-{place}", first=0, last=size - 1)
        for place, size in enumerate(_SIZES)
    ]
    texts = [Hashed(column=f"text-{place}", width=_WIDTH) for place in range(_EACH)]
    ptk = Counts(keys=(*binned, *ids, *texts), label=IntegerRange(column="click", first=0, last=1))
    # The baseline reads the numbers without copies.
    columns = {
        name: table[name].to_numpy() for name in table.column_names if not name.startswith("text")
    }
    for number in range(1 + _ROUNDS):
        begin = time.perf_counter()
        ptk.train_dp(table.to_batches(), epsilon=1)
        middle = time.perf_counter()
        _bins(columns)
        _ids(columns)
        _texts(table, columns["click"])
        end = time.perf_counter()
        say(f"counts, round {number}: {middle - begin:.3f} s against {end - middle:.3f} s")
        # The first round warms both.
        if number:
            yield middle - begin, end - middle


def _bins(columns: dict[str, NDArray[Any]]) -> None:
    edges = np.array(_EDGES)
    for place in range(_EACH):
        codes = np.searchsorted(edges, columns[f"number-{place}"], side="right")
        np.bincount(codes * 2 + columns["click"], minlength=2 * len(edges) + 2)


def _ids(columns: dict[str, NDArray[Any]]) -> None:
    for place, size in enumerate(_SIZES):
        np.bincount(columns[f"id-{place}"] * 2 + columns["click"], minlength=2 * size)


def _texts(table: pa.Table, clicks: NDArray[Any]) -> None:
    for place in range(_EACH):
        for column in table[f"text-{place}"].chunks:
            coded = column.dictionary_encode()
            np.bincount(coded.indices.to_numpy() * 2 + clicks, minlength=2 * len(coded.dictionary))


def _clicks() -> pa.Table:
    rng = np.random.default_rng(0)
    body: dict[str, Any] = {"click": rng.integers(0, 2, _ROWS)}
    body |= {f"number-{place}": rng.gamma(2, 4, _ROWS) for place in range(_EACH)}
    body |= {
        f"id-{place}": (rng.random(_ROWS) ** 2 * size).astype(np.int64)
        for place, size in enumerate(_SIZES)
    }
    for place in range(_EACH):
        values = pa.array([f"{one:08x}" for one in rng.integers(0, 2**32, 50_000)])
        body[f"text-{place}"] = values.take(
            pa.array((rng.random(_ROWS) ** 3 * len(values)).astype(np.int64))
        )
    return pa.table(body)
