"""From PTKs to arms: the same columns of the target, with the features of the PTKs trained in every
way beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from examples.experiments.harness import EPSILONS, NO_PTK, NP_PTK, Arm, arm_of
from ptklib.ptk import Arrays, Ptk

__all__ = ["Exact", "exact_arrays", "ptk_arms"]

Exact = Callable[[Ptk, pa.Table], Arrays]


def exact_arrays(ptk: Ptk, source: pa.Table) -> Arrays:
    """The PTK's own training without noise."""
    found = ptk.exact(source.to_batches())
    if found is None:
        raise ValueError(f"{ptk.kind} has no training without noise: give the experiment one")
    return found


def ptk_arms(
    ptks: Sequence[Ptk],
    source: pa.Table,
    *,
    train: pa.Table,
    test: pa.Table,
    own: Arm,
    exact: Exact = exact_arrays,
    delta: str = "0",
    epsilons: Sequence[float] = EPSILONS,
    prepared: Mapping[str, Arm] | None = None,
) -> dict[str, Arm]:
    """All arms. Epsilon, and delta if the PTKs need one, are split evenly among the PTKs: basic
    composition.

    ``prepared`` holds arms that do not change from seed to seed, by name (those without noise).
    """
    arms: dict[str, Arm] = dict(prepared or {NO_PTK: own})

    def with_features(states: Sequence[Arrays]) -> Arm:
        return (_beside(own[0], ptks, states, train), _beside(own[1], ptks, states, test))

    if NP_PTK not in arms:
        arms[NP_PTK] = with_features([exact(ptk, source) for ptk in ptks])
    for epsilon in epsilons:
        share = Fraction(str(epsilon)) / len(ptks)
        states = [
            ptk.train_dp(
                source.to_batches(),
                epsilon=share,
                delta=Fraction(delta) / len(ptks) if ptk.tags.needs_delta else 0,
            )
            for ptk in ptks
        ]
        arms[arm_of(epsilon)] = with_features(states)
    return arms


def _beside(
    own: NDArray[Any], ptks: Sequence[Ptk], states: Sequence[Arrays], table: pa.Table
) -> NDArray[Any]:
    columns = [own]
    for ptk, state in zip(ptks, states, strict=True):
        made = ptk.features(state, table)
        columns += [np.asarray(one.to_numpy(), dtype=np.float64)[:, None] for one in made.columns]
    return np.hstack(columns)
