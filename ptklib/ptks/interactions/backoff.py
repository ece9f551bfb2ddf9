"""Back-off: what a cell of many keys is taken to be, from its own noisy totals and from tables of
fewer keys.

A cell of a table has n records, and the shares p of its channels (`binned.target`: classes, or the
two ends of a range). Known are noisy totals of every table, with known noise. Tables are read from
few keys to many. In each,

1. its **totals** are pooled with the sums of those of more keys, each weighed by its noise;
2. the **centre** of a cell is what fewer keys say of it. Of one key: the shares q of all records. Of
   two: p_a p_b / q, each factor p_a / q raised to a power, then scaled to sum to 1 (at power 1 keys
   act independently given the channel; at 0 they say nothing together). Of three: the same
   of the pairs over the singles, or of the singles alone. The power is 1 unless the noisy table is
   far more likely with another of `_POWERS`;
3. **counts** are taken as a mixture over what they may be (`embeddings.rows`): most pairs have hardly
   any records, and noise would make half of those negative. What the noise of a count is taken to be
   is taken off its channels alike;
4. the deviation of a total from its centre varies by noise (with the tails of Laplace noise, or else
   rare large noise would be a spread), by chance (n p (1 - p) times a factor that is 1 for classes and
   learned for numbers, whose records vary less), and by how much cells really differ:
   (n s)^2 p (1 - p), where s is a mixture over spreads, so that a few cells far from all others do
   not loosen the rest;
5. the **share** is the centre and the mean of the deviation given all of that. A cell with many
   records follows its own total, a sparse one its centre.

Without noise (`Ptk.exact`) shares are the plain ones. Constants were chosen on made-up tables and
those of `benchmarks._accuracy.encodings`.

**Proof note.** *Unit, cost:* none, all of it is post-processing of noisy totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.embeddings.rows import likely_counts
from ptklib.ptks.interactions.tables import KeyTable
from ptklib.ptks.tables.shrinkage.noise import tails

__all__ = ["Totals", "shares_of"]

Floats = NDArray[np.float64]

_SPREADS: Floats = np.exp2(-np.arange(0.0, 9.0))
# Of n q (1 - q): how much the records of a cell vary, of numbers.
_CHANCES = (1.0, 0.25, 0.0625, 0.015)
_POWERS = (0.0, 0.5, 0.75, 1.0)
# Where the table does not tell them apart, the last power is taken: others must be more likely by this
# logarithm.
_EXPECTED, _SURE = len(_POWERS) - 1, 3.0
# Rows that are thought to be of each spread before any are seen: where noise could hide any spread,
# cells are taken to be alike.
_NEAR: Floats = np.append(np.full(len(_SPREADS) - 1, 0.05), 2.0)
_ROUNDS = 60
# Cells that mixtures are learned from: more hardly tell more.
_LEARNED = 8192
_PIECE = 1 << 14
# A centre is never nearer than this to 0 or 1: what was not seen may still be.
_EDGE = 1e-4
_GRID = 2.0**-40
_TINY = 1e-300


@dataclass(frozen=True)
class Totals:
    """Of one table: totals in records, a row for each cell, and the variance of their noise."""

    values: Floats
    variance: float
    windows: float  # that were summed, each with Laplace noise; infinite where it is Gaussian
    number: bool  # what is learned is one: records need not be at either end

    @property
    def counts(self) -> Floats:
        """Noisy counts."""
        return np.asarray(self.values.sum(axis=1))


@dataclass(frozen=True)
class _Channel:
    """What is known of one channel of all cells: deviations from the centre, and how they vary."""

    away: Floats
    counts: Floats
    noise: Floats
    width: Floats  # q (1 - q)
    tails: tuple[tuple[float, float], ...]  # of the noise: variances of normals, and their shares

    def some(self, here: slice) -> _Channel:
        """Of some cells."""
        away, counts, noise, width = (
            part[here] for part in (self.away, self.counts, self.noise, self.width)
        )
        return _Channel(away, counts, noise, width, self.tails)

    def logs(self, chance: float) -> Floats:
        """The logarithm of the likelihood of each cell under each spread and tail, but for a
        constant.
        """
        whole = self._variance(chance)
        shares = np.log([share for _, share in self.tails])
        squares = np.square(self.away)[:, None, None]
        return np.asarray(shares - (np.log(whole) + squares / whole) / 2)

    def pulls(self, chance: float) -> Floats:
        """What to multiply a deviation by to have that of the share, under each of those."""
        own = (self.counts * self.width)[:, None] * np.square(_SPREADS)
        return np.asarray(own[:, :, None] / self._variance(chance))

    def _variance(self, chance: float) -> Floats:
        own = (np.square(self.counts) * self.width)[:, None] * np.square(_SPREADS)
        sample = own + (self.counts * self.width * chance)[:, None]
        noise = self.noise[:, None] * np.array([scale for scale, _ in self.tails])
        return np.asarray(np.maximum(sample[:, :, None] + noise[:, None, :], _TINY))


@dataclass(frozen=True)
class _Centres:
    """What fewer keys say of each cell: ``base`` and one of ``ways``, to one of `_POWERS`."""

    base: Floats
    ways: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.ways) * len(_POWERS)

    def at(self, number: int, here: Any = slice(None)) -> Floats:
        """Shares of some cells."""
        way = self.ways[number // len(_POWERS)][here]
        together = self.base + _POWERS[number % len(_POWERS)] * way
        return _inside(_scaled(np.exp(np.minimum(together, 50.0))))


def shares_of(tables: Sequence[KeyTable], totals: Sequence[Totals]) -> list[Floats]:
    """Shares of the channels, of the cells of each table."""
    pooled = [_pooled(tables, totals, place) for place in range(len(tables))]
    smallest = min(range(len(tables)), key=lambda place: tables[place].size)
    every = _scaled(np.maximum(pooled[smallest].values.sum(axis=0), 0.0)[None, :])[0]
    made: dict[tuple[int, ...], Floats] = {}
    for table, told in zip(tables, pooled, strict=True):
        parts = {
            part.places: made[part.places][table.along(part)] for part in tables if table.has(part)
        }
        made[table.places] = _read(told, _centres(every, parts, table.order, len(told.values)))
    return [made[table.places] for table in tables]


def _pooled(tables: Sequence[KeyTable], totals: Sequence[Totals], place: int) -> Totals:
    """The totals of a table, its own and the sums of those of more keys, each weighed by how little
    noise it has.
    """
    mine, told = tables[place], totals[place]
    if told.variance <= 0:
        return told
    values, weight = told.values / told.variance, 1 / told.variance
    fourth = weight**2 / told.windows
    for table, more in zip(tables, totals, strict=True):
        if table.has(mine):
            variance = more.variance * (table.size / mine.size)
            values = values + table.summed(more.values, mine) / variance
            weight += 1 / variance
            fourth += variance**-2 / (more.windows * table.size / mine.size)
    windows = weight**2 / fourth if fourth > 0 else np.inf
    return Totals(values / weight, 1 / weight, windows, told.number)


def _centres(
    every: Floats, parts: dict[tuple[int, ...], Floats], order: int, cells: int
) -> _Centres:
    """Of a table of three keys, pairs over singles and singles alone; of two, singles."""
    base = np.log(_inside(every))
    together, alone = np.zeros((cells, len(every))), np.zeros((cells, len(every)))
    for places, shares in parts.items():
        ratio = np.log(_inside(shares)) - base
        together += ratio if (order - len(places)) % 2 == 1 else -ratio
        if len(places) == 1:
            alone += ratio
    return _Centres(base, (together, alone) if order > 2 else (together,))


def _read(told: Totals, centres: _Centres) -> Floats:
    """The shares of all cells, by the centre that makes the table most likely."""
    counts = told.counts
    if told.variance <= 0:
        plain = told.values / np.where(counts > 0, counts, 1.0)[:, None]
        return np.where(counts[:, None] > 0, plain, centres.at(len(centres) - 1))
    # A total of each channel has noise, so a count has that of all.
    likely, doubt = likely_counts(counts, told.variance * told.values.shape[1])
    here = slice(None, None, -(-len(counts) // _LEARNED))
    some = Totals(told.values[here], told.variance, told.windows, told.number)

    def tried(way: int, factor: float) -> tuple[float, int, float, Floats]:
        channels = _channels(some, likely[here], doubt[here], centres.at(way, here))
        learned, fit = _learned(channels, factor)
        return fit + (_SURE if way == _EXPECTED else 0.0), way, factor, learned

    # The centre first, then how much records vary.
    chances = _CHANCES if told.number else (1.0,)
    tries = [tried(way, chances[len(chances) // 2]) for way in range(len(centres))]
    number = max(tries, key=lambda trial: trial[0])[1]
    tries = [tried(number, factor) for factor in chances]
    _, _, chance, weights = max(tries, key=lambda trial: trial[0])
    made = centres.at(number)
    channels = _channels(told, likely, doubt, made)
    for back, channel in enumerate(channels):
        made[:, made.shape[1] - 1 - back] += _deviations(channel, chance, weights)
    if len(channels) == 1:
        made[:, 0] = 1 - made[:, 1]
    made = _scaled(np.clip(made, 0.0, 1.0))
    return np.asarray(np.rint(made / _GRID) * _GRID)


def _channels(told: Totals, likely: Floats, doubt: Floats, centre: Floats) -> list[_Channel]:
    """The last channel of a number, all channels of classes (of two: the last), from the last."""
    size = told.values.shape[1]
    places = range(size - 1, size - 2 if size == 2 else -1, -1)
    counts, mixture = told.counts, tails(told.windows)
    made = []
    for place in places:
        middle = centre[:, place]
        # The noise of the count, as far as it is known, is shared by all channels alike.
        away = told.values[:, place] - (counts - likely) / size - middle * likely
        noise = told.variance * (1 - 1 / size) + doubt * np.square(middle - 1 / size)
        made.append(_Channel(away, likely, noise, middle * (1 - middle), mixture))
    return made


def _learned(channels: list[_Channel], chance: float) -> tuple[Floats, float]:
    """The most likely weights of the spreads, by EM, and how likely the table is with them."""
    logs = np.concatenate([channel.logs(chance) for channel in channels])
    top = logs.max(axis=(1, 2), keepdims=True)
    likelihood = np.exp(logs - top).sum(axis=2)
    weights = _NEAR / _NEAR.sum()
    for _ in range(_ROUNDS):
        share = likelihood * weights
        share /= np.maximum(share.sum(axis=1, keepdims=True), _TINY)
        weights = (share.sum(axis=0) + _NEAR) / (len(likelihood) + _NEAR.sum())
    fit = float(
        (np.log(np.maximum((likelihood * weights).sum(axis=1), _TINY)) + top[:, 0, 0]).sum()
    )
    return weights, fit


def _deviations(channel: _Channel, chance: float, weights: Floats) -> Floats:
    """The mean of what each share is above its centre."""
    made = np.empty(len(channel.away))
    for start in range(0, len(made), _PIECE):
        part = channel.some(slice(start, start + _PIECE))
        logs = part.logs(chance)
        share = np.exp(logs - logs.max(axis=(1, 2), keepdims=True)) * weights[:, None]
        pull = (share * part.pulls(chance)).sum(axis=(1, 2)) / share.sum(axis=(1, 2))
        made[start : start + _PIECE] = pull * part.away
    return made


def _inside(shares: Floats) -> Floats:
    return np.asarray(np.clip(shares, _EDGE, 1 - _EDGE))


def _scaled(values: Floats) -> Floats:
    """Rows that sum to 1; even ones where there is nothing."""
    whole = values.sum(axis=1, keepdims=True)
    even = np.full_like(values, 1 / values.shape[1])
    return np.where(whole > 0, values / np.where(whole > 0, whole, 1.0), even)
