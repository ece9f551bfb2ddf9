"""The best of a random number of runs: private selection from candidates that are tried on all
records.

`BestOfRuns` draws how many runs there are, tries a candidate drawn at random in each, and gives the
best answer with its candidate and score, and nothing of the others. Its price is a few times that
of one run, whatever the number of candidates and however many runs there are on average.

Reasons: SELECTION_INVALID, and those of the costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import BestOfNegativeBinomialCost, BestOfPoissonCost, Cost
from ptklib.privacy.noise.source import BitSource
from ptklib.privacy.selection.coins import uniform_below
from ptklib.privacy.selection.stopping import Stopping

__all__ = ["BestOfRuns", "BestRun"]

Answer = TypeVar("Answer")
MAX_CANDIDATES = 10_000


@dataclass(frozen=True)
class BestRun(Generic[Answer]):
    """The best run: which candidate it tried, its score, and what it gave."""

    candidate: int
    score: float
    answer: Answer


@dataclass(frozen=True, kw_only=True)
class BestOfRuns:
    """The best of K runs, K drawn from ``stopping``, each of a candidate drawn uniformly.

    *Unit, neighbours*: those of ``base``, the largest cost of one run of any candidate, **score
    included**: the score is released with the best run, so it must itself be a private answer, and
    what it costs is part of ``base``. *Sensitivity*: none is needed; scores are compared as they
    were released. *Cost*: `ptklib.privacy.costs.stopping`, where the proof is. It holds because K
    and the candidates are drawn without the data, runs have fresh noise each, and **nothing of a
    run that is not the best is ever used**: not to stop early, not to choose the next candidate,
    not in a log.

    A score that is no number counts as the worst. First of equals: as good as any, as runs are
    exchangeable.
    """

    stopping: Stopping
    base: Cost
    candidates: int

    def __post_init__(self) -> None:
        """At least one candidate; the cost is made, so that a base it refuses is refused now."""
        if isinstance(self.candidates, bool) or not 0 < self.candidates <= MAX_CANDIDATES:
            raise InvalidInput(
                "SELECTION_INVALID",
                f"there must be 1 to {MAX_CANDIDATES} candidates, got {self.candidates!r}",
            )
        _ = self.cost

    @property
    def cost(self) -> BestOfNegativeBinomialCost | BestOfPoissonCost:
        """What a release costs, known before any data."""
        return self.stopping.cost_of_best(self.base)

    def release(
        self,
        run: Callable[[int], tuple[float, Answer]],
        *,
        source: BitSource | None = None,
    ) -> BestRun[Answer] | None:
        """Try ``run(candidate)``, which gives a score and an answer at the price of ``base``, as
        often as is drawn; the best, or None where nothing is run (Poisson).
        """
        best: BestRun[Answer] | None = None
        for _ in range(self.stopping.draw(source)):
            candidate = uniform_below(self.candidates, source)
            score, answer = run(candidate)
            value = -math.inf if math.isnan(score) else float(score)
            if best is None or value > best.score:
                best = BestRun(candidate, value, answer)
        return best
