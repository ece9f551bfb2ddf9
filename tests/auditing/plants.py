"""Faults to plant into the mechanisms: half of the noise, and a lowest bit that has none."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptklib.privacy.mechanisms import above_threshold, large_margin, release, selection
from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.mechanisms.selection import ExponentialMechanism, NoisyMax, Selection
from ptklib.ptks.clusters import noise as clusters_noise
from ptklib.ptks.clusters.noise import CubeRelease
from ptklib.ptks.covariance import noise as covariance_noise
from ptklib.ptks.covariance.noise import WishartRelease

__all__ = ["plant_half_noise", "plant_lowest_bit"]

_DRAWS = (
    (release, "discrete_laplace"),
    (release, "rounded_gaussian"),
    (selection, "geometric"),
    (large_margin, "discrete_laplace"),
    (above_threshold, "discrete_laplace"),
    (clusters_noise, "geometric"),
    (covariance_noise, "rounded_gaussian"),
)
_CHOICES = (selection, large_margin)
_NUMBERS = (release, above_threshold)


def plant_half_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw at half its scale; weighted draws at twice their rate."""
    for module, name in _DRAWS:
        monkeypatch.setattr(module, name, _halved(getattr(module, name)))
    for module in _CHOICES:
        monkeypatch.setattr(module, "draw_indices", _sharper(getattr(module, "draw_indices")))  # noqa: B009


def plant_lowest_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws that are even, so that the lowest bit of what is released is that of the data;
    selections: that of the best.
    """
    for module, name in _DRAWS:
        if module in _NUMBERS:
            monkeypatch.setattr(module, name, _even(getattr(module, name)))
    monkeypatch.setattr(CubeRelease, "release", _kept(CubeRelease.release))
    monkeypatch.setattr(WishartRelease, "release", _kept_in_grains(WishartRelease.release))
    for kind in (ExponentialMechanism, NoisyMax, LargeMargin):
        monkeypatch.setattr(kind, "release", _best_bit(kind.release))


def _halved(original: Any) -> Any:
    return lambda shape, scale, *, source=None: original(shape, Fraction(scale) / 2, source=source)


def _sharper(original: Any) -> Any:
    return lambda scores, rate, count, *, source=None: original(
        scores, 2 * rate, count, source=source
    )


def _even(original: Any) -> Any:
    def drawn(shape: Any, scale: Any, *, source: Any = None) -> Any:
        noise = original(shape, scale, source=source)
        return np.sign(noise) * (np.abs(noise) // 2 * 2)

    return drawn


def _kept(original: Any) -> Any:
    def released(self: Any, values: Any, *, source: Any = None) -> Any:
        return original(self, values, source=source) // 2 * 2 + np.asarray(values) % 2

    return released


def _kept_in_grains(original: Any) -> Any:
    def released(self: Any, matrix: Any, *, source: Any = None) -> Any:
        told = original(self, matrix, source=source) // self.grain
        given = np.asarray((2 * matrix + self.grain) // (2 * self.grain), dtype=np.int64)
        return (told // 2 * 2 + given % 2) * self.grain

    return released


def _best_bit(original: Any) -> Any:
    def released(self: Any, scores: Any, *, source: Any = None) -> Selection:
        found = original(self, scores, source=source)
        index = found.index // 2 * 2 + int(np.argmax(scores)) % 2
        return Selection(min(index, len(scores) - 1), found.cost)

    return released
