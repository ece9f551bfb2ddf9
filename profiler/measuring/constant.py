"""What the best constant would do: the loss of a supervised PTK that sees no inputs.

A promise of a supervised PTK means little by itself: a target of 0.25 is kept by every guess where
the classes are even. So a profile tells, once, the loss of the same PTK trained on *blinded* records:
every input is replaced by one value of the configuration, the label stays. What can be learnt of
them is the best constant of this kind and this loss, whatever those are.

*Proof note.* Blinding maps each record by itself, to values that do not depend on data, so neighbours
stay neighbours: the training costs what the kind says (on a piece of its own), and the look at it
is one more release on the validation piece, with the sensitivity of every look (`tasks`).
*Unit:* one record, or a user with at most r records.

What is told has noise and the error of a sample: a target is warned of unless it is below the
constant for sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from profiler.measuring.pieces import Piece, PieceCost
from profiler.measuring.tasks import cost_of_look, look_release
from profiler.measuring.terms import ProfileTerms
from ptklib.privacy.amounts import Number, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Arrays, Batches, Ptk, batches_of

__all__ = ["RECORDS", "Blinded", "Constant", "ConstantCharges", "constant_charges", "label_of"]

# Records that a constant is learnt from, and the part of the price of all looks that it takes.
RECORDS = 1000
_PART = Fraction(1, 10)
_ROWS = 8


def label_of(ptk: Ptk) -> str | None:
    """The column that a supervised PTK learns; None where there is none, or it is not told."""
    label = getattr(ptk, "label", None) if ptk.tags.supervised else None
    column = label if isinstance(label, str) else getattr(label, "column", None)
    return column if isinstance(column, str) else None


@dataclass(frozen=True)
class Constant:
    """The loss of the best constant, with the noise of one look; ``error`` is what it may be off by.
    None where it could not be learnt; ``charged`` all the same.
    """

    risk: float | None
    error: float
    charged: tuple[str, ...] = ()

    def meets(self, target: Fraction) -> bool:
        """True when a constant may keep the target: nothing shows that it does not."""
        return self.risk is not None and self.risk - self.error <= float(target)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"risk": self.risk, "error": self.error, "charged": list(self.charged)}


@dataclass(frozen=True)
class ConstantCharges:
    """One training on a piece of its own, and one look."""

    train: PieceCost
    look: PieceCost
    release: LaplaceRelease

    @property
    def charges(self) -> tuple[PieceCost, ...]:
        """Both."""
        return self.train, self.look


def constant_charges(
    ptk: Ptk,
    terms: ProfileTerms,
    level: Fraction,
    validation: Piece,
    start: Fraction,
    width: Fraction,
) -> ConstantCharges:
    """Charges at a level: a training from ``start`` on, and a look at its validation piece."""
    name = f"level {show(level)}"
    piece = Piece(f"{name}/blinded", start, start + width, RECORDS)
    price = ptk.cost(level, terms.delta, records_per_unit=terms.records_per_unit)
    release = look_release(terms.prices.looks * _PART, terms.records_per_unit)
    look = PieceCost(f"{name}/look-blinded", validation, cost_of_look(release, None))
    return ConstantCharges(PieceCost(piece.name, piece, price), look, release)


@dataclass(frozen=True)
class Blinded:
    """A PTK that sees no inputs. Stands in for it in the tasks of a profile."""

    inner: Ptk

    @property
    def kind(self) -> str:
        """Of errors."""
        return self.inner.kind

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        """Of blinded records."""
        return self.inner.train_dp(self._blind(batches), **options)

    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        """On blinded records."""
        return self.inner.loss(arrays, self._blind(batches))

    def validate(self, arrays: Arrays) -> None:
        """As the PTK does."""
        self.inner.validate(arrays)

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        """As the PTK's."""
        return self.inner.cost(epsilon, delta, records_per_unit=records_per_unit)

    def _blind(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        label, values = label_of(self.inner), self._values()
        for batch in batches_of(batches):
            columns: Sequence[pa.Array] = [
                batch.column(name)
                if name == label
                else _alike(values.get(name), batch.schema.field(name).type, batch.num_rows)
                for name in batch.schema.names
            ]
            yield pa.RecordBatch.from_arrays(list(columns), names=batch.schema.names)

    def _values(self) -> Mapping[str, Any]:
        """A value for each input, from the configuration alone: that of an invented record."""
        example = self.inner.example(_ROWS)
        return {} if example is None else example.slice(0, 1).to_pylist()[0]


def _alike(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, kind) if value is None else pa.array([value] * rows, kind)
