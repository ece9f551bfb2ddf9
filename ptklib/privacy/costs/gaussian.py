"""Gaussian noise and what behaves like it: plain, per epoch, Poisson-sampled, mu-GDP and zCDP.

``sensitivity`` is always an L2 change, in the unit of sigma. Noise that is a Gaussian rounded to a
grid is post-processing of these and costs the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import MAX_EPSILON, Number, epsilon_exact
from ptklib.privacy.costs.base import Cost, count, positive
from ptklib.privacy.curves import Floats
from ptklib.privacy.frozen import keep

__all__ = [
    "MAX_MU_SQUARED",
    "GaussianCost",
    "GdpCost",
    "ReshuffledGaussianCost",
    "SampledGaussianCost",
    "ZcdpCost",
]

MAX_MU_SQUARED = MAX_EPSILON**2


@dataclass(frozen=True, init=False, repr=False)
class ZcdpCost(Cost):
    """rho-zCDP:

    Renyi divergence at most rho times the order. Not every such mechanism is GDP, so it has no mu.
    """

    kind: ClassVar[str] = "zcdp"
    rho: Fraction

    def __init__(self, *, rho: Number) -> None:
        """Rho is positive and at most `amounts.MAX_EPSILON`."""
        keep(self, rho=epsilon_exact(rho, name="rho"))

    def renyi(self, orders: Floats) -> Floats:
        """Order times rho."""
        return _line(orders, self.rho)

    def merged(self, other: Cost) -> Cost | None:
        """Rho adds up."""
        return ZcdpCost(rho=self.rho + other.rho) if isinstance(other, ZcdpCost) else None


@dataclass(frozen=True, init=False, repr=False)
class GdpCost(Cost):
    """mu-GDP: no easier to tell apart than two unit Gaussians at distance mu.

    A sum of Gaussian costs is one of these.
    """

    kind: ClassVar[str] = "gdp"
    stated_mu_squared: Fraction

    def __init__(self, *, mu_squared: Number) -> None:
        """mu^2 is positive and at most a million."""
        keep(
            self, stated_mu_squared=positive(mu_squared, name="mu_squared", at_most=MAX_MU_SQUARED)
        )

    def renyi(self, orders: Floats) -> Floats:
        """Order times mu^2 / 2, that of the Gaussian pair of which it is post-processing."""
        return _line(orders, self.stated_mu_squared / 2)

    def mu_squared(self) -> Fraction:
        """As stated."""
        return self.stated_mu_squared

    def merged(self, other: Cost) -> Cost | None:
        """mu^2 adds up."""
        return _merged_gaussians(self, other)


@dataclass(frozen=True, init=False, repr=False)
class GaussianCost(Cost):
    """One Gaussian of standard deviation ``sigma`` on a vector of L2 sensitivity
    ``sensitivity``.
    """

    kind: ClassVar[str] = "gaussian"
    sigma: Fraction
    sensitivity: Fraction

    def __init__(self, *, sigma: Number, sensitivity: Number = 1) -> None:
        """mu = sensitivity / sigma is at most a thousand."""
        keep(
            self,
            sigma=positive(sigma, name="sigma"),
            sensitivity=positive(sensitivity, name="sensitivity"),
        )
        _check_mu(self.mu_squared())

    def renyi(self, orders: Floats) -> Floats:
        """Order times mu^2 / 2, exactly."""
        return _line(orders, self.mu_squared() / 2)

    def mu_squared(self) -> Fraction:
        """(sensitivity / sigma)^2."""
        return (self.sensitivity / self.sigma) ** 2

    def merged(self, other: Cost) -> Cost | None:
        """mu^2 adds up."""
        return _merged_gaussians(self, other)


@dataclass(frozen=True, init=False, repr=False)
class ReshuffledGaussianCost(Cost):
    """Noisy batch sums over ``epochs`` passes of fixed or reshuffled, disjoint batches.

    A record is in one batch per epoch, so an epoch is one Gaussian by parallel composition,
    *without* amplification: shuffled batches are not Poisson batches. A record's batch must not
    depend on the other records (draw it independently, or from its tag): cutting a shuffled list
    into equal batches moves others when one record is added.
    """

    kind: ClassVar[str] = "reshuffled_gaussian"
    sigma: Fraction
    sensitivity: Fraction
    epochs: int

    def __init__(self, *, sigma: Number, sensitivity: Number = 1, epochs: int) -> None:
        """Sigma and sensitivity of one batch sum."""
        keep(
            self,
            sigma=positive(sigma, name="sigma"),
            sensitivity=positive(sensitivity, name="sensitivity"),
        )
        keep(self, epochs=count(epochs, name="epochs"))
        _check_mu(self.mu_squared())

    def renyi(self, orders: Floats) -> Floats:
        """Order times mu^2 / 2."""
        return _line(orders, self.mu_squared() / 2)

    def mu_squared(self) -> Fraction:
        """Epochs times (sensitivity / sigma)^2."""
        return self.epochs * (self.sensitivity / self.sigma) ** 2

    def merged(self, other: Cost) -> Cost | None:
        """mu^2 adds up."""
        return _merged_gaussians(self, other)


@dataclass(frozen=True, init=False, repr=False)
class SampledGaussianCost(Cost):
    """``steps`` Gaussians of noise ``sigma`` (sensitivity 1), each on a fresh Poisson sample at
    ``rate``: DP-SGD.

    Only for batches in which every record is drawn independently; otherwise use
    `ReshuffledGaussianCost`. It has no Gaussian-DP bound: its trade-off is below every Gaussian one
    near the ends.
    """

    kind: ClassVar[str] = "sampled_gaussian"
    rate: Fraction
    sigma: Fraction
    steps: int

    def __init__(self, *, rate: Number, sigma: Number, steps: int) -> None:
        """Rate is in (0, 1]; sigma is the noise multiplier."""
        keep(self, rate=positive(rate, name="rate", at_most=1), sigma=positive(sigma, name="sigma"))
        keep(self, steps=count(steps, name="steps"))
        _check_mu(1 / self.sigma**2)

    def renyi(self, orders: Floats) -> Floats:
        """Exact at integer orders; see `curves.sampled_gaussian_renyi`."""
        per_step = curves.sampled_gaussian_renyi(orders, float(self.rate), float(self.sigma))
        return np.asarray(per_step * self.steps, dtype=np.float64)

    def merged(self, other: Cost) -> Cost | None:
        """Steps of the same kind add up."""
        if not isinstance(other, SampledGaussianCost) or (self.rate, self.sigma) != (
            other.rate,
            other.sigma,
        ):
            return None
        return SampledGaussianCost(rate=self.rate, sigma=self.sigma, steps=self.steps + other.steps)


def _line(orders: Floats, slope: Fraction) -> Floats:
    return np.asarray(orders * (float(slope) * (1 + curves.MARGIN)), dtype=np.float64)


def _merged_gaussians(cost: Cost, other: Cost) -> Cost | None:
    if not isinstance(other, GdpCost | GaussianCost | ReshuffledGaussianCost):
        return None
    mine = cost.mu_squared()
    return GdpCost(mu_squared=mine + other.mu_squared()) if isinstance(mine, Fraction) else None


def _check_mu(mu_squared: Fraction) -> None:
    if mu_squared > MAX_MU_SQUARED:
        raise InvalidInput(
            "AMOUNT_TOO_LARGE",
            f"(sensitivity / sigma)^2 must be at most {MAX_MU_SQUARED}, got {float(mu_squared):g}: "
            "add more noise",
        )
