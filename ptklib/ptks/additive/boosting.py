"""Boosting of an additive model in turn: noisy sums of one input, its shape, the next input.

After the tables (records of each bin by class) only one number of a bin is asked for in a round:
the sum of the predictions of its records, less a half each. With the tables that gives the sum of
residuals, y - p = (y - 1/2) - (p - 1/2), at half the sensitivity that residuals have themselves. A
shape moves a part of the way to where a bound of the curvature says that residuals vanish, as the
noise lets it be seen (`smoothing`). Steps thus cannot overshoot by noise: a bin with few records
beside the noise hardly moves. Before the first round all shapes take a part of what the tables say
of each input alone.

**Proof note.** *Sensitivity:* the scores of records follow from their codes and from numbers that
were released before, as whole numbers (`link`): a record adds at most `REACH` to one bin, and
changes no other record's. All else here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays
from ptklib.ptks.additive.budget import AdditiveMechanisms
from ptklib.ptks.additive.link import Link, link_of
from ptklib.ptks.additive.smoothing import odds_of, smoothed
from ptklib.ptks.binned.codes import STEPS
from ptklib.ptks.binned.noise import deviation_of
from ptklib.ptks.binned.records import count_tables
from ptklib.ptks.binned.target import Labels, Target

__all__ = ["BinTables", "Boosting"]

Floats = NDArray[np.float64]
Wide = NDArray[np.int64]

_ROWS_AT_ONCE = 1 << 16
# Of the way to the best shape, in each round; all rounds together see about the noise of one sum
# with the whole budget of all of them.
_RATE = 0.5
_NOISE = _RATE / (2 - _RATE)
# How much the base may move besides the shapes, as a variance; of noise, records that count as
# halves for a share.
_BASE_VARIANCE, _DOUBT = 0.03, 2.0


@dataclass(frozen=True)
class BinTables:
    """What the first releases say, in records: of all records, and of the bins of each input."""

    share: float  # of the second class; the mean of the target
    count: float
    excess: float  # the sum of y - 1/2
    excess_variance: float
    records: tuple[Floats, ...]
    excesses: tuple[Floats, ...]
    shares: tuple[Floats, ...]
    variance: float  # of the noise of an excess of a bin

    @classmethod
    def of(
        cls, whole: Wide, tables: Wide, sizes: tuple[int, ...], weight: int, noises: Floats
    ) -> BinTables:
        """From noisy weights, and the deviations of their noise (whole, tables)."""
        parts = [part / weight for part in np.split(tables, np.cumsum(sizes)[:-1])]
        deviations = noises / weight
        # Each input counts all records: the noise of its total is that of its bins.
        precisions = np.array([1 / (size * deviations[1] ** 2) for size in sizes])
        total, precision = whole / weight / deviations[0] ** 2, 1 / deviations[0] ** 2
        for part, sure in zip(parts, precisions, strict=True):
            total = total + sure * part.sum(axis=0)
            precision += sure
        lower, upper = np.maximum(total / precision, 0.0)
        count = max(float(lower + upper), 1.0)
        doubt = count**2 / (count**2 + 4 / precision)
        share = min(max(0.5 + float(upper - lower) / (2 * count) * doubt, 0.001), 0.999)
        records = tuple(np.maximum(part.sum(axis=1), 0.0) for part in parts)
        known = _DOUBT * deviations[1]
        return cls(
            share=share,
            count=count,
            excess=float(upper - lower) / 2,
            excess_variance=1 / precision / 2,
            records=records,
            excesses=tuple((part[:, 1] - part[:, 0]) / 2 for part in parts),
            shares=tuple(
                np.clip((np.maximum(part[:, 1], 0.0) + share * known) / (held + known), 0.01, 0.99)
                for part, held in zip(parts, records, strict=True)
            ),
            variance=float(deviations[1]) ** 2 / 2,
        )


class Boosting:
    """One training: records as codes, and a model that follows from what was released."""

    def __init__(
        self,
        target: Target,
        sizes: tuple[int, ...],
        ordered: tuple[bool, ...],
        codes: NDArray[Any],
        label: Labels,
    ) -> None:
        """Raw records, for the mechanisms alone."""
        self._target, self._sizes, self._ordered = target, sizes, ordered
        self._codes, self._label = codes, label
        self._link: Link = link_of(target)
        self._odds: Floats = np.zeros(0)

    def state(
        self, plan: AdditiveMechanisms, previous: Arrays | None, noise: BitSource | None
    ) -> dict[str, NDArray[Any]]:
        """The arrays of a state.

        With a previous one, training goes on from its model, and each window counts the same.
        """
        target, size = self._target, self._sizes
        everything = np.zeros(len(self._label), dtype=np.intp)
        counts = target.corners(target.count(everything, 1, self._label))
        whole = plan.whole.release(counts, source=noise).values[0]
        counts = count_tables(target, size, self._codes, self._label)
        noisy = plan.tables.release(counts, source=noise).values
        noises = np.array([deviation_of(plan.whole), deviation_of(plan.tables)])
        tables = BinTables.of(whole, noisy, size, target.weight, noises)
        windows = 1 if previous is None else int(previous["windows"][0]) + 1
        self._odds = odds_of(self._alone(tables), self._link.scale)
        link = self._link
        if previous is None:
            base = link.steps(np.array([link.base(tables.share)]))
            shapes = self._first(tables)
        else:
            base = link.steps(previous["base"])
            shapes = np.split(link.steps(previous["shapes"]), np.cumsum(size)[:-1])
        scores = np.full(len(self._label), base[0], dtype=np.int32)
        for shape, codes in zip(shapes, self._codes, strict=True):
            self._add(scores, shape, codes)
        for _ in range(plan.rounds):
            for place in range(len(size)):
                sums = self._sums(scores, place)
                seen = plan.sums.release(sums, source=noise).values / STEPS
                variance = (deviation_of(plan.sums) / STEPS) ** 2
                moved, shape = self._step(tables, place, shapes[place], seen, variance, windows)
                again = np.clip(base + moved, -link.most, link.most).astype(np.int32)
                self._add(scores, shape - shapes[place] + (again - base), self._codes[place])
                base, shapes[place] = again, shape
        made = {"base": base / link.units, "shapes": np.concatenate(shapes) / link.units}
        if previous is not None:
            for name, new in made.items():
                mean = previous[name] + (new - previous[name]) / windows
                made[name] = link.steps(mean) / link.units
        return {
            **made,
            "tables": noisy,
            "variance": np.array([(noises[1] / target.weight) ** 2]),
            "windows": np.array([windows], dtype=np.int64),
        }

    def _first(self, tables: BinTables) -> list[NDArray[np.int32]]:
        """A part of what each input says alone: the whole of one, less of many that may say the
        same.
        """
        part = 1 / math.sqrt(len(self._sizes))
        return [
            self._centred(tables, place, part * self._smoothed(place, seen, variance))
            for place, (seen, variance, _) in enumerate(self._alone(tables))
        ]

    def _alone(self, tables: BinTables) -> list[tuple[Floats, Floats, bool]]:
        """What the tables say of each input, as if there were no other: see `odds_of`."""
        said = []
        for place, ordered in enumerate(self._ordered):
            missed = tables.excesses[place] - tables.records[place] * (tables.share - 0.5)
            bends = self._bends(tables, place)
            variance = tables.variance / bends**2 + self._link.scale / bends
            said.append((missed / bends, variance, ordered))
        return said

    def _step(
        self,
        tables: BinTables,
        place: int,
        shape: NDArray[np.int32],
        seen: Floats,
        noise: float,
        windows: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """How much the base moves, and the next shape, from the noisy sums of p - 1/2."""
        link = self._link
        bend = tables.count * float(link.curvature(np.array([tables.share]), tables.share)[0])
        spread = noise * len(seen) + tables.excess_variance + link.scale * bend
        missed = tables.excess - float(seen.sum())
        base = missed * bend / (bend**2 + spread / (_BASE_VARIANCE * link.scale))
        left = tables.excesses[place] - seen - base * self._bends(tables, place)
        now = shape / link.units
        # Rounds average over the noise of their sums, not over that of the tables; windows over
        # both.
        blur = tables.variance + noise * _NOISE
        bends = self._bends(tables, place)
        variance = (blur / bends**2 + link.scale / bends) / windows
        best = self._smoothed(place, now + left / bends, variance)
        moved = link.steps(np.array([_RATE * base]))
        return moved, self._centred(tables, place, now + _RATE * (best - now))

    def _smoothed(self, place: int, seen: Floats, variance: Floats) -> Floats:
        ordered, scale = self._ordered[place], self._link.scale
        return smoothed(seen, variance, self._odds, ordered=ordered, scale=scale)

    def _bends(self, tables: BinTables, place: int) -> Floats:
        bend = self._link.curvature(tables.shares[place], tables.share)
        return np.maximum(tables.records[place] * bend, 1.0)

    def _centred(self, tables: BinTables, place: int, shape: Floats) -> NDArray[np.int32]:
        """With a mean of zero over the records of the tables."""
        records = tables.records[place]
        mean = float((records * shape).sum()) / max(float(records.sum()), 1.0)
        return self._link.steps(shape - mean)

    def _sums(self, scores: NDArray[np.int32], place: int) -> Wide:
        """The exact sums of p - 1/2 of all bins of an input, in 1/`STEPS`. Raw."""
        link, codes = self._link, self._codes[place]
        total = np.zeros(self._sizes[place])
        for start in range(0, len(scores), _ROWS_AT_ONCE):
            here = slice(start, start + _ROWS_AT_ONCE)
            halves = link.halves[link.places(scores[here])]
            # Whole floats below 2**53 add up exactly.
            total += np.bincount(codes[here], weights=halves, minlength=len(total))
        return total.astype(np.int64)

    def _add(
        self, scores: NDArray[np.int32], shape: NDArray[np.int32], codes: NDArray[Any]
    ) -> None:
        for start in range(0, len(scores), _ROWS_AT_ONCE):
            here = slice(start, start + _ROWS_AT_ONCE)
            scores[here] += shape[codes[here]]
