"""Forests of decision trees: leaves as features, class probabilities, or a regression, with
differential privacy.

What is released ---------------- A forest has complete binary trees over binned features
(`binned.codes`, `forest.trees`). Its splits are found in one of four ways, and then the leaves are
counted by class with noise in every cell, empty ones too. A regression target between public bounds
is a whole number w of steps, 0 to D, and a record counts as D-w towards the lower bound and w
towards the upper one: two classes, whose shares give the mean (see `statistics`).

=============  =====================================================================  ==============
``splits``     how                                                                    released before leaves
=============  =====================================================================  ==============
guided         noisy tables of each feature by class, one for all trees               the tables
exponential    noisy max of the purity of each split, level by level                  the splits
margin         the large margin mechanism on the same scores; needs a delta           the splits
random         from the public seed: no look at the data, all budget for the leaves   nothing
=============  =====================================================================  ==============

``auto`` is exponential for one tree and guided for more, which measured best
(docs/guides/ptks/forest.md). ``mechanism`` laplace puts **each record into one tree**, drawn with
the noise; gaussian (guided and random only; needs a delta) puts every record into every tree.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Trees:* a record's tree is drawn independently of all other
records. Given the draws of the records that neighbours share, the added record changes the input of
one tree; a mixture over draws of epsilon-DP mechanisms is epsilon-DP. *Sensitivity:* a record
weighs D (`binned.target`). Laplace: it is in one bin of each of the F inputs, unknown being one, so
the tables move by F D in L1; in one leaf of one tree, so the leaves move by D. Gaussian: the tables
move by at most sqrt(F) D and the leaves of T trees by sqrt(T) D in L2. r records: r times as much.
Splits by mechanisms: see `forest.splits`. A record without a label, or with one that is not listed,
moves nothing. Counts are exact. *Cost:* the sum of the releases that are made, ``split_share`` of
epsilon (of 1/sigma^2) for splits, in equal parts for the levels, the rest for leaves. *Windows:*
with ``previous`` the splits are kept, counts of leaves and tables are added: post-processing.
(Exponential and margin then choose nothing and spend less than their cost.)

Rules -----
* A feature that is null, NaN or not in its domain has the bin *unknown*: the last one, or, for
  categories in guided splits, where its classes place it. `Number` clips, infinities too.
* A record whose label is null, NaN or not listed is not used, and has loss 0. Targets beyond the
  bounds are clipped.
* Features: ``prediction`` (one column for each class, or the target), ``leaves`` (the leaf of each
  tree) or ``one_hot``.
* Loss: half the Brier score of the class, or the squared error over the squared range.

Reasons: those of `ptk`, `keys`, `fixed_point` and the mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import MAX_CELLS, Categories
from ptklib.columns.working import domain_bytes
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, Given, PriceFirst, windows_after
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Ptk, Tags, Weighted, check_arrays
from ptklib.ptks.binned.checks import check_counts, check_inputs, check_target
from ptklib.ptks.binned.codes import Feature, feature_codes
from ptklib.ptks.binned.learner import BinnedLearner
from ptklib.ptks.binned.noise import deviation_of
from ptklib.ptks.binned.records import count_tables, pieces, read
from ptklib.ptks.binned.target import Steps
from ptklib.ptks.forest.budget import ForestMechanisms, Shape, plan_of
from ptklib.ptks.forest.estimate import from_ancestors, from_expected
from ptklib.ptks.forest.guided import Tables, expected_leaves, grow, ranked_bins
from ptklib.ptks.forest.records import count_leaves, drawn_trees
from ptklib.ptks.forest.splits import HALF_RANGE_CLASSES, HALF_RANGE_STEPS, grow_privately
from ptklib.ptks.forest.trees import Integers, leaves_of, random_splits
from ptklib.ptks.forest.working import forest_bytes
from ptklib.ptks.tables.weighted import added

__all__ = ["Forest"]

Floats = NDArray[np.float64]
Wide = NDArray[np.int64]

_MAX_TREES, _MAX_DEPTH, _MAX_COLUMNS, _MAX_INPUTS = 1000, 16, 4096, 1024


@dataclass(frozen=True, kw_only=True)
class Forest(BinnedLearner, PriceFirst[ForestMechanisms], Ptk):
    """A random forest with differential privacy.

    See the module for what is released and the proof note.
    """

    kind: ClassVar[str] = "forest"
    tags: ClassVar[Tags] = Tags(supervised=True)

    inputs: tuple[Feature, ...]
    label: str
    classes: tuple[str, ...] | tuple[int, ...] | None = None  # of a classification
    lower: float | None = None  # bounds of the target of a regression
    upper: float | None = None
    trees: int = 10
    depth: int = 6
    splits: Literal["auto", "guided", "exponential", "margin", "random"] = "auto"
    mechanism: Literal["laplace", "gaussian"] = "laplace"
    output: Literal["prediction", "leaves", "one_hot"] = "prediction"
    features_per_split: int | None = (
        None  # of how many inputs a node takes the best split; a third when None
    )
    split_share: float = 0.5  # of the budget, for finding splits
    seed: int = 0  # public: which features a node looks at
    prefix: str | None = None  # of feature names; the label when None

    def check(self) -> None:
        """Inputs, and either classes or bounds; sizes that fit into memory; a mechanism that the
        splits can use.
        """
        check_inputs(self.inputs, self.label, most=_MAX_INPUTS)
        check_target(self.label, self.classes, self.lower, self.upper)
        demand(
            1 <= self.trees <= _MAX_TREES,
            f"trees must be 1 to {_MAX_TREES}, got {self.trees}",
            field="trees",
        )
        demand(
            1 <= self.depth <= _MAX_DEPTH,
            f"depth must be 1 to {_MAX_DEPTH}, got {self.depth}",
            field="depth",
        )
        cells = self.trees * 2**self.depth * self._target.channels
        demand(
            cells <= MAX_CELLS,
            f"trees, depth and classes must make at most {MAX_CELLS} cells, got {cells}",
            field="trees",
        )
        demand(
            0 < self.split_share < 1,
            f"split_share must be above 0 and below 1, got {self.split_share}",
            field="split_share",
        )
        demand(
            0 <= self.seed < 2**63, f"seed must be 0 to 2**63 - 1, got {self.seed}", field="seed"
        )
        if self.features_per_split is not None:
            within = 1 <= self.features_per_split <= len(self.inputs)
            demand(
                within,
                f"features_per_split must be 1 to {len(self.inputs)}, got "
                f"{self.features_per_split}",
                field="features_per_split",
            )
        if self.method == "guided":
            wide = len(self.inputs) * max(self._sizes) * self._target.channels
            demand(
                wide <= 16 * MAX_CELLS,
                f"inputs, bins and classes must make at most {16 * MAX_CELLS}, got {wide}",
                field="inputs",
            )
        if self.method in {"exponential", "margin"}:
            demand(
                self.mechanism == "laplace",
                f"mechanism must be laplace for splits {self.method!r}",
                field="mechanism",
            )
            wide = self.trees * 2 ** (self.depth - 1) * max(self._sizes) * self._target.channels
            demand(
                wide <= 16 * MAX_CELLS,
                f"splits {self.method!r} must weigh at most {16 * MAX_CELLS} cells, got {wide}",
                field="splits",
            )
        if self.output == "one_hot":
            made = self.trees * 2**self.depth
            demand(
                made <= _MAX_COLUMNS,
                f"one_hot must make at most {_MAX_COLUMNS} columns, got {made}",
                field="one_hot",
            )
        needs_delta = self.mechanism == "gaussian" or self.method == "margin"
        # Splits that came from a first window may not suit the next ones: only those of the seed
        # make a state of all windows.
        fixed = self.method == "random"
        self._state_tags(needs_delta=needs_delta, mergeable=fixed, combines=fixed)

    @property
    def method(self) -> str:
        """How splits are found; what ``auto`` stands for."""
        if self.splits != "auto":
            return self.splits
        return "exponential" if self.trees == 1 and self.mechanism == "laplace" else "guided"

    @property
    def _classes_key(self) -> tuple[Categories, ...]:
        """The classes as a domain that is searched."""
        return () if self.classes is None else (Categories(column=self.label, values=self.classes),)

    @property
    def _tried(self) -> int:
        """Features that a node chooses from."""
        if self.features_per_split is not None:
            return self.features_per_split
        third = max(2, math.ceil(len(self.inputs) / 3))
        return len(self.inputs) if self.trees == 1 else min(third, len(self.inputs))

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
    ) -> Arrays:
        """Leaves times the weights of their states, where the seed has made all splits."""
        if self.method != "random":
            return super().combined(parts, previous=previous, noise=noise)
        return added(
            self.validate,
            parts,
            totals="leaves",
            variances="variance",
            unit=self._target.weight,
            noise=noise,
        )

    def working_bytes(self, records: int) -> int:
        """Of a record its codes, a byte or two for each input, three times at most; besides cells,
        nodes and candidates.
        """
        return forest_bytes(
            self.method,
            self._sizes,
            channels=self._target.channels,
            trees=self.trees,
            depth=self.depth,
            tried=self._tried,
            records=records,
        ) + domain_bytes((*self.inputs, *self._classes_key))

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_<class>`` or the prefix alone, ``<prefix>_tree<t>``, or
        ``<prefix>_tree<t>_leaf<l>``.
        """
        prefix = f"{self.label}_forest" if self.prefix is None else self.prefix
        if self.output == "leaves":
            return tuple(f"{prefix}_tree{tree}" for tree in range(self.trees))
        if self.output == "one_hot":
            leaves = range(2**self.depth)
            return tuple(
                f"{prefix}_tree{tree}_leaf{leaf}" for tree in range(self.trees) for leaf in leaves
            )
        return (
            (prefix,)
            if self.classes is None
            else tuple(f"{prefix}_{class_}" for class_ in self.classes)
        )

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """Probabilities or the target as float64, leaves as int32, one-hot leaves as uint8."""
        self.validate(arrays)
        shares = self._shares(arrays) if self.output == "prediction" else None
        parts: list[list[NDArray[Any]]] = [[] for _ in self.feature_names()]
        for piece in [table.slice(0, 0), *pieces(table, self._rows_at_once)]:
            for part, column in zip(
                parts, self._feature_columns(arrays, shares, piece), strict=True
            ):
                part.append(column)
        return pa.table(
            [pa.array(np.concatenate(part)) for part in parts], names=list(self.feature_names())
        )

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; splits are splits, counts and
        windows in range.
        """
        inner, bins = 2**self.depth - 1, sum(self._sizes)
        wanted: dict[str, tuple[str, tuple[int, ...]]] = {
            "leaves": ("int64", (self.trees, inner + 1, self._target.channels)),
            "variance": ("float64", (1,)),
            "windows": ("int64", (1,)),
        }
        if self.method != "random":
            wanted["splits"] = ("int32", (self.trees, inner, 2))
        if self.method == "guided":
            wanted |= {
                "tables": ("int64", (bins, self._target.channels)),
                "order": ("int32", (bins,)),
            }
        check_arrays(arrays, wanted, kind=self.kind)
        check_counts(arrays, "leaves", "tables")
        if "splits" in arrays:
            feature, threshold = arrays["splits"][..., 0], arrays["splits"][..., 1]
            known = np.all((feature >= 0) & (feature < len(self.inputs)))
            if not (known and np.all((threshold >= 0) & (threshold < max(self._sizes)))):
                raise InvalidInput(
                    "PTK_MISMATCH", "splits must name inputs and bins of this configuration"
                )
        if "order" in arrays:
            for rank in np.split(arrays["order"], np.cumsum(self._sizes)[:-1]):
                if not np.array_equal(np.sort(rank), np.arange(len(rank))):
                    raise InvalidInput("PTK_MISMATCH", "order must rank the bins of each input")

    def _mechanisms(self, budget: Budget) -> ForestMechanisms:
        target = self._target
        shape = Shape(
            self.method,
            self.mechanism,
            weight=target.weight,
            half_range=HALF_RANGE_STEPS if self.classes is None else HALF_RANGE_CLASSES,
            features=len(self.inputs),
            trees=self.trees,
            depth=self.depth,
            share=self.split_share,
        )
        return plan_of(shape, budget)

    def _train(self, given: Given[ForestMechanisms]) -> Arrays:
        """Splits and noisy leaf counts; with a previous state its splits and the counts of both.

        See the module.
        """
        plan, previous, noise = given.plan, given.previous, given.noise
        target = self._target
        codes, label = read(self.inputs, target, given.batches)
        tree = (
            drawn_trees(codes.shape[1], self.trees, noise) if self.mechanism == "laplace" else None
        )
        made: dict[str, NDArray[Any]] = {}
        if plan.tables is not None:
            counts = count_tables(target, self._sizes, codes, label)
            noisy = plan.tables.release(counts, source=noise).values
            made["tables"] = noisy if previous is None else _added(noisy, previous["tables"])
        if previous is not None:
            made |= {name: previous[name] for name in ("splits", "order") if name in previous}
        elif plan.tables is not None:
            made |= self._guided(made["tables"], deviation_of(plan.tables))
        elif plan.levels and tree is not None:
            options: dict[str, Any] = {
                "trees": self.trees,
                "count": self._tried,
                "seed": self.seed,
                "noise": noise,
            }
            made["splits"] = grow_privately(
                plan.levels, target, codes, label, tree, sizes=np.array(self._sizes), **options
            )
        counts = count_leaves(target, self._splits(made), self._ranked(made, codes), label, tree)
        leaves = plan.leaves.release(counts, source=noise).values
        deviation = deviation_of(plan.leaves) / self._target.weight
        made["leaves"] = leaves if previous is None else _added(leaves, previous["leaves"])
        made["variance"] = np.array([deviation**2]) + (
            0.0 if previous is None else previous["variance"]
        )
        made["windows"] = windows_after(previous)
        return made

    def _guided(self, noisy: Wide, deviation: float) -> dict[str, NDArray[Any]]:
        """Order of bins and splits from noisy tables."""
        counts, spread = noisy / self._target.weight, deviation / self._target.weight
        order = ranked_bins(counts, self._sizes, self._sorted, spread)
        splits = grow(
            Tables.of(counts, self._sizes, order),
            trees=self.trees,
            depth=self.depth,
            sizes=np.array(self._sizes),
            count=self._tried,
            seed=self.seed,
            deviation=spread,
        )
        return {"order": order, "splits": splits}

    def _splits(self, arrays: Arrays) -> Integers:
        if self.method == "random":
            return random_splits(self.seed, self.trees, self.depth, self._sizes)
        return arrays["splits"]

    def _ranked(self, arrays: Arrays, codes: NDArray[Any]) -> NDArray[Any]:
        """Codes in the order in which the splits compare them."""
        if "order" not in arrays:
            return codes
        made = codes.copy()
        ranks = np.split(arrays["order"], np.cumsum(self._sizes)[:-1])
        for place in self._sorted:
            made[place] = ranks[place].astype(codes.dtype)[codes[place]]
        return made

    @property
    def _sorted(self) -> tuple[int, ...]:
        """Inputs whose bins have no order of their own."""
        return tuple(
            place for place, input_ in enumerate(self.inputs) if isinstance(input_, Categories)
        )

    def _shares(self, arrays: Arrays) -> Floats:
        """The shares of the classes in each leaf: [trees, leaves, classes]."""
        counts = arrays["leaves"] / self._target.weight
        deviation = float(np.sqrt(arrays["variance"][0]))
        if self.method != "guided":
            return from_ancestors(counts, deviation)
        tables = Tables.of(arrays["tables"] / self._target.weight, self._sizes, arrays["order"])
        return from_expected(
            counts, deviation, expected_leaves(tables, arrays["splits"], np.array(self._sizes))
        )

    def _predictor(self, arrays: Arrays) -> Callable[[pa.RecordBatch], Floats]:
        shares = self._shares(arrays)
        return lambda piece: self._answers(arrays, shares, piece)

    def _answers(self, arrays: Arrays, shares: Floats, piece: pa.RecordBatch | pa.Table) -> Floats:
        """The mean of the trees' shares for each record: [records, classes]."""
        codes = self._ranked(arrays, feature_codes(self.inputs, piece))
        splits = self._splits(arrays)
        total = np.zeros((piece.num_rows, self._target.channels))
        for tree in range(self.trees):
            total += shares[tree, leaves_of(splits, codes, tree)]
        return total / self.trees

    def _feature_columns(
        self, arrays: Arrays, shares: Floats | None, piece: pa.RecordBatch | pa.Table
    ) -> Iterator[NDArray[Any]]:
        if shares is not None:
            answer = self._answers(arrays, shares, piece)
            if isinstance(self._target, Steps):
                yield self._target.value(answer)
            else:
                yield from answer.T
            return
        codes = self._ranked(arrays, feature_codes(self.inputs, piece))
        for tree in range(self.trees):
            leaf = leaves_of(self._splits(arrays), codes, tree)
            if self.output == "leaves":
                yield leaf
            else:
                yield from (leaf == np.arange(2**self.depth)[:, None]).astype(np.uint8)


def _added(wide: Wide, other: Wide) -> Wide:
    # Each is at most LIMIT = 2**60, so the sum fits.
    return np.asarray(np.clip(wide + other, -LIMIT, LIMIT), dtype=np.int64)
