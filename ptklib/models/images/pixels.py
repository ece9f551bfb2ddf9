"""What an image is: a grid of numbers between public bounds, for each of its colours.

Bounds are declared, never read from images. Values are clipped to them and moved to 0..1; a value
that is missing or NaN is the lower bound, so that no image can make a training fail. A batch of
images is an array whose first axis is the images and whose other axes hold height * width *
channels numbers in the order (height, width, channels), as files of images have them; the axes may
be flat.

Reasons: CONFIG_INVALID, DATA_SHAPE_INVALID (another number of values per image, or none that are
numbers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ptklib import config
from ptklib.errors import InvalidInput

__all__ = ["MAX_SIDE", "Pixels"]

# Larger images are cut or shrunk before: features of one would not fit into a model.
MAX_SIDE = 512
_MAX_CHANNELS = 16

Images = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Pixels:
    """The shape and the public bounds of an image."""

    kind: ClassVar[str] = "pixels"

    height: int
    width: int
    channels: int = 1
    lower: float = 0.0
    upper: float = 255.0

    def __post_init__(self) -> None:
        """Sides of 4 to `MAX_SIDE`, a few channels, bounds that rise."""
        config.checked(self)
        for name in ("height", "width"):
            side = getattr(self, name)
            config.demand(
                4 <= side <= MAX_SIDE, f"{name} must be 4 to {MAX_SIDE}, got {side}", field=name
            )
        config.demand(
            1 <= self.channels <= _MAX_CHANNELS,
            f"channels must be 1 to {_MAX_CHANNELS}, got {self.channels}",
            field="channels",
        )
        config.demand(
            self.lower < self.upper and math.isfinite(self.upper - self.lower),
            f"lower must be less than upper, got {self.lower} and {self.upper}",
            field="lower",
        )

    @property
    def size(self) -> int:
        """How many numbers an image has."""
        return self.height * self.width * self.channels

    def read(self, images: Images) -> NDArray[np.float32]:
        """Images as (images, channels, height, width) between 0 and 1.

        A record at a time: what is made of an image depends on that image alone.
        """
        given = np.asarray(images)
        numbers = given.dtype.kind in "iufb" and given.ndim >= 2
        if not numbers or math.prod(given.shape[1:]) != self.size:
            raise InvalidInput(
                "DATA_SHAPE_INVALID",
                f"images must be numbers, {self.height} x {self.width} x {self.channels} for each, "
                f"got {given.dtype} of shape {list(given.shape)}: reshape them, or give other "
                "Pixels",
            )
        shaped = given.reshape(len(given), self.height, self.width, self.channels)
        wide = np.float64 if given.dtype.itemsize > 2 else np.float32
        values = shaped.transpose(0, 3, 1, 2).astype(wide)
        values = np.clip(np.nan_to_num(values, nan=self.lower), self.lower, self.upper)
        values = (values - wide(self.lower)) / wide(self.upper - self.lower)
        return np.ascontiguousarray(values, dtype=np.float32)
