"""The loss of one state on the records of its test slice: judged against a promise
(`validate_loss`), or told with an interval (`measure_loss`).

**Proof note.** *Unit, neighbours, sensitivity, cost:* those of `betting.LossTest` and
`interval.LossInterval`: `Ptk.loss` gives
one number for each record by the state, which is DP already, and that record alone. *Validity:* the
records must be fresh: drawn like those that the promise speaks of, and independent of the state,
which holds where neither its training nor what chose its price and its number of samples touched
them. What the promise speaks of is the loss as the PTK defines it, clipped to [0, bound].

A PTK whose losses are not one for each record is refused; texts of what it raises may carry data
and are for whoever runs it to keep back.

Reason: LOSS_INVALID.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk
from ptklib.validators.betting import LossTest
from ptklib.validators.interval import LossInterval, ToldLosses
from ptklib.validators.verdict import LossVerdict

__all__ = ["measure_loss", "record_losses", "validate_loss"]


def validate_loss(
    test: LossTest,
    ptk: Ptk,
    arrays: Arrays,
    batches: Batches,
    *,
    source: BitSource | None = None,
) -> LossVerdict:
    """The verdict on a state by the records of its test slice, read once. Costs ``test.cost``."""
    return test.verdict(record_losses(ptk, arrays, batches), source=source)


def measure_loss(
    interval: LossInterval,
    ptk: Ptk,
    arrays: Arrays,
    batches: Batches,
    *,
    source: BitSource | None = None,
) -> ToldLosses:
    """What is told of the losses of a state on its test slice, read once. Costs ``interval.cost``."""
    return interval.tell(record_losses(ptk, arrays, batches), source=source)


def record_losses(ptk: Ptk, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
    """One loss for each record. Refused: LOSS_INVALID where they are not as many.

    The losses of all batches at once, or PTKs that need several passes would differ.
    """
    count = 0

    def counted() -> Batches:
        nonlocal count
        for batch in batches:
            count += batch.num_rows
            yield batch

    losses = np.asarray(ptk.loss(arrays, counted()), dtype=np.float64)
    if losses.ndim != 1 or len(losses) != count:
        raise InvalidInput(
            "LOSS_INVALID", f"a PTK of kind {ptk.kind} must give one loss for each record"
        )
    return losses
