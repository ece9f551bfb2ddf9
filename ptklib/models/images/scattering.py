"""Scattering: what a convolutional net would learn first, with wavelets in place of weights.

An image meets wavelets of J scales and L angles (`wavelets`); the modulus of each meets the coarser
ones again; all are averaged over squares of 2**J pixels. Order 0 is the image itself, order 1 has
J L maps, order 2 J (J-1)/2 L**2: small moves of the image change little, and edges and their
corners are kept (Bruna and Mallat 2013). A linear model on top of it is as good as a small
convolutional net, and DP-SGD has far fewer weights to put noise on (Tramer and Boneh 2021).

**Proof note.** *Unit:* one record. *Cost:* none. Features of an image are a function of that image
and of the configuration: no weight is learned, no statistic of other images is used, images are
computed in batches but never together (`normalising` too). So neighbouring sets of images have
neighbouring sets of features, and what is trained on features costs what it costs on records.

The grid is padded by half a square on each side, mirrored, and is a torus beyond. Work is done in
32 bits and in pieces of images that fit into a cache.

Reasons: CONFIG_INVALID, those of `pixels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from ptklib import config
from ptklib.models.images.normalising import Normalisation, normalised
from ptklib.models.images.pixels import Pixels
from ptklib.models.images.wavelets import bells, morlets

__all__ = ["Scattering"]

Floats = NDArray[np.float32]
Spectra = NDArray[np.complex64]

# Complex numbers of one scale that are worked on at a time: a few hundred kilobytes.
_AT_ONCE = 1 << 17
# A map and its neighbours in angle: so many maps make a group of `normalising`.
_GROUP = 3


@dataclass(frozen=True, kw_only=True)
class Scattering:
    """Scattering features of images.

    See the module for what they are and why they are free.
    """

    kind: ClassVar[str] = "scattering"

    pixels: Pixels
    scales: int = 2  # J: maps are averaged over squares of 2**J pixels
    angles: int = 8  # L
    orders: int = 2
    normalisation: Normalisation = "groups"

    def __post_init__(self) -> None:
        """One to four scales that fit into the image, a few angles, up to two orders."""
        config.checked(self)
        config.demand(
            1 <= self.scales <= 4, f"scales must be 1 to 4, got {self.scales}", field="scales"
        )
        config.demand(
            2**self.scales <= min(self.pixels.height, self.pixels.width),
            f"scales must leave 2**scales pixels on each side, got {self.scales} for "
            f"{self.pixels.height} x {self.pixels.width}",
            field="scales",
        )
        config.demand(
            1 <= self.angles <= 16, f"angles must be 1 to 16, got {self.angles}", field="angles"
        )
        config.demand(
            self.orders in (1, 2), f"orders must be 1 or 2, got {self.orders}", field="orders"
        )

    @property
    def maps(self) -> int:
        """How many maps a channel has: 1 + J L, and J (J-1)/2 L**2 more for the second order."""
        first = 1 + self.scales * self.angles
        second = self.scales * (self.scales - 1) // 2 * self.angles**2
        return first + (second if self.orders == 2 else 0)

    @property
    def places(self) -> tuple[int, int]:
        """Rows and columns of a map."""
        stride = 2**self.scales
        return -(-self.pixels.height // stride), -(-self.pixels.width // stride)

    @property
    def size(self) -> int:
        """How many features an image has: channels * maps * rows * columns."""
        rows, columns = self.places
        return self.pixels.channels * self.maps * rows * columns

    @property
    def norm_bound(self) -> float | None:
        """The greatest length of a feature vector that is possible; None without normalisation."""
        return None if self.normalisation == "none" else 1.0

    def transform(self, images: NDArray[Any]) -> Floats:
        """Features (images, size); images as `Pixels.read` takes them."""
        given = np.asarray(images)
        self.pixels.read(given[:0])
        grid = self._grid()
        piece = max(1, _AT_ONCE // (grid[0] * grid[1] * self.angles * self.pixels.channels))
        made = np.empty((len(given), self.size), dtype=np.float32)
        for start in range(0, len(given), piece):
            part = self.pixels.read(given[start : start + piece])
            made[start : start + piece] = self._features(part, grid)
        return made

    def _grid(self) -> tuple[int, int]:
        """Sides of the padded grid: half a square more on each side, and whole squares."""
        stride = 2**self.scales
        rows, columns = self.places
        return stride * (rows + 1), stride * (columns + 1)

    def _features(self, part: Floats, grid: tuple[int, int]) -> Floats:
        images, channels, height, width = part.shape
        half = 2**self.scales // 2
        padded = np.pad(
            part.reshape(-1, height, width),
            (
                (0, 0),
                (half, grid[0] - height - half),
                (half, grid[1] - width - half),
            ),
            mode="symmetric",
        )
        rows, columns = self.places
        maps = np.empty((images * channels, self.maps, rows, columns), dtype=np.float32)
        for place, averaged in self._maps(padded):
            maps[:, place : place + averaged.shape[1]] = averaged
        return normalised(
            _in_groups(maps.reshape(images, channels * self.maps, rows * columns)),
            self.normalisation,
        )

    def _maps(self, padded: Floats) -> Iterator[tuple[int, Floats]]:
        """Averaged maps with their places: order 0, then for each scale order 1, then order 2."""
        yield 0, self._averaged(padded[:, None], 0)
        spectrum = scipy.fft.fft2(padded)[:, None]
        first, second = 1, 1 + self.scales * self.angles
        height, width = padded.shape[1:]
        for scale in range(self.scales):
            waves = morlets(height, width, scale, self.angles)
            moduli = _moduli(_thinned(spectrum, waves, scale))
            yield first, self._averaged(moduli, scale)
            first += self.angles
            if self.orders == 1 or scale == self.scales - 1:
                continue
            again = scipy.fft.fft2(moduli)
            for coarser in range(scale + 1, self.scales):
                coarse = morlets(height >> scale, width >> scale, coarser - scale, self.angles)
                for turn in range(self.angles):
                    crossed = _moduli(_thinned(again, coarse[turn], coarser - scale))
                    yield second, self._averaged(crossed, coarser)
                    second += self.angles

    def _averaged(self, maps: Floats, scale: int) -> Floats:
        """Maps of a scale, whose grid has every 2**scale-th pixel, averaged over squares."""
        stride, deviation = 2**self.scales, 0.8 * 2 ** (self.scales - 1)
        down = bells(self.pixels.height, 2**scale, deviation, stride)
        right = bells(self.pixels.width, 2**scale, deviation, stride)
        return np.asarray(down @ maps @ right.T, dtype=np.float32)


def _thinned(spectra: Spectra, waves: Floats, halvings: int) -> Spectra:
    """Spectra times waves, on a grid with every 2**halvings-th pixel: its spectrum is the mean of
    the parts that fall together.
    """
    height, width = waves.shape[-2:]
    rows, columns = height >> halvings, width >> halvings
    total: Any = None
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            corner = (..., slice(top, top + rows), slice(left, left + columns))
            part = spectra[corner] * waves[corner]
            total = part if total is None else np.add(total, part, out=total)
    total *= np.float32(0.25**halvings)
    thinned: Spectra = total
    return thinned


def _moduli(spectra: Spectra) -> Floats:
    """The modulus of the image of a spectrum (which is overwritten)."""
    waves = scipy.fft.ifft2(spectra, overwrite_x=True)
    squares = np.square(waves.real)
    squares += np.square(waves.imag)
    return np.asarray(np.sqrt(squares, out=squares))


def _in_groups(maps: Floats) -> Floats:
    """Maps (images, maps, places) in groups of `_GROUP` neighbours, where they divide into such."""
    images, count, places = maps.shape
    size = _GROUP if count % _GROUP == 0 else 1
    return maps.reshape(images, count // size, size * places)
