"""The profile without privacy, as in Fig. 6: the real loss of a PTK by samples and epsilon. **For
public data only.**

States are trained with DP, but their losses are read without noise, many times, on the same
records: nothing here is private. It takes records, never a stream; asking for a stream is refused.

Reasons: RESEARCH_REFUSED, LEVELS_INVALID.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ptklib.errors import InvalidInput, Refused
from ptklib.privacy.amounts import Number
from ptklib.ptk import Ptk

__all__ = ["ResearchPoint", "research_profile"]


@dataclass(frozen=True)
class ResearchPoint:
    """The mean loss over some trainings, and its spread. Not private."""

    epsilon: float
    samples: int
    loss: float
    spread: float


def research_profile(
    ptk: Ptk,
    table: pa.Table | None,
    *,
    samples: Sequence[int],
    levels: Sequence[Number],
    delta: Number = 0,
    repeats: int = 3,
    seed: int = 0,
    stream: str | None = None,
) -> list[ResearchPoint]:
    """Losses on a held-out third of ``table``, of states trained on random parts of the rest."""
    if stream is not None or table is None:
        raise Refused(
            "RESEARCH_REFUSED",
            f"stream {stream!r} is protected: a research profile reads losses without noise, and "
            "takes public data only",
            stream=stream,
        )
    if not samples or not levels:
        raise InvalidInput("LEVELS_INVALID", "samples and levels must name at least one each")
    rng = np.random.default_rng(seed)
    order = rng.permutation(table.num_rows)
    held, rest = order[: table.num_rows // 3], order[table.num_rows // 3 :]
    test = table.take(pa.array(held)).combine_chunks().to_batches()
    points = []
    for level in levels:
        for size in samples:
            losses = []
            for _ in range(repeats):
                chosen = rng.choice(rest, min(size, len(rest)), replace=False)
                part = table.take(pa.array(chosen)).combine_chunks().to_batches()
                losses.append(ptk.eval(ptk.train_dp(part, epsilon=level, delta=delta), test))
            points.append(
                ResearchPoint(float(level), size, float(np.mean(losses)), float(np.std(losses)))
            )
    return points
