"""Something to audit: what it claims, the neighbouring inputs it is run on, and its outputs on
both.

A `Subject` gives `OutputView`s: the same runs seen in several ways (by likelihood ratio, by remainders),
each an array of numbers for either side. Every view is a test of its own, so all of them are
counted when confidence is shared out.

**What makes a view valid**: it is a function of what is released, and of randomness that is
independent of the data; the mechanism's claim then holds for it too, and a bound above the claim
contradicts the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import SageError
from ptklib.privacy.costs import Cost

__all__ = ["Claim", "OutputView", "Subject", "joined", "refused"]

Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Claim:
    """(epsilon, delta)-differential privacy."""

    epsilon: float
    delta: float = 0.0

    @classmethod
    def of(cls, cost: Cost, delta: float = 0.0) -> Claim:
        """What a cost comes to at this delta."""
        return cls(float(cost.epsilon(delta)), float(delta))


@dataclass(frozen=True)
class OutputView:
    """One way to look at the outputs of runs on the data and on its neighbour, in the order of the
    runs.
    """

    name: str
    data: Numbers
    neighbour: Numbers


@dataclass(frozen=True)
class Subject:
    """One mechanism, PTK or step of the profiler, with the pair that it is audited on.

    ``sample`` runs both sides so many times, afresh at every call, and gives the same views each
    time. ``runs`` is how many show half of the noise; ``about`` are further public facts for the
    report.
    """

    name: str
    group: str
    claim: Claim
    pair: str
    sample: Callable[[int], Sequence[OutputView]]
    runs: int
    about: dict[str, str] = field(default_factory=dict)


def refused(name: str, group: str, error: SageError) -> Subject:
    """A subject that cannot be audited, or is wrong before anything is measured: it says so when it
    is run.
    """

    def sample(_: int) -> list[OutputView]:
        raise error

    return Subject(name, group, Claim(0.0), "", sample, 1)


def joined(parts: Sequence[Sequence[OutputView]]) -> list[OutputView]:
    """The views of several samples as those of one."""
    return [
        OutputView(
            same[0].name,
            np.concatenate([view.data for view in same]),
            np.concatenate([view.neighbour for view in same]),
        )
        for same in zip(*parts, strict=True)
    ]
