"""PTKs, audited through everything that their training releases.

A state is post-processing of the releases of its training, which is why it is private: the proof of
every kind adds up what its releases cost. So the audit looks at those releases, all of them
together, before anything is averaged, rounded or turned into features. For each run it knows what
either side would have put behind every answer, also where an answer decided what was asked next
(`tape`), and sums the log-likelihood ratios: the best number there is for telling the two sides
apart. The claim is that of `Ptk.cost`, with the configuration as it is.

Runs are whole trainings. Where a training is one release of the same numbers every time, its inputs
are taken from the training and all runs are drawn at once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.auditing.likelihood import matches, ratio
from ptklib.auditing.mechanisms import DELTA, LEVEL, SMALL_DELTA, entry_views, row_views
from ptklib.auditing.pairs import Chain, TrainingBudget, releases_gaussian, worst_pairs
from ptklib.auditing.subject import Claim, OutputView, Subject, refused
from ptklib.errors import SageError
from ptklib.privacy.amounts import Number, show
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.ptk import Ptk
from ptklib.ptks.covariance.noise import WishartRelease
from ptklib.testing.audit import MODULI

__all__ = ["GROUP", "chain_views", "ptk_subject"]

GROUP = "ptk"
# So many that the bound of a right one is far above a quarter of its claim: with 3,000 runs it was
# some five deviations above, resampled, where it was least.
_RUNS, _MATRIX_RUNS, _CHEAP_RUNS = 4_000, 8_000, 60_000
# Mechanisms that are drawn for all runs in one call.
_ROWS = LaplaceRelease | GaussianRelease


def ptk_subject(
    name: str,
    ptk: Ptk,
    *,
    epsilon: Number = LEVEL,
    records_per_unit: int = 1,
    rows: pa.Table | None = None,
) -> Subject:
    """A PTK on the worst pairs that are found for it, which takes some trainings.

    One that cannot be audited, or is wrong before anything is measured, becomes a subject that says
    so when it is run.
    """
    try:
        return _audited(name, ptk, epsilon, records_per_unit, rows)
    except SageError as error:
        return refused(name, GROUP, error)


def _audited(
    name: str, ptk: Ptk, epsilon: Number, records_per_unit: int, rows: pa.Table | None
) -> Subject:
    delta = Fraction(0)
    if ptk.tags.needs_delta:
        # A delta that is a failure of its own would have to be seen failing; that of Gaussian noise
        # is no failure.
        delta = (
            DELTA
            if releases_gaussian(ptk, TrainingBudget(epsilon, DELTA, records_per_unit), rows)
            else SMALL_DELTA
        )
    chains = worst_pairs(ptk, TrainingBudget(epsilon, delta, records_per_unit), rows)
    steady = [_steady(chain) for chain in chains]

    def sample(count: int) -> list[OutputView]:
        views = []
        for place, (chain, release) in enumerate(zip(chains, steady, strict=True)):
            # The second pair is there for its low bits, which fewer runs show.
            few = count if place == 0 else -(-count // 2)
            seen = chain_views(chain, few) if release is None else _steady_views(*release, few)
            views += [
                OutputView(f"{output.name}, pair {place + 1}", output.data, output.neighbour)
                for output in seen
            ]
        return views

    cost = ptk.cost(epsilon, delta, records_per_unit=records_per_unit)
    about = {
        "kind": ptk.kind,
        "epsilon asked for": show(Fraction(epsilon)),
        "records per unit": str(records_per_unit),
    }
    pair = "; ".join(chain.words for chain in chains)
    runs = min(_runs_of(release) for release in steady)
    return Subject(name, GROUP, Claim.of(cost, float(delta)), pair, sample, runs, about)


def _runs_of(steady: tuple[Any, Any, Any] | None) -> int:
    """By what a run takes: a whole training, a matrix, or a row among many."""
    if steady is None:
        return _RUNS
    return _CHEAP_RUNS if isinstance(steady[0], _ROWS) else _MATRIX_RUNS


def chain_views(chain: Chain, count: int) -> list[OutputView]:
    """Whole trainings of both sides."""
    ratios: list[list[float]] = [[], []]
    agreeing: list[list[NDArray[np.int64]]] = [[], []]
    for side in (0, 1):
        for _ in range(count):
            links = chain.links(side)
            ratios[side].append(sum(ratio(entry, other) for entry, other in links))
            agreeing[side].append(np.sum([matches(*link) for link in links], axis=0))
    views = [OutputView("likelihood", *(np.array(of_side) for of_side in ratios))]
    counted = [np.array(of_side) for of_side in agreeing]
    return [
        *views,
        *(
            OutputView(f"residues mod {modulus}", *(each[:, k] for each in counted))
            for k, modulus in enumerate(MODULI)
        ),
    ]


def _steady(chain: Chain) -> tuple[Any, Any, Any] | None:
    """The mechanism and both inputs of a training that is one release of the same numbers every
    time.
    """
    seen = [chain.links(side) for side in (0, 1, 0)]
    if any(len(links) != 1 for links in seen):
        return None
    (entry, other), mechanism = seen[0][0], seen[0][0][0].mechanism
    same = all(
        np.array_equal(links[0][0].given, entry.given) and np.array_equal(links[0][1], other)
        for links in seen
    )
    if not same or not isinstance(mechanism, _ROWS | WishartRelease):
        return None
    if isinstance(mechanism, WishartRelease):
        return mechanism, entry.given, other
    # Numbers that are the same on both sides tell nothing.
    moved = np.flatnonzero(np.ravel(entry.given) != np.ravel(other))
    return (mechanism, np.ravel(entry.given)[moved], np.ravel(other)[moved]) if len(moved) else None


def _steady_views(
    mechanism: Any, first: NDArray[Any], second: NDArray[Any], count: int
) -> list[OutputView]:
    if isinstance(mechanism, WishartRelease):
        return entry_views(mechanism, first, second, count)
    return row_views(mechanism, first.astype(np.int64), second.astype(np.int64), count)
