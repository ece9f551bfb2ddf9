"""Checks of what one record may do to others: bytes that it takes, and losses that it shifts by a
bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.testing.ptk_cases import Case, Check, demand
from ptklib.testing.ptk_memory import peak_bytes, repeated

__all__ = ["RECORD_CHECKS"]

_FEW, _MANY = 2_000, 12_000
# Lists grow by steps, and a generator may hold one batch more.
_SLACK_BYTES = 1 << 18
# Around the widths at which products of matrices take another way.
_BATCHES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100)


def _working_bytes(case: Case) -> None:
    """Training, exact and loss hold no more than is declared, nor grow faster with the records."""
    ptk = case.ptk
    declared = [ptk.working_bytes(count) for count in (0, _FEW, _MANY)]
    whole = all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in declared
    )
    demand(
        whole and declared == sorted(declared),
        f"working_bytes must be whole numbers that rise, got {declared}",
    )
    arrays = case.train()
    works: dict[str, Callable[[Any], Any]] = {
        "train_dp": case.train,
        "exact": ptk.exact,
        "loss": lambda batches: ptk.loss(arrays, batches),
    }
    for name, work in works.items():
        # Once before: what is remembered or imported at first use is no working memory.
        work(repeated(case.data, _FEW))
        few, many = (_held(work, case, count) for count in (_FEW, _MANY))
        demand(
            many <= declared[2],
            f"{name} of {_MANY} records may hold {declared[2]} bytes as declared, it held {many}",
        )
        grown, allowed = many - few, declared[2] - declared[1]
        demand(
            grown <= allowed + _SLACK_BYTES,
            f"{name} may hold {allowed // (_MANY - _FEW)} bytes for each record as declared, it "
            "held "
            f"{grown / (_MANY - _FEW):.0f}: raise working_bytes",
        )


def _held(work: Callable[[Any], Any], case: Case, count: int) -> int:
    return peak_bytes(lambda: work(repeated(case.data, count)))


def _losses_alone(case: Case) -> None:
    """A record has the same loss, to the last bit, alone, first, last and among any others."""
    arrays, table = case.train(), case.data
    whole = _losses(case, arrays, table.to_batches())
    for size in _BATCHES:
        losses = _losses(case, arrays, table.to_batches(max_chunksize=size))
        _demand_equal(whole, losses, f"in batches of {size}")
    order = np.random.default_rng(7).permutation(table.num_rows)
    _demand_equal(
        whole[order],
        _losses(case, arrays, table.take(order).combine_chunks().to_batches()),
        "in another order",
    )
    for count in (1, 2, 3, 50):
        _demand_equal(
            whole[:count],
            _losses(case, arrays, table.slice(0, count).to_batches()),
            f"among the first {count}",
        )
        last = table.slice(table.num_rows - count).to_batches()
        _demand_equal(whole[-count:], _losses(case, arrays, last), f"among the last {count}")


def _losses(case: Case, arrays: Any, batches: list[pa.RecordBatch]) -> Any:
    return np.asarray(case.ptk.loss(arrays, batches), dtype=np.float64)


def _demand_equal(wanted: Any, losses: Any, words: str) -> None:
    moved = np.flatnonzero(wanted != losses) if wanted.shape == losses.shape else np.arange(1)
    demand(
        len(moved) == 0,
        f"the loss of a record must not depend on other records, {words} {len(moved)} of "
        f"{len(wanted)} differ: compute "
        "element by element, for a product of matrices rounds by where a record stands",
    )


RECORD_CHECKS = (
    Check("losses_alone", _losses_alone),
    Check("working_bytes", _working_bytes),
)
