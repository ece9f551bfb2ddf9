"""Several columns as one vector of whole numbers: what clusters and covariances are made of."""

from ptklib.columns.numbers import Bounded
from ptklib.ptks.vectors.space import (
    MAX_COLUMNS,
    PIECE_RECORDS,
    STEPS,
    RecordVectors,
    Scaling,
    Space,
    example_of,
    space_of,
)

__all__ = [
    "MAX_COLUMNS",
    "PIECE_RECORDS",
    "STEPS",
    "Bounded",
    "RecordVectors",
    "Scaling",
    "Space",
    "example_of",
    "space_of",
]
