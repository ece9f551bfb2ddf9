"""Features of an image column as entries of a row of a model.

`Images` is an input like those of `ptklib.models.inputs`: it reads a column of lists of numbers, an
image in each, and gives ``size`` entries, in whole steps, whose length is at most 1, whatever the
image.

Rules
-----
* A null, or a list of another length than the image has numbers, is an image of lower bounds only.
* Missing numbers, NaN and numbers beyond the bounds are treated as `Pixels` says.

**Proof note.** *Unit:* one record. *Cost:* none. The entries of a record follow from its image and
the configuration, to the last bit, whatever is beside it. They come from a vector of length at most
1 (`normalising`), each cut towards zero to whole steps, so their squares sum to at most the square
of a row of length 1.

Reasons: CONFIG_INVALID, COLUMN_TYPE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from ptklib import config
from ptklib.errors import InvalidInput
from ptklib.models.images.convolution import RandomConvolution
from ptklib.models.images.scattering import Scattering

__all__ = ["Images"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Images:
    """A column of images, as public features of length at most 1."""

    kind: ClassVar[str] = "images"
    column: str
    features: Scattering | RandomConvolution

    def __post_init__(self) -> None:
        """Features must have a length of their own: a public bound."""
        config.checked(self)
        config.demand(
            self.features.norm_bound is not None,
            f"features of {self.column!r} must be normalised: groups or norm, got none",
            field="features",
        )

    @property
    def size(self) -> int:
        """How many entries of a row it is."""
        return self.features.size

    def steps(self, column: pa.Array, steps: int) -> Floats:
        """Entries (records, size) in whole steps of 1/``steps``, a power of two."""
        made = self.features.transform(self._images(column)).astype(np.float64)
        return np.asarray(np.trunc(made * steps))

    def example(self, rows: int, generator: np.random.Generator) -> pa.Array:
        """Invented images, uniform between the bounds and some of them on a bound."""
        pixels = self.features.pixels
        values = generator.uniform(pixels.lower, pixels.upper, (rows, pixels.size))
        values[generator.uniform(0, 1, rows) < 1 / 4] = pixels.upper
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), pixels.size)

    def _images(self, column: pa.Array) -> NDArray[Any]:
        """An array (records, numbers of an image)."""
        kind, pixels = column.type, self.features.pixels
        listed = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
        fits = listed and (pt.is_integer(kind.value_type) or pt.is_floating(kind.value_type))
        if not fits or (pt.is_fixed_size_list(kind) and kind.list_size != pixels.size):
            raise InvalidInput(
                "COLUMN_TYPE",
                f"column {self.column!r} must hold lists of {pixels.size} numbers, got {kind}",
                column=self.column,
            )
        whole = pc.fill_null(pc.equal(pc.list_value_length(column), pixels.size), False)
        there = np.flatnonzero(whole.to_numpy(zero_copy_only=False))
        values = column.filter(whole).flatten().to_numpy(zero_copy_only=False)
        if len(there) == len(column):
            return np.asarray(values).reshape(len(column), pixels.size)
        images = np.full((len(column), pixels.size), pixels.lower)
        images[there] = values.reshape(len(there), pixels.size)
        return images
