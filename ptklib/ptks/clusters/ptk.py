"""k-means: centres of several columns, the nearest one of a record, and the distances to all.

Two methods; ``method="auto"`` takes ``grid`` for up to 3 columns and ``lloyd`` for more:

* ``grid``: one release of a noisy grid of the box, and k-means on it (`clusters_grid`), after the
  extended uniform grid of Su, Cao, Li, Bertino & Jin (2016). States of several windows add up. The
  size of the grid grows with nodes^columns.
* ``lloyd``: a few of Lloyd's iterations, in each of which the counts and sums of all clusters are
  released (`clusters_lloyd`), as in DPLloyd (same paper), with less noise (`clusters_noise`) and
  with lost clusters set anew. A last state is where the iterations begin, and its counts and sums
  are added to those of every iteration; three iterations fewer are needed then.

Measured on blobs, taxi pick-ups and digits at epsilon 0.1, 0.5 and 1: in 2 columns the grid is best
at all of them, in 3 from 0.5 on (at 0.1 the two are near each other), and from 4 columns on Lloyd
is. Five iterations with growing shares of the budget are best or near it from 4 to 64 columns.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records. *Neighbours:* add or remove
one. *Sensitivity:* Lloyd: a record is in one cluster, whatever the others are (exact assignment by public centres), and
adds S = `STEPS` to its count and u to its sums, |u_j| <= S: it moves one row within a cube of S, so r records move rows
by at most r S together, in the sense of `CubeRelease`. With Gaussian noise the row (w, u) has the squared L2 norm w^2 +
limit, and r of them at most r times the norm. Grid: W for each record in L1 and L2, see `clusters_grid`. *Cost:* grid:
that of its one release. Lloyd: the iterations have shares of epsilon that sum to it, each release is chosen by public
numbers and earlier releases alone, so together they are epsilon-DP (basic composition); that is the price whatever the
number of iterations. With Gaussian noise shares of mu^2 sum to that of one `GaussianRelease`, whose price it is
(composition of Gaussian DP is adaptive). *State:* noisy totals, centres made of them, and the variance of the noise,
which is public. Random numbers for starts need no secrecy; they come from the same source.

Rules -----
* A record with a null or NaN in any column contributes nothing and has loss 0. Values outside the
  bounds are clipped.
* Features: ``cluster``, the index of the nearest centre, and ``distance_<index>``, the Euclidean
  distances to all centres in scaled units (`vectors`; half the width of a column is 1). A missing
  value is taken as the mean of all centres. Centres are in the order of their noisy counts, the
  largest first, or in that of the last state's centres they are nearest to.
* Loss: the squared distance to the nearest centre over the squared diagonal of the box.

Reasons: those of `ptk`, `vectors`, `clusters_noise` and `mechanisms.release`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.working import LOSS_BYTES, PIECE_BYTES
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, Given, PriceFirst, windows_after
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource, require_secure
from ptklib.ptk import Arrays, Batches, Ptk, Tags, Weighted
from ptklib.ptks.clusters.budget import ClusterReleases, Rows, grid_plan, rows_plan
from ptklib.ptks.clusters.grid import GRID_NODES, GRID_SETS, Grid
from ptklib.ptks.clusters.lloyd import Records, Step, iterate, spread_start
from ptklib.ptks.tables.noisy_totals import Release, check_totals
from ptklib.ptks.tables.weighted import added
from ptklib.ptks.vectors import PIECE_RECORDS, STEPS, Bounded, Scaling, Space, example_of, space_of
from ptklib.ptks.vectors.space import Floats

__all__ = ["MAX_CLUSTERS", "Clusters"]

MAX_CLUSTERS = 1024
MAX_ITERATIONS = 50
_ITERATIONS = 5
_GRID_COLUMNS = 3
_LARGEST_GRID = 2**20
# Of one number of a record, a distance in a piece, a number of a start, a node for each centre.
_NUMBER_BYTES, _DISTANCE_BYTES, _START_BYTES, _NODE_BYTES = 3, 32, 2048, 64

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Clusters(PriceFirst[ClusterReleases], Ptk):
    """k-means of numbers with public bounds. See the module for the methods and the proof note."""

    kind: ClassVar[str] = "clusters"
    tags: ClassVar[Tags] = Tags()

    values: tuple[Bounded, ...]
    clusters: int
    method: Literal["auto", "lloyd", "grid"] = "auto"
    mechanism: Literal["pure", "gaussian"] = "pure"
    scaling: Scaling = "range"
    iterations: int | None = None  # of lloyd; 5 when None
    nodes: int | None = (
        None  # of the grid, on each axis: a power of two plus one; by the number of columns when None
    )
    prefix: str | None = None  # of feature names; none when None

    def check(self) -> None:
        """Columns that make a space; a number of clusters; options of the method that is taken and
        of no other.
        """
        size = self._space.size
        demand(
            2 <= self.clusters <= MAX_CLUSTERS,
            f"clusters must be from 2 to {MAX_CLUSTERS}, got {self.clusters}",
            field="clusters",
        )
        if self._on_grid:
            demand(
                self.iterations is None,
                "iterations must be left out with the grid: it has none to pay for",
                field="iterations",
            )
            demand(
                size in GRID_NODES,
                f"values must be at most {max(GRID_NODES)} columns for a grid, got {size}",
                field="values",
            )
            nodes = self._nodes
            whole = nodes >= 3 and (nodes - 1) & (nodes - 2) == 0 and nodes - 1 <= 2 * STEPS
            demand(
                whole,
                f"nodes must be a power of two plus one, from 3 to {2 * STEPS + 1}, got {nodes}",
                field="nodes",
            )
            demand(
                nodes**size <= _LARGEST_GRID,
                f"nodes must make a grid of at most 2**20, got {nodes}**{size}",
                field="nodes",
            )
        else:
            demand(
                self.nodes is None,
                "nodes must be left out with lloyd: it has no grid",
                field="nodes",
            )
            most = f"iterations must be from 1 to {MAX_ITERATIONS}, got {self.iterations}"
            demand(
                self.iterations is None or 1 <= self.iterations <= MAX_ITERATIONS,
                most,
                field="iterations",
            )
        self._state_tags(
            needs_delta=self.mechanism == "gaussian",
            mergeable=self._on_grid,
            combines=self._on_grid,
        )

    @cached_property
    def _space(self) -> Space:
        return space_of(self.values, self.scaling)

    @cached_property
    def _on_grid(self) -> bool:
        """Chosen by the number of columns alone: the shape of a state must not depend on a
        budget.
        """
        return self.method == "grid" or (
            self.method == "auto" and len(self.values) <= _GRID_COLUMNS
        )

    @cached_property
    def _nodes(self) -> int:
        return GRID_NODES[self._space.size] if self.nodes is None else self.nodes

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self._space.size, self._nodes)

    @cached_property
    def _tops(self) -> Floats:
        """The largest scaled value of each column."""
        return np.asarray(self._space.reach / STEPS, dtype=np.float64)

    def columns(self) -> tuple[str, ...]:
        """In the order of the configuration."""
        return tuple(value.column for value in self.values)

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
    ) -> Arrays:
        """Grids times the weights of their states, and k-means on the sum.

        Totals of lloyd are of centres that differ, and do not add up.
        """
        if not self._on_grid:
            return super().combined(parts, previous=previous, noise=noise)
        made = added(
            self.validate,
            parts,
            totals="totals",
            variances="variance",
            unit=self._grid.weight,
            noise=noise,
        )
        before = None if previous is None else previous["centres"]
        deviation = math.sqrt(float(made["variance"][0]))
        return {
            **made,
            "centres": self._on(made["totals"], deviation, before, require_secure(noise)),
        }

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        self.validate(arrays)
        losses = [np.zeros(0)]
        for piece in self._space.pieces(batches):
            squares = _squares(piece.vectors / STEPS, arrays["centres"]).min(axis=0)
            losses.append(
                squares if piece.missing is None else np.where(piece.missing, 0.0, squares)
            )
        diagonal = 4 * float(np.square(self._tops).sum())
        return np.clip(np.concatenate(losses) / diagonal, 0.0, 1.0)

    def working_bytes(self, records: int) -> int:
        """Of a record its vector, two bytes a number, with lloyd; its loss alone with the grid,
        which reads in one pass.
        """
        size = self._space.size
        piece = PIECE_BYTES + _DISTANCE_BYTES * self.clusters * PIECE_RECORDS
        if self._on_grid:
            nodes = self._grid.total_nodes * (int(2**size) + self.clusters * GRID_SETS)
            return piece + _NODE_BYTES * nodes + LOSS_BYTES * records
        starts = _START_BYTES * self.clusters * (size + 1)
        return piece + starts + (_NUMBER_BYTES * size + LOSS_BYTES) * records

    def centres(self, arrays: Arrays) -> Floats:
        """The centres in the units of the columns, one row each."""
        self.validate(arrays)
        return np.asarray(
            self._space.middles + self._space.halves * arrays["centres"], dtype=np.float64
        )

    def feature_names(self) -> tuple[str, ...]:
        """``cluster``, then a distance for each centre."""
        prefix = f"{self.prefix}_" if self.prefix else ""
        return (
            f"{prefix}cluster",
            *(f"{prefix}distance_{number}" for number in range(self.clusters)),
        )

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """The nearest centre (int64) and all distances (float64).

        Rules for missing values: see the module.
        """
        self.validate(arrays)
        centres = arrays["centres"]
        squares = _squares(self._space.scaled(table, centres.mean(axis=0)), centres)
        nearest = squares.argmin(axis=0).astype(np.int64)
        return pa.Table.from_arrays(
            [pa.array(nearest), *(pa.array(np.sqrt(row)) for row in squares)],
            names=list(self.feature_names()),
        )

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; centres are in the box."""
        size = self._space.size
        shape = (self._grid.total_nodes,) if self._on_grid else (self.clusters, size + 1)
        also = {"centres": ("float64", (self.clusters, size)), "variance": ("float64", (1,))}
        check_totals(arrays, shape, kind=self.kind, also=also)
        if np.any(np.abs(arrays["centres"]) > self._tops + 1e-9) or arrays["variance"][0] < 0:
            raise InvalidInput(
                "PTK_MISMATCH", "centres must be in the box, and the variance not negative"
            )

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """A few clouds in the box, a quarter of the values on a bound."""
        generator = np.random.default_rng(seed)
        size = self._space.size
        middles = generator.uniform(-0.8, 0.8, (self.clusters, size))
        shares = middles[generator.integers(0, self.clusters, rows)] + generator.normal(
            0, 0.1, (rows, size)
        )
        return example_of(self.values, shares, generator)

    def _mechanisms(self, budget: Budget) -> ClusterReleases:
        if self._on_grid:
            return grid_plan(self.mechanism, self._grid.weight, budget)
        number = _ITERATIONS if self.iterations is None else self.iterations
        rows = Rows(self.mechanism, self._space.size, self._space.limit, number)
        return rows_plan(rows, budget)

    def _train(self, given: Given[ClusterReleases]) -> Arrays:
        """Centres from noisy totals: of one grid, or of iterations."""
        train = self._train_grid if self._on_grid else self._train_lloyd
        made = train(given, require_secure(given.noise))
        return {**made, "windows": windows_after(given.previous)}

    def _train_grid(self, given: Given[ClusterReleases], source: BitSource) -> Arrays:
        """One noisy grid, added to the previous one, and k-means on it."""
        grid, release, previous = self._grid, given.plan.grid, given.previous
        assert release is not None
        exact = grid.totals(self._space.pieces(given.batches))
        totals: Integers = release.release(exact, source=source).values
        variance = _variance(release) / grid.weight**2
        if previous is not None:
            totals = np.clip(totals + previous["totals"], -LIMIT, LIMIT)
            variance += float(previous["variance"][0])
        before = None if previous is None else previous["centres"]
        centres = self._on(totals, math.sqrt(variance), before, source)
        return {"centres": centres, "totals": totals, "variance": np.array([min(variance, 1e300)])}

    def _on(
        self, totals: Integers, deviation: float, before: Floats | None, source: BitSource
    ) -> Floats:
        """Centres of a noisy grid: the largest first, or in the order of those before."""
        grid = self._grid
        centres, counts = grid.centres_of(
            totals / grid.weight, deviation, self.clusters, before, _generator(source)
        )
        centres = np.clip(centres, -self._tops, self._tops)
        if before is not None:
            return _aligned(centres, before)
        return np.asarray(centres[np.argsort(-counts, kind="stable")])

    def _train_lloyd(self, given: Given[ClusterReleases], source: BitSource) -> Arrays:
        """Iterations from a start without data, or from the previous centres."""
        plan, previous = given.plan, given.previous
        steps: list[Step] = [
            (partial(row.noisy, source=source), row.variance)
            for row in (plan.first if previous is None else plan.later)
        ]
        records = Records.read(self._space.pieces(given.batches), self._space.size)
        generator = _generator(source)
        if previous is None:
            start = spread_start(self.clusters, self._tops, generator)
            known = np.zeros((self.clusters, self._space.size + 1), dtype=np.int64), 0.0
        else:
            start, known = previous["centres"], (previous["totals"], float(previous["variance"][0]))
        centres, totals, variance = iterate(records, start, steps, known, self._tops, generator)
        if previous is None:
            order = np.argsort(-totals[:, 0], kind="stable")
            centres, totals = centres[order], totals[order]
        totals = np.clip(totals, -LIMIT, LIMIT)
        return {"centres": centres, "totals": totals, "variance": np.array([min(variance, 1e300)])}


def _variance(release: Release) -> float:
    return (
        2 * float(release.scale) ** 2
        if isinstance(release, LaplaceRelease)
        else float(release.sigma) ** 2
    )


def _squares(vectors: Floats, centres: Floats) -> Floats:
    """Squared distances, a row per centre.

    Element by element: a product of matrices may round by where a record stands.
    """
    squares = np.zeros((len(centres), vectors.shape[1]))
    for row, centre in zip(squares, centres, strict=True):
        for vector, place in zip(vectors, centre, strict=True):
            row += np.square(vector - place)
    return squares


def _aligned(centres: Floats, previous: Floats) -> Floats:
    """The centres in the order of the previous ones they are nearest to, the nearest pair first."""
    aligned = np.empty_like(centres)
    left = np.square(centres[:, None] - previous[None]).sum(axis=2)
    for _ in range(len(centres)):
        mine, theirs = np.unravel_index(int(left.argmin()), left.shape)
        aligned[theirs] = centres[mine]
        left[mine, :] = left[:, theirs] = np.inf
    return aligned


def _generator(source: BitSource) -> np.random.Generator:
    """For starts, which need no secrecy; keyed by the noise, so that there is one source."""
    return np.random.default_rng([int(word) for word in source.words(2)])
