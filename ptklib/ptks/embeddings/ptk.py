"""Embeddings of users and items from ratings or counts: differentially private Poisson
factorization.

A record is one event: a user, an item, and a value between public bounds. The PTK learns a vector
of K numbers that are not negative for each user and item, such that their product is the value to
expect: the means of hierarchical Poisson factorization (Gopalan, Hofman & Blei 2015), activities
included. `factorization` has the model, `training` the algorithm.

Why these steps. Noise goes to every number of every user and item, whoever took part, so what
counts is how few sums are released and how small one record is in them. Noisy variational steps on
the plain statistics (all of y phi), whether on all records or on Poisson samples of them, do worse
at epsilon 1 than the mean of all values (docs/guides/ptks/embeddings.md has the numbers). Here a
record enters by its *residual*, activities cost two sums, tastes a few, all on all records, and
what cannot be told from noise is shrunk to the mean. Tastes are bought where there are records and
epsilon enough (`budget`), and tested on records they were not learned from (`trust`).

**Proof note.** *Unit:* one event (``records_per_unit=1``), or a user with at most r =
``records_per_unit`` events, for item vectors alone; the column of ``users`` must be what tells one
unit from another (`unit_column`). *Neighbours:* add or remove one. *Sensitivity and cost:* those of
the releases of `releases`; sums are exact integers. Everything else in the state is post-processing
of them (`training`). *Windows:* sums of the last state are added and its features are the first
ones, which is post-processing; its records are others. States from before `trust` and `interplay`
are read as they were, and learned from (`reading`).

**Users.** A vector of each user cannot be private at user level: it would have to be the same
whatever the user did. So ``publish="both"`` is for event level and refuses records_per_unit above
1; ``publish="items"`` publishes items alone, at either level, and `project` makes the vector of a
user from her own history, wherever that is known.

Rules -----
* A record whose user or item is null or not in its domain, or whose value is null or NaN,
  contributes nothing and has loss 0. Values outside the bounds, infinities too, are clipped.
* At user level several events of one user with one item count as one, with the mean of their
  values.
* An unknown user or item has the vector of the average one. With ``publish="items"`` every user of
  `loss` and `features` is average: a loss must not depend on other records.
* Loss: the squared distance of the value to the predicted one, over the squared range.

Reasons: those of `ptk`, `keys` and `mechanisms.release`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Categories, IntegerRange
from ptklib.columns.numbers import number_column, steps_between
from ptklib.columns.working import PIECE_BYTES, domain_bytes
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, Given, PriceFirst, windows_after
from ptklib.ptk import UNITS, Arrays, Batches, Ptk, Tags, batches_of, check_arrays, column_of
from ptklib.ptks.embeddings.budget import MOST_PRODUCTS, checked
from ptklib.ptks.embeddings.events import Columns, EventTable
from ptklib.ptks.embeddings.reading import (
    activity_of,
    best_guess,
    item_vectors,
    level_of,
    own_activity,
    own_tastes,
    spread_of,
    user_vectors,
)
from ptklib.ptks.embeddings.releases import STEPS, EmbeddingReleases, plan_of
from ptklib.ptks.embeddings.training import Training

__all__ = ["MAX_NUMBERS", "Embeddings"]

# Numbers of the vectors of a state; more is a mistake.
MAX_NUMBERS = 2**25
# Bounds of values, numbers of a state and numbers of vectors: far beyond what training makes, and
# products stay finite.
_MOST_VALUE, _MOST_STATE, _MOST_VECTOR = 1e100, 2.0**60, 1e150
_ROWS_AT_ONCE = 1 << 15
# Of one number of a vector, and of one record.
_NUMBER_BYTES, _EVENT_BYTES = 160, 160
# Of the product of two features that a row met.
_PRODUCT_BYTES = 32

Domain = Categories | IntegerRange
Feature = Literal["user", "item", "product", "rate"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Embeddings(PriceFirst[EmbeddingReleases], Ptk):
    """Vectors of users and items.

    See the module for what is released, the proof note and the rules.
    """

    kind: ClassVar[str] = "embeddings"
    tags: ClassVar[Tags] = Tags(mergeable=True, needs_delta=True)

    users: Domain
    items: Domain
    value: str
    lower: float
    upper: float
    publish: Literal["both", "items"] = "both"
    factors: int = 8
    rounds: int = 2  # of turns between users and items
    share: float = 0.65  # of the budget that goes to activities
    clip: float = 0.4  # of residuals, as a share of the range
    tastes: Literal["worthwhile", "always"] = "worthwhile"  # when budget goes to tastes
    give: tuple[Feature, ...] | None = None  # what `features` gives; everything published when None
    prefix: str | None = None  # of feature names; the columns when None

    def check(self) -> None:
        """Bounds of values that a Poisson model can have, sizes that make sense, features that are
        published.
        """
        demand(
            self.users.column != self.items.column,
            "users and items must be in different columns",
            field="users",
        )
        fits = 0 <= self.lower < self.upper <= _MOST_VALUE
        demand(
            fits,
            f"bounds must be 0 <= lower < upper <= {_MOST_VALUE:g}, got {self.lower} and "
            f"{self.upper}",
            field="lower",
        )
        demand(
            2 <= self.factors <= 256,
            f"factors must be 2 to 256, got {self.factors}",
            field="factors",
        )
        numbers = (self.users.size + self.items.size) * self.factors
        demand(
            numbers <= MAX_NUMBERS,
            f"(users + items) * factors must be at most {MAX_NUMBERS}, got {numbers}",
            field="factors",
        )
        demand(
            1 <= self.rounds <= 100, f"rounds must be 1 to 100, got {self.rounds}", field="rounds"
        )
        demand(
            0.01 <= self.share <= 0.99,
            f"share must be from 0.01 to 0.99, got {self.share}",
            field="share",
        )
        demand(
            0.01 <= self.clip <= 1, f"clip must be from 0.01 to 1, got {self.clip}", field="clip"
        )
        wanted = self._given
        demand(
            0 < len(wanted) == len(set(wanted)),
            "give must be one or more features, none of them twice",
            field="give",
        )
        hidden = self.publish == "items" and bool({"user", "product"} & set(wanted))
        demand(
            not hidden,
            "give must be of 'item' and 'rate' where only items are published",
            field="give",
        )
        self._state_tags(units=("event",) if self.publish == "both" else UNITS)

    @property
    def _given(self) -> tuple[Feature, ...]:
        if self.give is not None:
            return self.give
        return ("user", "item", "rate") if self.publish == "both" else ("item", "rate")

    @property
    def _width(self) -> float:
        return self.upper - self.lower

    @property
    def _floor(self) -> float:
        """The lower bound in ranges."""
        return self.lower / self._width

    def columns(self) -> tuple[str, ...]:
        """User, item, value."""
        return tuple(dict.fromkeys((self.users.column, self.items.column, self.value)))

    def feature_columns(self) -> tuple[str, ...]:
        """User and item, where users are published; else the item."""
        return (
            (self.users.column, self.items.column)
            if self.publish == "both"
            else (self.items.column,)
        )

    def unit_column(self) -> str:
        """That of users: at user level only records of one user with one item count as one."""
        return self.users.column

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        users, items = self._vectors(arrays)
        losses = [np.zeros(0)]
        for known, columns in self._coded(batches):
            rates = _products(users[columns[0]], items[columns[1]])
            expected = np.clip((rates - self.lower) / self._width, 0.0, 1.0)
            losses.append(np.where(known, np.square(columns[2] / STEPS - expected), 0.0))
        return np.concatenate(losses)

    def working_bytes(self, records: int) -> int:
        """All vectors and products of features, several times over; of a record its user, item and
        value, sorted, and its residual.
        """
        sizes, tastes = self.users.size + self.items.size + 2, self.factors - 1
        products = tastes * (tastes + 1) // 2 if tastes <= MOST_PRODUCTS else 0
        fixed = (
            PIECE_BYTES
            + domain_bytes((self.users, self.items))
            + sizes * (_NUMBER_BYTES * (self.factors + 4) + _PRODUCT_BYTES * products)
        )
        return fixed + _EVENT_BYTES * records

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_<feature>_<place>``, and ``<prefix>_rate``."""
        columns = f"{self.users.column}_{self.items.column}"
        prefix = columns if self.prefix is None else self.prefix
        plain: list[str] = []
        for name in self._given:
            plain += (
                [name] if name == "rate" else [f"{name}_{place}" for place in range(self.factors)]
            )
        return tuple(f"{prefix}_{name}" if prefix else name for name in plain)

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """The vectors of each row's user and item, their products and the predicted value, as
        float64.
        """
        users, items = self._vectors(arrays)
        item = items[self.items.codes(column_of(table, self.items.column))]
        if self.publish == "both":
            user = users[self.users.codes(column_of(table, self.users.column))]
        else:
            user = np.broadcast_to(users[-1], item.shape)
        rates = np.clip(_products(user, item), self.lower, self.upper)
        blocks = {"user": user, "item": item, "product": user * item, "rate": rates[:, None]}
        columns = [
            pa.array(block)
            for name in self._given
            for block in np.ascontiguousarray(blocks[name].T)
        ]
        return pa.Table.from_arrays(columns, names=list(self.feature_names()))

    def project(self, arrays: Arrays, items: pa.Array, values: pa.Array) -> Floats:
        """The vectors of users from their own histories: one list of items and one of values for
        each.

        Post-processing of the state, and raw in the histories: for whoever may see those. Unknown
        items and missing values are left out; an empty history gives the average user.
        """
        self.validate(arrays)
        lists, numbers = (
            _flat(column, name) for column, name in ((items, "items"), (values, "values"))
        )
        if len(items) != len(values) or not np.array_equal(lists[1], numbers[1]):
            raise InvalidInput(
                "COLUMN_TYPE", "items and values must be lists of the same lengths, got others"
            )
        batch = pa.RecordBatch.from_arrays(
            [lists[0], numbers[0]], names=[self.items.column, self.value]
        )
        codes, steps, known = self._valued(batch)
        rows = np.repeat(np.arange(len(items)), lists[1])[known]
        codes, shares = codes[known], steps[known] / STEPS
        level, tastes = level_of(arrays, self._floor), arrays["item_tastes"][codes]
        counts = np.bincount(rows, minlength=len(items)).astype(np.float64)
        expected = level + activity_of(arrays, "item", self._floor)[codes]
        above = own_activity(_sums(rows, shares + self._floor - expected, len(items)), counts)
        left = np.clip(
            shares + self._floor - expected * (1 + above / level)[rows], -self.clip, self.clip
        )
        sums = np.zeros((len(items), self.factors - 1))
        np.add.at(sums, rows, left[:, None] * tastes)
        own = own_tastes(sums, counts, arrays)
        return user_vectors(arrays, above / level, own)

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; weights are not negative, numbers
        in range.
        """
        shapes = self._shapes()
        # States from before these were measured.
        for added in (("trust", "interplay"), ("values",)):
            if added[0] not in arrays:
                shapes = {name: shapes[name] for name in shapes if name not in added}
        wanted = {
            name: ("int64" if name == "windows" else "float64", shape)
            for name, shape in shapes.items()
        }
        check_arrays(arrays, wanted, kind=self.kind)
        weights = [
            arrays[name][..., -1] for name in shapes if name == "level" or name.endswith("activity")
        ]
        weights += [arrays[name] for name in shapes if name.endswith("weights")]
        weights += [arrays[name][2:] for name in shapes if name in ("trust", "interplay")]
        if any(np.any(weight < 0) for weight in weights) or not 1 <= arrays["windows"][0] <= 2**60:
            raise InvalidInput(
                "PTK_MISMATCH", "weights must not be negative and windows at least 1"
            )
        if any(np.abs(arrays[name]).max() > _MOST_STATE for name in shapes if name != "windows"):
            raise InvalidInput("PTK_MISMATCH", "numbers of a state must be within 2**60")

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Uniform users and items, values of two tastes between the bounds, some of them on a
        bound.
        """
        generator = np.random.default_rng(seed)
        columns = {key.column: key.example(rows, generator) for key in (self.users, self.items)}
        kinds = [key.codes(columns[key.column]) % 2 for key in (self.users, self.items)]
        share = np.clip(
            np.where(kinds[0] == kinds[1], 0.57, 0.43) + generator.normal(0, 0.15, rows), 0.0, 1.0
        )
        columns[self.value] = pa.array(self.lower + self._width * share)
        return pa.RecordBatch.from_pydict(columns)

    def _mechanisms(self, budget: Budget) -> EmbeddingReleases:
        plan = plan_of(
            budget,
            share=self.share,
            rounds=self.rounds,
            always=self.tastes == "always",
        )
        return checked(plan)

    def _train(self, given: Given[EmbeddingReleases]) -> Arrays:
        """Noisy sums and the features they were measured on. Cost and proof: see the module."""
        plan = given.plan
        if self.publish == "both" and plan.records > 1:
            raise InvalidInput(
                "CONFIG_INVALID",
                "publish must be 'items' at user level, got 'both': a vector of each user cannot "
                "be private there, for it "
                "would have to be the same whatever the user did; `project` makes it from her own "
                "history",
                field="publish",
            )
        make = EventTable.of if plan.records == 1 else EventTable.pairs
        events = make(self._known(given.batches), self.users.size, self.items.size)
        training = Training(events, plan, self.clip, self.factors - 1, self._floor, given.noise)
        state = training.run(given.previous)
        state["windows"] = windows_after(given.previous)
        return {name: state[name] for name in self._shapes()}

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays of a state."""
        shapes: dict[str, tuple[int, ...]] = {
            "interplay": (3,),
            "level": (2,),
            "spread": (2,),
            "trust": (3,),
            "values": (2,),
            "windows": (1,),
        }
        sides = (
            {"item": self.items.size, "user": self.users.size}
            if self.publish == "both"
            else {"item": self.items.size}
        )
        for side, size in sides.items():
            shapes |= {
                f"{side}_counts": (size,),
                f"{side}_activity": (size, 2),
                f"{side}_weights": (size,),
            }
            shapes[f"{side}_sums"] = (size, self.factors - 1)
        return {**shapes, "item_tastes": (self.items.size, self.factors - 1)}

    def _vectors(self, arrays: Arrays) -> tuple[Floats, Floats]:
        """Of users and items, with a row more for unknown ones."""
        self.validate(arrays)
        level = level_of(arrays, self._floor)
        above = activity_of(arrays, "item", self._floor) / level
        items = item_vectors(arrays, above, arrays["item_tastes"] / level)
        items = np.vstack([items, np.eye(1, self.factors)]) * (level * self._width)
        items = np.clip(items, -_MOST_VECTOR, _MOST_VECTOR)
        if self.publish == "items":
            return np.eye(1, self.factors).repeat(self.users.size + 1, axis=0), items
        tastes = best_guess(arrays["user_sums"], arrays["user_weights"], spread_of(arrays))
        above = activity_of(arrays, "user", self._floor) / level
        users = np.clip(user_vectors(arrays, above, tastes), -_MOST_VECTOR, _MOST_VECTOR)
        return np.vstack([users, np.eye(1, self.factors)]), items

    def _known(self, batches: Batches) -> Iterator[Columns]:
        """The records that contribute."""
        for known, (users, items, steps) in self._coded(batches):
            yield (
                (users, items, steps) if known.all() else (users[known], items[known], steps[known])
            )

    def _coded(self, batches: Batches) -> Iterator[tuple[NDArray[np.bool_], Columns]]:
        """Which records are known, and the codes and the value in steps of all, a piece that fits a
        cache at a time.
        """
        for batch in batches_of(batches):
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                piece = batch.slice(start, _ROWS_AT_ONCE)
                users = self.users.codes(column_of(piece, self.users.column))
                items, steps, known = self._valued(piece)
                known &= users < self.users.size
                yield known, (users, items, steps)

    def _valued(self, batch: pa.RecordBatch) -> tuple[NDArray[Any], Floats, NDArray[np.bool_]]:
        """Items and values in steps, each clipped and rounded by itself, and which records have
        both.
        """
        items = self.items.codes(column_of(batch, self.items.column))
        numbers = number_column(batch, self.value)
        steps, bad = steps_between(numbers, self.lower, self.upper, STEPS)
        known = items < self.items.size
        if bad is not None:
            known &= ~bad
        steps[~known] = 0.0
        return items, steps, known


def _flat(lists: pa.Array, name: str) -> tuple[pa.Array, NDArray[np.int64]]:
    """The elements of all lists, one after the other, and their lengths."""
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise InvalidInput("COLUMN_TYPE", f"{name} must be lists, got {lists.type}")
    lengths = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    return lists.flatten(), lengths


def _products(users: Floats, items: Floats) -> Floats:
    """The product of each pair of vectors, one number at a time: other ways of summing may round by
    where a record stands.
    """
    products = np.zeros(len(items))
    for user, item in zip(users.T, items.T, strict=True):
        products += user * item
    return products


def _sums(rows: NDArray[Any], values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(rows, weights=values, minlength=size), dtype=np.float64)
