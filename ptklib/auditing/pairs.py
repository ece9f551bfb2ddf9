"""The worst neighbouring pairs that can be found for a PTK: some records, and those with one unit
more.

Records are invented by the PTK from its own configuration (`Ptk.example`), or given as rows
invented elsewhere. A pair is a few records, or one record many times, or none, and a unit that is
added: a record of the example, one at a bound of its columns, or one far outside of them, as often
as a unit may have records. Candidates are tried on the real training, told the same answers on both
sides (`tape`), and the pair is taken whose inputs to the mechanisms are farthest apart in units of
their noise; and one more where those inputs differ by odd numbers, if the first has none: low bits
must have something to tell.

Reasons of `InvalidInput`: EXAMPLE_NEEDED, NO_RELEASE (nothing that a tape knows was released),
STATE_DIFFERS (two sides that are told the same come to different states: a state holds something of
the data that no release let out).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.auditing.likelihood import distance
from ptklib.auditing.tape import Tape, TapeEntry, record, replay
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.ptk import Arrays, Ptk

__all__ = [
    "Chain",
    "Link",
    "Pair",
    "TrainingBudget",
    "releases_gaussian",
    "training",
    "worst_pairs",
]

_ROWS, _SEED = 96, 7
_CANDIDATES, _FEW, _MANY = 14, 6, 30
_FINALISTS = 3
_OUTLIER = 1e6

# A release with its input on the data, and its input on the neighbour.
Link = tuple[TapeEntry, NDArray[Any]]


@dataclass(frozen=True)
class TrainingBudget:
    """The budget of a training."""

    epsilon: Number
    delta: Number
    records_per_unit: int = 1


@dataclass(frozen=True)
class Pair:
    """Records, and the unit that the neighbour has besides. Invented: reports may quote them."""

    records: pa.Table
    unit: pa.Table
    words: str

    def batches(self, side: int) -> list[pa.RecordBatch]:
        """Of the data (0) or of its neighbour (1)."""
        table = pa.concat_tables([self.records, self.unit]) if side else self.records
        return list(table.combine_chunks().to_batches())


class Chain:
    """Runs on both sides of a pair, and what their releases were given and told.

    ``run`` does the work on the data (0) or on its neighbour (1), and gives a state where there is
    one.
    """

    def __init__(self, run: Callable[[int], Arrays], words: str) -> None:
        """Runs each side once, to see how it releases. ``words`` are for the report."""
        self._run, self.words = run, words
        tape, arrays = record(lambda: run(0))
        other, changed = replay(tape, lambda: run(1))
        if not tape.entries:
            raise InvalidInput(
                "NO_RELEASE",
                "nothing that is known was released: such a training cannot be audited",
            )
        # Noise may be drawn first and the data added to it: then the state is what was released.
        same = all(
            np.array_equal(mine.given, theirs.given)
            for mine, theirs in zip(tape.entries, other.entries, strict=True)
        )
        told = _differ(arrays, changed)
        if told and not same:
            raise InvalidInput(
                "STATE_DIFFERS",
                "with the same releases a state must be the same whatever the data: something of "
                "it was not released",
            )
        self._array = _released_array(tape, arrays) if told else None
        self._exact = (
            [self._without_noise(tape, side) for side in (0, 1)] if self._array is not None else []
        )

    def links(self, side: int) -> list[Link]:
        """The releases of one run on a side, each with both inputs."""
        tape, arrays = record(lambda: self._run(side))
        if self._array is not None:
            return self._added_later(tape, arrays)
        other, _ = replay(tape, lambda: self._run(1 - side))
        pairs = zip(tape.entries, other.entries, strict=True)
        if side:
            return [
                (TapeEntry(mine.mechanism, theirs.given, mine.answer), mine.given)
                for mine, theirs in pairs
            ]
        return [(mine, theirs.given) for mine, theirs in pairs]

    def _without_noise(self, tape: Tape, side: int) -> NDArray[np.int64]:
        """The state of a run that is told its own inputs."""
        plain = Tape(
            [
                TapeEntry(entry.mechanism, entry.given, _Plain(entry.given))
                for entry in tape.entries
            ],
            tape.words,
        )
        _, arrays = replay(plain, lambda: self._run(side))
        return np.asarray(arrays[self._array or ""], dtype=np.int64).ravel()

    def _added_later(self, tape: Tape, arrays: Arrays) -> list[Link]:
        told = np.asarray(arrays[self._array or ""], dtype=np.int64).ravel()
        ends = np.cumsum([entry.given.size for entry in tape.entries])[:-1]
        parts = zip(
            tape.entries,
            *(np.split(numbers, ends) for numbers in (told, *self._exact)),
            strict=True,
        )
        return [
            (TapeEntry(entry.mechanism, first, _Plain(answer)), second)
            for entry, answer, first, second in parts
        ]


def training(ptk: Ptk, terms: TrainingBudget, pair: Pair) -> Chain:
    """Trainings of a PTK on both sides."""
    batches = [pair.batches(side) for side in (0, 1)]

    def run(side: int) -> Arrays:
        return ptk.train_dp(
            iter(batches[side]),
            epsilon=terms.epsilon,
            delta=terms.delta,
            records_per_unit=terms.records_per_unit,
        )

    return Chain(run, f"{pair.words}, and with {pair.unit.to_pylist()[0]} besides")


@dataclass(frozen=True)
class _Plain:
    """An answer that is these values."""

    values: NDArray[Any]


def worst_pairs(ptk: Ptk, terms: TrainingBudget, rows: pa.Table | None = None) -> list[Chain]:
    """The chains of the worst pair, and of one with odd differences where the worst has none.

    Reason: EXAMPLE_NEEDED.
    """
    rows = _invented(ptk, rows)
    units = _units(ptk, rows, terms.records_per_unit)
    few = rows.slice(0, _FEW)
    first = [training(ptk, terms, Pair(few, unit, f"{_FEW} invented records")) for unit in units]
    order = np.argsort([-_apart(chain) for chain in first], kind="stable")[:_FINALISTS]
    every = [first[place] for place in order]
    every += [
        training(ptk, terms, Pair(records, units[place], words))
        for place in order
        for records, words in _bases(rows)
    ]
    scores = [_apart(chain, runs=4) for chain in every]
    best = every[int(np.argmax(scores))]
    if _odd(best) == 1:
        return [best]
    odd = max([*every, *first], key=_odd)
    return [best, odd] if _odd(odd) > 0 else [best]


def releases_gaussian(ptk: Ptk, terms: TrainingBudget, rows: pa.Table | None = None) -> bool:
    """Whether any release of a training has Gaussian noise."""
    made = _invented(ptk, rows).slice(0, _FEW)
    chain = training(ptk, terms, Pair(made, made.slice(0, 1), ""))
    return any(_gaussian(entry) for entry, _ in chain.links(0))


def _invented(ptk: Ptk, rows: pa.Table | None) -> pa.Table:
    if rows is not None:
        return rows
    made = ptk.example(_ROWS, seed=_SEED)
    if made is None:
        raise InvalidInput(
            "EXAMPLE_NEEDED", f"kind {ptk.kind} invents no records: give some that are public"
        )
    return pa.Table.from_batches([made])


def _bases(rows: pa.Table) -> list[tuple[pa.Table, str]]:
    """None, and single records many times."""
    bases = [(rows.slice(0, 0), "no records")]
    single = [rows.slice(place, 1) for place in (0, rows.num_rows // 2)]
    return [
        *bases,
        *(
            (pa.concat_tables([row] * _MANY), f"one invented record {_MANY} times")
            for row in single
        ),
    ]


def _units(ptk: Ptk, rows: pa.Table, records: int) -> list[pa.Table]:
    """Units to add: spread over the rows, the least and the largest of each column, and
    outliers.
    """
    places = set(np.linspace(0, rows.num_rows - 1, _CANDIDATES // 2).astype(int).tolist())
    outliers = []
    for name in ptk.columns():
        kind = rows.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            continue
        values = rows.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
        places |= {int(np.nanargmin(values)), int(np.nanargmax(values))}
        if pa.types.is_floating(kind):
            at = rows.schema.get_field_index(name)
            outliers += [
                rows.slice(0, 1).set_column(at, name, pa.array([far], kind))
                for far in (-_OUTLIER, _OUTLIER)
            ]
    single = [rows.slice(place, 1) for place in sorted(places)] + outliers
    return [pa.concat_tables([row] * records) for row in single[: 2 * _CANDIDATES]]


def _apart(chain: Chain, runs: int = 1) -> float:
    """How far apart the inputs of all releases are, in the mean: epsilons add up, and squares of
    Gaussian ones.
    """
    distances = []
    for _ in range(runs):
        links = chain.links(0)
        plain = sum(distance(entry, other) for entry, other in links if not _gaussian(entry))
        square = sum(distance(entry, other) ** 2 for entry, other in links if _gaussian(entry))
        distances.append(plain + square**0.5)
    return float(np.mean(distances))


def _gaussian(entry: TapeEntry) -> bool:
    return isinstance(entry.mechanism, GaussianRelease)


def _odd(chain: Chain, runs: int = 8) -> float:
    """In which share of some runs any input of a release of numbers differs by an odd number, in
    its grain.
    """
    return sum(_any_odd(chain.links(0)) for _ in range(runs)) / runs


def _any_odd(links: list[Link]) -> bool:
    for entry, other in links:
        grain = getattr(entry.mechanism, "grain", 1)
        if not hasattr(entry.answer, "index") and np.any(((entry.given - other) // grain) % 2 == 1):
            return True
    return False


def _released_array(tape: Tape, arrays: Arrays) -> str:
    size = sum(entry.given.size for entry in tape.entries)
    for name in sorted(arrays):
        if arrays[name].dtype.kind == "i" and arrays[name].size == size:
            return name
    raise InvalidInput(
        "NO_RELEASE",
        "no array of the state is what was released: such a training cannot be audited",
    )


def _differ(arrays: Arrays, other: Arrays) -> bool:
    return any(not np.array_equal(arrays[name], other[name]) for name in arrays)
