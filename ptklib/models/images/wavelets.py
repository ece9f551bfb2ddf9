"""Morlet wavelets on a grid of pixels: a wave under a bell, turned and stretched, without a mean.

For scale j the bell is 0.8 * 2**j pixels wide along the wave and L/4 times that across it, and the
wave has frequency (3 pi / 4) / 2**j; the L angles divide half a turn, for the modulus of a real
image is the same for the other half. The wave is moved by as much of the bell as makes its sum
zero, so a wavelet sees edges and no brightness. Everything is public: a wavelet depends on the size
of the grid, on j and on the angle. The grid is a torus.

Constants are those of J. Bruna and S. Mallat (2013) and of what is commonly computed since.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["bells", "morlets"]

Floats = NDArray[np.float64]

_WIDTH, _FREQUENCY = 0.8, 3 * math.pi / 4
# Pixels beyond are taken round the torus this many times.
_TURNS = 2


@lru_cache(maxsize=32)
def morlets(height: int, width: int, scale: int, angles: int) -> NDArray[np.float32]:
    """Spectra (angles, height, width) of the wavelets of a scale on a torus.

    They are real, for a bell is symmetric.
    """
    spectra = [_morlet(height, width, scale, angles, turn) for turn in range(angles)]
    made = np.stack(spectra).astype(np.float32)
    made.flags.writeable = False
    return made


@lru_cache(maxsize=64)
def bells(pixels: int, step: int, width: float, stride: int) -> NDArray[np.float32]:
    """A matrix (places, columns) that averages a line of pixels under bells.

    The line has ``pixels`` pixels that count, on a padded grid of which every ``step``-th is there;
    bells stand at the middle of every ``stride`` pixels. A row sums to 1: near the border a bell
    has only what is there.
    """
    places = -(-pixels // stride)
    columns = np.arange(0, stride * (places + 1), step)
    centres = stride * (np.arange(places) + 1)
    weights = np.exp(-np.square((columns - centres[:, None]) / width) / 2)
    made: NDArray[np.float32] = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    made.flags.writeable = False
    return made


def _morlet(height: int, width: int, scale: int, angles: int, turn: int) -> Floats:
    angle, deviation = math.pi * turn / angles, _WIDTH * 2**scale
    frequency = _FREQUENCY / 2**scale
    bell = np.zeros((height, width), dtype=np.complex128)
    wave = np.zeros_like(bell)
    for down in range(-_TURNS, _TURNS + 1):
        for right in range(-_TURNS, _TURNS + 1):
            y = np.arange(height)[:, None] + down * height
            x = np.arange(width)[None, :] + right * width
            along = math.cos(angle) * x + math.sin(angle) * y
            across = math.cos(angle) * y - math.sin(angle) * x
            part = np.exp(-(np.square(along) + np.square(across * 4 / angles)) / (2 * deviation**2))
            bell += part
            wave += part * np.exp(1j * frequency * along)
    wavelet = wave - bell * (wave.sum() / bell.sum())
    return np.asarray(np.fft.fft2(wavelet / (2 * math.pi * deviation**2 * angles / 4)).real)
