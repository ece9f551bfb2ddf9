"""Random convolutions: small filters drawn once from a public seed, and how much of each is in
which part of an image.

K filters of k x k pixels (over all colours) have mean 0 and length 1, as an edge detector has; each
response above the threshold counts, its opposite too, so there are 2 K maps, averaged over a public
grid of squares (Coates, Lee and Ng 2011 show how far such features go). Faster than scattering for
few filters, and any size may be chosen. Filters come from SHAKE-256 of the seed: the same
everywhere, in every version.

**Proof note.** *Unit:* one record. *Cost:* none: the features of an image are a function of that
image and of the configuration; filters are drawn without data, no statistic of other images is
used.

Reasons: CONFIG_INVALID, those of `pixels`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy.special
from numpy.typing import NDArray

from ptklib import config
from ptklib.models.images.normalising import Normalisation, normalised
from ptklib.models.images.pixels import Pixels

__all__ = ["RandomConvolution"]

Floats = NDArray[np.float32]

# Numbers that are worked on at a time.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class RandomConvolution:
    """Features of images from random filters.

    See the module for what they are and why they are free.
    """

    kind: ClassVar[str] = "random_convolution"

    pixels: Pixels
    filters: int = 64  # K
    side: int = 5  # k
    grid: int = 4  # maps are averaged over grid x grid parts of the image
    threshold: float = 0.1  # a response below counts nothing; pixels are in 0..1
    seed: int = 0
    normalisation: Normalisation = "groups"

    def __post_init__(self) -> None:
        """Filters and a grid that fit into the image; a threshold that is not negative."""
        config.checked(self)
        least = min(self.pixels.height, self.pixels.width)
        for name, low, high in (("filters", 1, 4096), ("side", 2, min(15, least))):
            given = getattr(self, name)
            config.demand(
                low <= given <= high, f"{name} must be {low} to {high}, got {given}", field=name
            )
        left = least - self.side + 1
        config.demand(
            1 <= self.grid <= left,
            f"grid must be 1 to {left}, the places of a filter on a side, got {self.grid}",
            field="grid",
        )
        config.demand(
            0 <= self.threshold <= 100,
            f"threshold must be 0 to 100, got {self.threshold}",
            field="threshold",
        )
        config.demand(
            0 <= self.seed < 2**63, f"seed must be 0 to 2**63 - 1, got {self.seed}", field="seed"
        )

    @property
    def size(self) -> int:
        """How many features an image has: 2 * filters * grid**2."""
        return 2 * self.filters * self.grid**2

    @property
    def norm_bound(self) -> float | None:
        """The greatest length of a feature vector that is possible; None without normalisation."""
        return None if self.normalisation == "none" else 1.0

    def transform(self, images: NDArray[Any]) -> Floats:
        """Features (images, size); images as `Pixels.read` takes them."""
        given = np.asarray(images)
        self.pixels.read(given[:0])
        rows, columns = self._places()
        weights = _filters(self.seed, self.filters, self.pixels.channels * self.side**2)
        numbers = rows * columns * (self.pixels.channels * self.side**2 + 2 * self.filters)
        piece = max(1, _AT_ONCE // numbers)
        made = np.empty((len(given), self.size), dtype=np.float32)
        for start in range(0, len(given), piece):
            part = self.pixels.read(given[start : start + piece])
            made[start : start + piece] = self._features(part, weights)
        return made

    def _places(self) -> tuple[int, int]:
        """Where a filter fits, down and to the right."""
        return self.pixels.height - self.side + 1, self.pixels.width - self.side + 1

    def _features(self, part: Floats, weights: Floats) -> Floats:
        rows, columns = self._places()
        windows = np.lib.stride_tricks.sliding_window_view(part, (self.side, self.side), (2, 3))
        # (images, rows, columns, channels, side, side): a line for each place.
        patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(len(part), rows * columns, -1)
        # A product for each image, so that no rounding depends on how many there are.
        responses = (patches @ weights).reshape(len(part), rows, columns, self.filters)
        above = np.concatenate([responses, -responses], axis=3)
        np.maximum(above - np.float32(self.threshold), 0, out=above)
        down, right = _shares(rows, self.grid), _shares(columns, self.grid)
        # (images, maps, rows, columns) averaged to (images, maps, grid, grid).
        averaged = down @ above.transpose(0, 3, 1, 2) @ right.T
        return normalised(averaged.reshape(len(part), 2 * self.filters, -1), self.normalisation)


@lru_cache(maxsize=16)
def _filters(seed: int, count: int, length: int) -> Floats:
    """Filters (length, count) with mean 0 and length 1."""
    stream = hashlib.shake_256(b"random convolution" + seed.to_bytes(8, "big"))
    words = np.frombuffer(stream.digest(8 * count * length), dtype=">u8") >> np.uint64(12)
    normals = scipy.special.ndtri((words.astype(np.float64) + 0.5) / 2**52)
    filters = normals.reshape(count, length).T
    filters = filters - filters.mean(axis=0)
    made: Floats = (filters / np.sqrt(np.square(filters).sum(axis=0))).astype(np.float32)
    made.flags.writeable = False
    return made


def _shares(places: int, grid: int) -> Floats:
    """A matrix (grid, places) that averages each part of a line; parts are as equal as can be."""
    part = np.arange(places) * grid // places
    member = part == np.arange(grid)[:, None]
    return np.asarray(member / member.sum(axis=1, keepdims=True), dtype=np.float32)
