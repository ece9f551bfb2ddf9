"""The noise that a validator adds: Laplace, for pure and Renyi streams, or Gaussian, for Renyi and
Gaussian ones.

A validator decides its sensitivity, the noise its size: scale ``sensitivity / epsilon``, or
standard deviation ``sensitivity / mu``. Both say how much evidence is enough for an ACCEPT
(`threshold`), for that counts the law of the noise.

**Proof note.** *Unit, neighbours, sensitivity:* the validator's. *Cost:* that of the release, which
is epsilon-DP or mu-GDP whatever the sensitivity is. `covering` is one cost for any release of this
noise whose sensitivity is at least ``least`` units: for Gaussian noise mu-GDP, which all of them
are. For Laplace noise the release of exactly ``least`` units: epsilon is the same for all, and at t
= epsilon/sensitivity the moment of order a is A exp((a-1)epsilon) + B exp(-a epsilon) with A + B =
1 and A : B = sinh(at) : sinh((a-1)t) (`costs.laplace`). As x coth(xt) grows with x, that ratio
grows with t, so A does, and with it the moment: the coarsest grid, the least sensitivity, costs
most at every order.

Reasons: those of `amounts`, NOISE_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, epsilon_exact, show
from ptklib.privacy.costs import Cost, GdpCost
from ptklib.privacy.costs.calibration import gaussian_sigma
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.validators.threshold import (
    least_gaussian_threshold,
    least_threshold,
    likely_gaussian_threshold,
    likely_threshold,
)

__all__ = ["Gaussian", "Laplace", "Noise", "noise_from_json", "noise_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, init=False)
class Laplace:
    """Discrete Laplace noise: epsilon-DP."""

    epsilon: Fraction

    def __init__(self, *, epsilon: Number) -> None:
        """Epsilon is positive."""
        keep(self, epsilon=epsilon_exact(epsilon))

    def release(self, sensitivity: int) -> LaplaceRelease:
        """The mechanism, for an L1 sensitivity in units."""
        return LaplaceRelease(epsilon=self.epsilon, sensitivity=sensitivity)

    def covering(self, least: int) -> Cost:
        """One cost for all releases of at least that sensitivity."""
        return self.release(least).cost

    def threshold(self, sensitivity: int, unit: Fraction, eta: Fraction) -> int:
        """How much evidence is enough, in units of ``unit`` nats."""
        return least_threshold(sensitivity / self.epsilon, unit, eta)

    def likely(self, sensitivity: float, eta: float) -> float:
        """The same in nats and floats, for planning."""
        return likely_threshold(sensitivity / float(self.epsilon), eta)

    def steepest(self, sensitivity: float) -> float:
        """Moments of the noise exist below this rate."""
        return 0.999 * float(self.epsilon) / sensitivity

    def log_moment(self, rates: Floats, sensitivity: float) -> Floats:
        """ln E[exp(rate Z)], for planning."""
        return np.asarray(-np.log1p(-((rates * sensitivity / float(self.epsilon)) ** 2)))

    def beyond(self, chance: float, grain: int = 1) -> float:
        """What the absolute value of a draw exceeds with at most this chance, at sensitivity 1 on a
        grid of parts of 1/``grain``.
        """
        # P(|Z| >= k) = 2 q^k / (1 + q) <= q^(k - 1/2), in parts.
        return math.log(1 / chance) / float(self.epsilon) + 1.5 / grain

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"kind": "laplace", "epsilon": show(self.epsilon)}


@dataclass(frozen=True, init=False)
class Gaussian:
    """Rounded Gaussian noise: mu-GDP."""

    mu: Fraction

    def __init__(self, *, mu: Number) -> None:
        """Mu is positive."""
        keep(self, mu=epsilon_exact(mu, name="mu"))

    @classmethod
    def of(cls, *, epsilon: Number, delta: Number) -> Gaussian:
        """The most mu, rounded down, that is (epsilon, delta)-DP."""
        sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
        return cls(mu=Fraction(math.floor(1e9 / sigma), 10**9))

    def release(self, sensitivity: int) -> GaussianRelease:
        """The mechanism, for an L2 sensitivity in units."""
        return GaussianRelease(sigma=sensitivity / self.mu, sensitivity=sensitivity)

    def covering(self, least: int) -> Cost:  # noqa: ARG002
        """One cost for all releases."""
        return GdpCost(mu_squared=self.mu**2)

    def threshold(self, sensitivity: int, unit: Fraction, eta: Fraction) -> int:
        """How much evidence is enough, in units of ``unit`` nats."""
        return least_gaussian_threshold(sensitivity / self.mu, unit, eta)

    def likely(self, sensitivity: float, eta: float) -> float:
        """The same in nats and floats, for planning."""
        return likely_gaussian_threshold(sensitivity / float(self.mu), eta)

    def steepest(self, sensitivity: float) -> float:  # noqa: ARG002
        """All moments exist."""
        return math.inf

    def log_moment(self, rates: Floats, sensitivity: float) -> Floats:
        """ln E[exp(rate Z)], for planning."""
        return np.asarray((rates * sensitivity / float(self.mu)) ** 2 / 2)

    def beyond(self, chance: float, grain: int = 1) -> float:
        """What the absolute value of a draw exceeds with at most this chance, at sensitivity 1 on a
        grid of parts of 1/``grain``.
        """
        from scipy.special import ndtri  # slow to import, and not needed by those who only read

        return float(-ndtri(chance / 2)) / float(self.mu) + 1.5 / grain

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"kind": "gaussian", "mu": show(self.mu)}


Noise = Laplace | Gaussian


def noise_of(epsilon: Number | None, noise: Noise | None) -> Noise:
    """The noise that was asked for: by an epsilon, which is Laplace noise, or itself."""
    if (epsilon is None) == (noise is None):
        raise InvalidInput(
            "NOISE_INVALID", "a validator must be given an epsilon or a noise, and not both"
        )
    return Laplace(epsilon=epsilon) if epsilon is not None else _known(noise)


def _known(noise: object) -> Noise:
    """One of the two, or a refusal."""
    if isinstance(noise, Laplace | Gaussian):
        return noise
    raise InvalidInput(
        "NOISE_INVALID", f"noise must be Laplace or Gaussian, got {type(noise).__name__}"
    )


def noise_from_json(body: Mapping[str, Any]) -> Noise:
    """Read ``as_json`` back."""
    match body.get("kind"):
        case "laplace":
            return Laplace(epsilon=body["epsilon"])
        case "gaussian":
            return Gaussian(mu=body["mu"])
        case other:
            raise InvalidInput(
                "NOISE_INVALID", f"a noise must be laplace or gaussian, got {other!r:.40}"
            )
