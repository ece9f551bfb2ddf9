"""A noisy grid of few columns, and k-means on it: one release, any number of iterations.

Each axis has ``nodes`` nodes, from bound to bound. A record spreads its weight over the corners of
its cell by its place in it (multilinear interpolation in whole numbers): weights are not negative
and sum to W = width^d, and the mean of a record's corners is the record itself, to 1/width of a
cell. So sums over many cells are exact in the mean, whatever the grid, and all nodes together are
as sensitive as a count.

**Proof note.** One record moves the vector of all nodes by W in L1, or 0, and by at most W in L2.
Totals are exact: whole floats below 2**53, added up as int64. What `centres_of` does with noisy
totals is post-processing.

From the noisy grid: while the records are fewer than `_RECORDS_PER_NODE` times the noise of all
nodes, neighbours are added up to a grid of half the nodes (exactly what a coarser grid would hold);
nodes that are likely to be noise alone are left out; k-means runs from several starts; and at last
the centres are set to the noisy means of their cells, nodes of noise included, because the noise of
many nodes cancels and that of chosen ones does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.vectors import STEPS, RecordVectors
from ptklib.ptks.vectors.space import Floats

__all__ = ["GRID_NODES", "GRID_SETS", "Grid"]

Integers = NDArray[np.int64]

# By the number of columns: what was best at 10,000 records and epsilon 0.5 or more. Below, the grid
# is made coarser.
GRID_NODES = {1: 129, 2: 33, 3: 17, 4: 9}
# The weights of one record sum to this at most, so that 2**36 records fit.
_MAX_WEIGHT = 2**24
_RECORDS_PER_NODE = 0.7
_STARTS, _ITERATIONS, _POLISH = 8, 30, 2
# Sets of centres that are improved side by side: all starts, and the last state.
GRID_SETS = _STARTS + 1


class Grid:
    """The nodes of a box of ``size`` columns."""

    def __init__(self, size: int, nodes: int) -> None:
        """``nodes`` is a power of two plus one, on each axis."""
        self.size, self.nodes = size, nodes
        self.cells = nodes - 1
        # Steps from node to node, and the parts that a place in the cell is told by.
        self._step = 2 * STEPS // self.cells
        self._parts = self._step
        while self._parts**size > _MAX_WEIGHT:
            self._parts //= 2

    @property
    def weight(self) -> int:
        """W: what the weights of one record sum to."""
        return int(self._parts**self.size)

    @property
    def total_nodes(self) -> int:
        """How many nodes there are."""
        return int(self.nodes**self.size)

    def totals(self, pieces: Iterable[RecordVectors]) -> Integers:
        """The exact totals of all nodes, flat, the last axis fastest. Raw."""
        size, cells = self.size, self.cells**self.size
        # Of each cell: sums of the products of some of the places, by which axes are in the
        # product.
        products = np.zeros((2**size, cells), dtype=np.int64)
        for piece in pieces:
            vectors = piece.vectors if piece.missing is None else piece.vectors[:, ~piece.missing]
            index, places = self._places(vectors)
            weights: list[Floats | None] = [None]
            for place in places:
                weights += [place if weight is None else weight * place for weight in weights]
            for row, weight in zip(products, weights, strict=True):
                row += np.bincount(index, weights=weight, minlength=cells).astype(np.int64)
        return self._corners(products)

    def centres_of(
        self,
        weights: Floats,
        spread: float,
        clusters: int,
        previous: Floats | None,
        generator: np.random.Generator,
    ) -> tuple[Floats, Floats]:
        """Centres (scaled) and noisy counts from noisy nodes in records, each with noise of this
        standard deviation.
        """
        field, nodes = weights.reshape((self.nodes,) * self.size), self.nodes
        while nodes > 3 and field.sum() < _RECORDS_PER_NODE * spread * field.size:
            field, spread, nodes = _halved(field), spread * 1.5 ** (self.size / 2), (nodes + 1) // 2
        axis = np.linspace(-1, 1, nodes)
        points = np.stack(np.meshgrid(*[axis] * self.size, indexing="ij"), axis=-1).reshape(
            -1, self.size
        )
        flat = field.reshape(-1)
        # Laplace noise of this spread exceeds it at one node, or less, of all.
        sure = flat > spread / math.sqrt(2) * math.log(len(flat))
        start = _seeded(points[sure], flat[sure], clusters, generator)
        if previous is not None:
            start = np.concatenate([start, previous[None]])
        centres = _weighted(points[sure], flat[sure], start)
        counts = np.zeros(clusters)
        for _ in range(_POLISH):
            nearest = _nearest(points, centres[None])[0]
            counts = np.bincount(nearest, weights=flat, minlength=clusters).astype(np.float64)
            sums = np.stack(
                [np.bincount(nearest, weights=flat * x, minlength=clusters) for x in points.T],
                axis=1,
            )
            prior = spread * np.sqrt(np.bincount(nearest, minlength=clusters)) + 1e-9
            moved = (sums + prior[:, None] * centres) / (np.maximum(counts, 0.0) + prior)[:, None]
            centres = np.clip(moved, -1, 1)
        return centres, counts

    def _places(self, vectors: Floats) -> tuple[NDArray[np.intp], list[Floats]]:
        """The cell of each record, and its place in it along each axis: 0 to parts."""
        index = np.zeros(vectors.shape[1])
        places = []
        for row in vectors:
            along = (row + STEPS) / self._step
            cell = np.minimum(np.floor(along), self.cells - 1)
            places.append(np.rint((along - cell) * self._parts))
            index = index * self.cells + cell
        return index.astype(np.intp), places

    def _corners(self, products: Integers) -> Integers:
        """From sums of products of places to totals of nodes, one axis after the other."""
        size = self.size
        # Axis j of the data is bit j of the product: the last axis of the first group is axis 0.
        field = products.reshape((2,) * size + (self.cells,) * size)
        for axis in range(size):
            integers, place = (
                np.take(field, 0, axis=size - 1 - axis),
                np.take(field, 1, axis=size - 1 - axis),
            )
            # One axis of the first group is gone, those before it stay in place.
            field = self._along(integers, place, size - 1 + axis)
            field = np.expand_dims(field, size - 1 - axis)
        return np.ascontiguousarray(field.reshape(-1))

    def _along(self, integers: Integers, place: Integers, axis: int) -> Integers:
        """Low corners get parts - place, high corners place."""
        shape = list(integers.shape)
        shape[axis] += 1
        made = np.zeros(shape, dtype=np.int64)
        moved = np.moveaxis(made, axis, 0)
        moved[:-1] += np.moveaxis(self._parts * integers - place, axis, 0)
        moved[1:] += np.moveaxis(place, axis, 0)
        return made


def _halved(field: Floats) -> Floats:
    """The grid of every other node: a node between two gives half to each."""
    for axis in range(field.ndim):
        moved = np.moveaxis(field, axis, 0)
        coarse = moved[::2].copy()
        coarse[:-1] += moved[1::2] / 2
        coarse[1:] += moved[1::2] / 2
        field = np.moveaxis(coarse, 0, axis)
    return field


def _nearest(points: Floats, centres: Floats) -> NDArray[np.intp]:
    """For each set of centres the nearest of each point."""
    keys = np.square(centres).sum(axis=2)[:, None, :] - 2 * np.einsum(
        "pd,skd->spk", points, centres
    )
    return np.asarray(keys.argmin(axis=2), dtype=np.intp)


def _seeded(
    points: Floats, weights: Floats, clusters: int, generator: np.random.Generator
) -> Floats:
    """Starts by k-means++ on the weighted points, all at once; random places where there are
    none.
    """
    size = points.shape[1]
    chosen = generator.uniform(-1, 1, (_STARTS, clusters, size))
    if not len(points):
        return chosen
    distance = np.ones((_STARTS, len(points)))
    for number in range(clusters):
        upto = np.cumsum(weights * distance + 1e-300, axis=1)
        aim = generator.uniform(size=_STARTS) * upto[:, -1]
        picked = np.minimum((upto < aim[:, None]).sum(axis=1), len(points) - 1)
        chosen[:, number] = points[picked]
        apart = np.square(points[None] - chosen[:, number, None]).sum(axis=2)
        distance = apart if number == 0 else np.minimum(distance, apart)
    return chosen


def _weighted(points: Floats, weights: Floats, starts: Floats) -> Floats:
    """The best of k-means from all starts on the weighted points."""
    centres = starts
    if not len(points):
        return np.asarray(centres[-1])
    sets, clusters, _ = centres.shape
    offsets = np.arange(sets)[:, None] * clusters
    spread = np.broadcast_to(weights, (sets, len(points))).reshape(-1)
    for _ in range(_ITERATIONS):
        flat = (_nearest(points, centres) + offsets).reshape(-1)
        counts = np.bincount(flat, weights=spread, minlength=sets * clusters).reshape(
            sets, clusters
        )
        sums = np.stack(
            [
                np.bincount(flat, weights=spread * np.tile(x, sets), minlength=sets * clusters)
                for x in points.T
            ],
            axis=1,
        ).reshape(sets, clusters, -1)
        moved = np.where(
            counts[:, :, None] > 0, sums / np.maximum(counts, 1e-300)[:, :, None], centres
        )
        if np.array_equal(moved, centres):
            break
        centres = moved
    nearest = _nearest(points, centres)
    apart = np.square(points[None] - centres[np.arange(sets)[:, None], nearest]).sum(axis=2)
    return np.asarray(centres[int((apart @ weights).argmin())])
