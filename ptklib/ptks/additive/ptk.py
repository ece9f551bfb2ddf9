"""Additive models: the log odds of a class, or a number, as a sum of one term for each input,
learned with differential privacy.

What is released
----------------
A model has a base and, for each input, a shape: a term for each of its bins. It is boosted in
turn, as explainable boosting machines are (Nori, Caruana, Bu, Shen & Kulkarni 2021), with fewer and
larger steps (`boosting`). Released are, in this order:

=======  =======================================================  =====================
release  numbers                                                  of the budget
=======  =======================================================  =====================
whole    records by class                                         1/20
tables   records by class of each bin of each input               9/20, for all inputs
sums     of each bin of one input the sum of p - 1/2, p being     1/2, in equal parts for
         the prediction of a record; inputs in turn, R rounds     R F releases
=======  =======================================================  =====================

A regression target between public bounds is a whole number w of steps, 0 to D, and a record counts
as D-w towards the lower bound and w towards the upper one: two classes (`binned.target`).

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity:* a record weighs D in all (1 for classes). It moves
the whole by at most D in L1 and L2. It is in one bin of each of the F inputs, unknown being one, so
the tables move by at most F D in L1 and sqrt(F) D in L2. A round's sums of one input: a record is
in one bin and adds at most `link.REACH`, half a record, whatever its label: what is summed is its
prediction. r records: r times as much, in one bin at worst. *Adaptivity:* a prediction follows from
the codes of its record and from what was released before, in exact integers; so each release, given
those before, has the sensitivity above for any two neighbours, and adaptive composition holds. How
many releases there are and how much noise each has follows from the configuration and the budget
alone. A record without a label, or with one that is not listed, moves nothing. *Cost:* the sum of
all releases with Laplace noise, whose epsilons are parts of the whole. With Gaussian noise parts of
mu^2 sum to less than that of one `GaussianRelease`, whose price it is (composition of Gaussian DP
is adaptive); it needs a delta, and is far better over many releases. *Windows:* with ``previous``
boosting goes on from its model, and the state is the mean of all windows' models: post-processing.
That is not the model of all windows' records together, so states are not mergeable.

Rules
-----
* Two classes, or a number between bounds. For more classes see `forest`.
* An input that is null, NaN or not in its domain has the bin *unknown*, with a term of its own.
  `Number` clips, infinities too.
* A record whose label is null, NaN or not listed is not used, and has loss 0. Targets beyond the
  bounds are clipped.
* Features: ``prediction`` (the probability of the second class, or the target), ``score`` (its log
  odds, within 8; of classes alone) and a term for each input, in log odds or in the unit of the
  target. Base and terms sum to the score, where it is not at its ends.
* Loss: half the Brier score of the class, or the squared error over the squared range.

Reasons: those of `ptk`, `keys`, `fixed_point` and the mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Categories
from ptklib.columns.working import BATCH_RECORDS, LOSS_BYTES, PIECE_BYTES, domain_bytes
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, Given, PriceFirst
from ptklib.ptk import Arrays, Ptk, Tags, check_arrays
from ptklib.ptks.additive.boosting import Boosting
from ptklib.ptks.additive.budget import MAX_RELEASES, AdditiveMechanisms, Sizes, plan_of
from ptklib.ptks.additive.link import Link, Scores, link_of
from ptklib.ptks.additive.shapes import bin_names, input_names
from ptklib.ptks.binned.checks import check_counts, check_inputs, check_target
from ptklib.ptks.binned.codes import Feature, feature_codes
from ptklib.ptks.binned.learner import BinnedLearner
from ptklib.ptks.binned.records import pieces, read
from ptklib.ptks.binned.target import Steps

__all__ = ["Additive"]

Floats = NDArray[np.float64]

_MAX_INPUTS, _MAX_ROUNDS, _MAX_BINS = 256, 64, 2**14
# Codes as they are read and joined.
_COPIES = 3
# Of a record its label and score; of a bin what is known of it, for all variances of a walk.
_RECORD_BYTES, _BIN_BYTES = 32, 1024


@dataclass(frozen=True, kw_only=True)
class Additive(BinnedLearner, PriceFirst[AdditiveMechanisms], Ptk):
    """An additive model with differential privacy.

    See the module for what is released and the proof note.
    """

    kind: ClassVar[str] = "additive"
    tags: ClassVar[Tags] = Tags(supervised=True)

    inputs: tuple[Feature, ...]
    label: str
    classes: tuple[str, ...] | tuple[int, ...] | None = None  # two, of a classification
    lower: float | None = None  # bounds of the target of a regression
    upper: float | None = None
    mechanism: Literal["laplace", "gaussian"] = "laplace"
    rounds: int | None = None  # by mechanism and epsilon when None
    output: Literal["all", "prediction", "terms"] = "all"
    prefix: str | None = None  # of feature names; the label when None

    def check(self) -> None:
        """Inputs, and either two classes or bounds; releases and bins that are not too many."""
        check_inputs(self.inputs, self.label, most=_MAX_INPUTS)
        check_target(self.label, self.classes, self.lower, self.upper)
        if self.classes is not None:
            demand(
                len(self.classes) == 2,
                f"classes must be two, got {len(self.classes)}: take a forest for more",
                field="classes",
            )
        bins = sum(self._sizes)
        demand(
            bins <= _MAX_BINS,
            f"inputs must have at most {_MAX_BINS} bins in all, got {bins}",
            field="inputs",
        )
        if self.rounds is not None:
            demand(
                1 <= self.rounds <= _MAX_ROUNDS,
                f"rounds must be 1 to {_MAX_ROUNDS}, got {self.rounds}",
                field="rounds",
            )
            releases = self.rounds * len(self.inputs)
            demand(
                releases <= MAX_RELEASES,
                f"rounds and inputs must make at most {MAX_RELEASES} releases, got {releases}",
                field="rounds",
            )
        names = self.feature_names()
        demand(
            len(set(names)) == len(names),
            "inputs must have names of their own: a column is called like a part of another",
            field="inputs",
        )
        self._state_tags(needs_delta=self.mechanism == "gaussian")

    @cached_property
    def _link(self) -> Link:
        return link_of(self._target)

    @property
    def _width(self) -> float:
        """What a term of 1 is in the unit of features."""
        return self._target.upper - self._target.lower if isinstance(self._target, Steps) else 1.0

    def working_bytes(self, records: int) -> int:
        """Of a record its codes, a byte or two for each input, its label and its score."""
        width = 1 if max(self._sizes) <= BATCH_RECORDS >> 8 else 2
        record = _COPIES * len(self.inputs) * width + _RECORD_BYTES
        data_bytes = PIECE_BYTES + (record + LOSS_BYTES) * (BATCH_RECORDS + records)
        return data_bytes + _BIN_BYTES * sum(self._sizes) + domain_bytes(self.inputs)

    def shapes(self, arrays: Arrays) -> pa.Table:
        """The model to be looked at: ``input``, ``bin``, ``records`` (noisy, of the last window)
        and ``term``.

        Terms are in log odds, or in the unit of the target. Post-processing: free.
        """
        self.validate(arrays)
        columns: dict[str, list[Any]] = {"input": [], "bin": []}
        for name, input_ in zip(input_names(self.inputs), self.inputs, strict=True):
            bins = bin_names(input_)
            columns["input"] += [name] * len(bins)
            columns["bin"] += bins
        return pa.table(
            {
                **columns,
                "records": arrays["tables"].sum(axis=1) / self._target.weight,
                "term": self._terms(arrays),
            }
        )

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_prediction``, ``<prefix>_score`` of classes, and ``<prefix>_term_<input>``."""
        prefix = f"{self.label}_additive" if self.prefix is None else self.prefix
        whole = ("prediction",) if self.classes is None else ("prediction", "score")
        terms = tuple(f"term_{name}" for name in input_names(self.inputs))
        given = {"all": (*whole, *terms), "prediction": whole, "terms": terms}[self.output]
        return tuple(f"{prefix}_{name}" for name in given)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """All of them float64."""
        self.validate(arrays)
        names = self.feature_names()
        parts: list[list[Floats]] = [[] for _ in names]
        terms = self._split(self._terms(arrays))
        predictions, scores = self._answers()
        for piece in [table.slice(0, 0), *pieces(table)]:
            steps, codes = self._scores(arrays, piece)
            places = self._link.places(steps)
            made: list[Floats] = []
            if self.output != "terms":
                made.append(predictions[places])
                if self.classes is not None:
                    made.append(scores[places])
            if self.output != "prediction":
                made += [term[code] for term, code in zip(terms, codes, strict=True)]
            for part, column in zip(parts, made, strict=True):
                part.append(column)
        return pa.table([pa.array(np.concatenate(part)) for part in parts], names=list(names))

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; terms are within their limits."""
        bins = sum(self._sizes)
        wanted: dict[str, tuple[str, tuple[int, ...]]] = {
            "base": ("float64", (1,)),
            "shapes": ("float64", (bins,)),
            "tables": ("int64", (bins, 2)),
            "variance": ("float64", (1,)),
            "windows": ("int64", (1,)),
        }
        check_arrays(arrays, wanted, kind=self.kind)
        most = self._link.most / self._link.units
        if any(np.any(np.abs(arrays[name]) > most) for name in ("base", "shapes")):
            raise InvalidInput("PTK_MISMATCH", f"base and shapes must be within {most:g}")
        check_counts(arrays, "tables")

    def _mechanisms(self, budget: Budget) -> AdditiveMechanisms:
        sizes = Sizes(self.mechanism, self._target.weight, len(self.inputs), self.rounds)
        return plan_of(sizes, budget)

    def _train(self, given: Given[AdditiveMechanisms]) -> Arrays:
        """Noisy tables, and the base and shapes of a model. See the module."""
        codes, label = read(self.inputs, self._target, given.batches)
        ordered = tuple(not isinstance(input_, Categories) for input_ in self.inputs)
        boosting = Boosting(self._target, self._sizes, ordered, codes, label)
        return boosting.state(given.plan, given.previous, given.noise)

    def _predictor(self, arrays: Arrays) -> Callable[[pa.RecordBatch], Floats]:
        def shares(piece: pa.RecordBatch) -> Floats:
            scores, _ = self._scores(arrays, piece)
            upper = self._link.predictions[self._link.places(scores)]
            return np.stack([1 - upper, upper], axis=1)

        return shares

    def _split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """One array for each input."""
        return np.split(values, np.cumsum(self._sizes)[:-1])

    def _scores(
        self, arrays: Arrays, piece: pa.RecordBatch | pa.Table
    ) -> tuple[Scores, NDArray[Any]]:
        """The score of each record in steps, and its codes."""
        codes = feature_codes(self.inputs, piece)
        base, shapes = (self._link.steps(arrays[name]) for name in ("base", "shapes"))
        scores = np.full(piece.num_rows, base[0], dtype=np.int32)
        for shape, code in zip(self._split(shapes), codes, strict=True):
            scores += shape[code]
        return scores, codes

    def _terms(self, arrays: Arrays) -> Floats:
        """All terms in the unit of features."""
        return np.asarray(arrays["shapes"] * self._width, dtype=np.float64)

    def _answers(self) -> tuple[Floats, Floats]:
        """Predictions and scores at all places of the link."""
        link = self._link
        scores = np.arange(link.lower, link.upper + 1) / link.units
        if isinstance(self._target, Steps):
            return self._target.lower + self._width * link.predictions, scores
        return link.predictions, scores
