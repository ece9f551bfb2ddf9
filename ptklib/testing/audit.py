"""Catch a mechanism that is less private than it claims: a lower confidence bound on its epsilon,
from its outputs.

The contract
------------
`audit_epsilon` runs the mechanism many times on two neighbouring inputs. On the first half of the runs (``choosing``) it looks
for the event that tells the inputs apart best; on the others, which it has not looked at, it bounds the probability of that
event from below on one input and from above on the other (Clopper-Pearson, exact). If the mechanism is
(epsilon, delta)-DP, then P[event | data] <= e^epsilon P[event | neighbour] + delta, so::

    epsilon >= ln((low - delta) / high)      with probability at least ``confidence``.

The bound is a *lower* bound: above the claim it proves a bug, below the claim it proves nothing.
How far below it stays for a right mechanism says how strong the audit is: a test should also show
that the audit catches the mechanism with half of its noise (`AuditResult.contradicts`).

A mechanism is a function ``(data, count) -> outputs`` that gives ``count`` independent runs at
once; `one_at_a_time` makes one of a function that runs once. Outputs are a sequence of hashable
outcomes (events: single outcomes and likelihood sets of them), or a one-dimensional numeric array,
whose events are

* all threshold sets ``<= t`` and ``>= t``, in the far tails one outcome at a time: rare outcomes
  may tell most;
* single values and likelihood sets of them; where there are very many values, only those that come
  often;
* residues: sets of outcomes by their remainder modulo `MODULI`, in units of the grid that they lie
  on. Noise that leaves the lowest bit of a total alone moves every threshold as it should, and
  tells that bit exactly. The grid is ``grid`` where the caller knows it, 1 for whole numbers, else
  the largest power of two of which all outputs are multiples: floats are whole numbers in that
  unit, and their low bits are looked at like those of whole numbers.

A vector release is audited through a projection, such as a sum: post-processing, so the bound
stands.

Example::

    result = audit_epsilon(lambda data, count: data + laplace(count, scale=1), 0, 1, count=200_000)
    assert not result.contradicts(1.0)

Reasons of `InvalidInput`: COUNT_TOO_SMALL, CONFIDENCE_INVALID, CHOOSING_INVALID, DELTA_INVALID,
OUTPUTS_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ptklib.errors import InvalidInput

__all__ = [
    "MIN_COUNT",
    "MODULI",
    "AuditResult",
    "audit_epsilon",
    "most_telling_residue",
    "one_at_a_time",
    "whole_units",
]

MIN_COUNT = 100
MODULI = (2, 3, 4, 5, 8, 10, 16)
# Thresholds beyond this many are thinned to quantiles; values beyond it are not tried one by one.
_MAX_EVENTS = 1024
# Outcomes at each end that are never thinned, and values that are tried where there are too many to
# try all.
_FAR, _OFTEN = 64, 256
# Floats that span more bits than this have no grid that could tell anything.
_MAX_BITS = 62
# Of the runs, to choose a column and a modulus by.
_CHOOSING_RESIDUES = 0.25
# Stricter than this no choice of an event is: with few runs only the event that always happens
# would be left.
_LUCK = 1e-5

Data = TypeVar("Data")
Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Outputs = NDArray[Any] | Sequence[Hashable]


@dataclass(frozen=True)
class AuditResult:
    """``lower_bound`` on epsilon at ``confidence``, and the ``event`` that shows it, in words."""

    lower_bound: float
    event: str
    confidence: float
    delta: float
    count: int

    def contradicts(self, epsilon: float) -> bool:
        """True if the mechanism cannot be (epsilon, delta)-DP, at the confidence of the audit."""
        return self.lower_bound > epsilon


@dataclass(frozen=True)
class _Event:
    """Which outcomes are in it, and which input makes it likely."""

    holds: NDArray[np.bool_]
    likely_on_data: bool
    words: str


@dataclass(frozen=True)
class _Outcomes:
    """All outcomes that were seen.

    ``ordered``: numbers, in rising order; ``units``: as whole numbers of their grid.
    """

    labels: Sequence[Any]
    ordered: bool = False
    units: Codes | None = None


def one_at_a_time(run: Callable[[Data], Hashable]) -> Callable[[Data, int], Sequence[Hashable]]:
    """A mechanism for `audit_epsilon` from a function that runs once on the data."""

    def runs(data: Data, count: int) -> Sequence[Hashable]:
        return [run(data) for _ in range(count)]

    return runs


def audit_epsilon(
    mechanism: Callable[[Data, int], Outputs],
    data: Data,
    neighbour: Data,
    *,
    count: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    grid: float | None = None,
    choosing: float = 0.5,
) -> AuditResult:
    """A lower confidence bound on the epsilon of ``mechanism`` from ``count`` runs on each of two
    neighbouring inputs.

    Both directions are tried. The bound is 0 where nothing was found. Raise ``confidence``
    (0.999999 costs little) where a false accusation would be a nuisance, as in a test suite.
    ``grid`` is what numeric outputs are multiples of. A share ``choosing`` of the runs chooses the
    event: less than half where few events are good ones, as with a likelihood ratio.
    """
    if count < MIN_COUNT:
        raise InvalidInput("COUNT_TOO_SMALL", f"count must be at least {MIN_COUNT}, got {count}")
    if not 0.5 <= confidence < 1:
        raise InvalidInput(
            "CONFIDENCE_INVALID", f"confidence must be in [0.5, 1), got {confidence}"
        )
    if not 0.05 <= choosing <= 0.95:
        raise InvalidInput("CHOOSING_INVALID", f"choosing must be in [0.05, 0.95], got {choosing}")
    if not 0 <= delta < 1:
        raise InvalidInput("DELTA_INVALID", f"delta must be in [0, 1), got {delta}")
    codes_data, codes_neighbour, seen = _encode(
        mechanism(data, count), mechanism(neighbour, count), count, grid
    )
    half = int(count * choosing)
    tail = (1 - confidence) / 2
    event = _best_event(codes_data[:half], codes_neighbour[:half], seen, delta, tail)
    hits_data, hits_neighbour = (
        event.holds[codes_data[half:]].sum(),
        event.holds[codes_neighbour[half:]].sum(),
    )
    if not event.likely_on_data:
        hits_data, hits_neighbour = hits_neighbour, hits_data
    bound = _lower_bounds(
        np.array([hits_data]), np.array([hits_neighbour]), count - half, delta, tail
    )[0]
    return AuditResult(max(0.0, float(bound)), event.words, confidence, delta, count)


def _lower_bounds(likely: Codes, rare: Codes, size: int, delta: float, tail: float) -> Floats:
    """ln((low - delta)/high) for each pair of hits out of ``size``; -inf where the difference is
    not positive.
    """
    low = np.where(likely > 0, stats.beta.ppf(tail, np.maximum(likely, 1), size - likely + 1), 0.0)
    high = np.where(
        rare < size, stats.beta.ppf(1 - tail, rare + 1, np.maximum(size - rare, 1)), 1.0
    )
    excess = low - delta
    return np.where(excess > 0, np.log(np.where(excess > 0, excess, 1.0) / high), -math.inf)


def whole_units(values: NDArray[Any], grid: float | None = None) -> Codes | None:
    """Numbers as whole multiples of their grid (see the module); None where there is no grid that
    could tell anything.
    """
    if grid is not None:
        units = np.rint(np.asarray(values, dtype=np.float64) / grid)
        return units.astype(np.int64) if np.abs(units).max(initial=0.0) < 2.0**_MAX_BITS else None
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    whole, exponent = (mantissa * 2.0**53).astype(np.int64), exponent - 53
    some = whole != 0
    if not some.any():
        return np.zeros(len(values), dtype=np.int64)
    # The exponent of the lowest bit that is set in any of them.
    lowest = (whole & -whole).astype(np.float64)
    least = int((exponent + np.log2(np.where(some, lowest, 1.0)).astype(np.int64))[some].min())
    if int((exponent + 53)[some].max()) - least > _MAX_BITS:
        return None
    shift = np.where(some, exponent - least, 0)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return np.asarray(np.where(some, (whole << left) >> right, 0), dtype=np.int64)


def most_telling_residue(
    data: NDArray[Any], neighbour: NDArray[Any], *, delta: float = 0.0, confidence: float = 0.95
) -> AuditResult:
    """The audit of the column and modulus whose remainders tell most; runs are rows, and some of
    them choose.

    Unit, neighbours: those of the runs. Columns that are the same in all runs tell nothing by
    themselves and are left out.
    """
    part = int(len(data) * _CHOOSING_RESIDUES)
    best: tuple[float, int, int] = (-1.0, 0, MODULI[0])
    for column in range(data.shape[1]):
        units = whole_units(np.concatenate([data[:, column], neighbour[:, column]]))
        if units is None or units.min() == units.max():
            continue
        for modulus in MODULI:
            left = np.mod(units, modulus)
            shares = [
                np.bincount(residues[:part], minlength=modulus) / part
                for residues in np.split(left, [len(data)])
            ]
            best = max(best, (float(np.abs(shares[0] - shares[1]).sum()), column, modulus))
    _, column, modulus = best
    units = whole_units(np.concatenate([data[:, column], neighbour[:, column]]))
    left = np.zeros(2 * len(data), dtype=np.int64) if units is None else np.mod(units, modulus)
    rest = [residues[part:] for residues in np.split(left, [len(data)])]
    audit_result = audit_epsilon(
        lambda side, _: rest[side],
        0,
        1,
        count=len(rest[0]),
        delta=delta,
        confidence=confidence,
        choosing=0.2,
    )
    return replace(audit_result, event=f"number {column} mod {modulus}: {audit_result.event}")


def _best_event(
    data: Codes, neighbour: Codes, seen: _Outcomes, delta: float, tail: float
) -> _Event:
    """The event with the largest bound on the runs given, over all families and both directions."""
    # Likelihood sets are ordered on one part and cut on another, and the level is stricter than
    # that of the result: otherwise the luckiest of many small events would win over a large one and
    # show little on fresh runs.
    outcomes = len(seen.labels)
    part, tail = data.size // 2, max(tail / outcomes, _LUCK)
    size = data.size - part
    first = [np.bincount(codes[:part], minlength=outcomes) for codes in (data, neighbour)]
    hits = [np.bincount(codes[part:], minlength=outcomes) for codes in (data, neighbour)]
    best, best_bound = _Event(np.ones(outcomes, dtype=np.bool_), True, "any output"), -math.inf
    for side, (own, other) in (("data", (0, 1)), ("neighbour", (1, 0))):
        for family in _families(first[own], first[other], seen):
            likely, rare = (
                np.bincount(
                    family.classes, weights=hits[each].astype(np.float64), minlength=family.count
                )
                for each in (own, other)
            )
            bounds = _lower_bounds(family.events(likely), family.events(rare), size, delta, tail)
            if bounds.max() > best_bound:
                best_bound, place = float(bounds.max()), int(np.argmax(bounds))
                best = _Event(
                    family.holds(place), side == "data", f"{family.words(place)} on {side}"
                )
    return best


@dataclass(frozen=True)
class _Family:
    """Events that are made of classes of outcomes: single ones, or the beginnings of an order of
    them.

    ``classes`` has the class of each outcome; those in no class that matters have the last one,
    which ``order`` leaves out.
    """

    classes: Codes
    count: int
    order: Codes
    ends: Codes | None
    words: Callable[[int], str]

    def events(self, hits: NDArray[Any]) -> Codes:
        """The hits of each event from those of each class."""
        ordered = hits[self.order]
        return np.asarray(
            ordered if self.ends is None else np.cumsum(ordered)[self.ends], dtype=np.int64
        )

    def holds(self, place: int) -> NDArray[np.bool_]:
        """Which outcomes are in the event of that place."""
        chosen = np.zeros(self.count, dtype=np.bool_)
        chosen[self.order[place] if self.ends is None else self.order[: self.ends[place] + 1]] = (
            True
        )
        held: NDArray[np.bool_] = chosen[self.classes]
        return held


def _families(likely: Codes, rare: Codes, seen: _Outcomes) -> Iterator[_Family]:
    """The events to try, from runs that are used for nothing else."""
    labels, everything = seen.labels, np.arange(len(seen.labels))
    few = len(labels) <= _MAX_EVENTS
    if seen.ordered:
        ends = _ends(likely + rare)
        yield _Family(
            everything, len(labels), everything, ends, lambda at: f"output <= {labels[ends[at]]!r}"
        )
        back = _ends((likely + rare)[::-1])
        last = len(labels) - 1
        yield _Family(
            everything,
            len(labels),
            everything[::-1],
            back,
            lambda at: f"output >= {labels[last - back[at]]!r}",
        )
    # Only outcomes seen on these runs: the choice must not know anything about the other runs.
    known = np.flatnonzero(likely + rare)
    if not few and seen.ordered:
        known = known[np.argsort(-(likely + rare)[known], kind="stable")[:_OFTEN]]
        known = known[(likely + rare)[known] > 1]
    if len(known):
        by_ratio = _by_ratio(likely, rare, known)
        top = labels[by_ratio[0]]
        cut = _ends((likely + rare)[by_ratio])
        yield _Family(
            everything,
            len(labels),
            by_ratio,
            cut,
            lambda at: f"output in {cut[at] + 1} likely outcomes, such as {top!r},",
        )
        if len(known) <= _MAX_EVENTS:
            yield _Family(
                everything, len(labels), known, None, lambda at: f"output == {labels[known[at]]!r}"
            )
    if seen.units is not None:
        for modulus in MODULI:
            classes = np.mod(seen.units, modulus)
            counts = [
                np.bincount(classes, weights=hits, minlength=modulus).astype(np.int64)
                for hits in (likely, rare)
            ]
            order = _by_ratio(counts[0], counts[1], np.arange(modulus))
            yield _Family(classes, modulus, order, np.arange(modulus), _residue(order, modulus))


def _residue(order: Codes, modulus: int) -> Callable[[int], str]:
    return lambda at: f"output mod {modulus} in {sorted(order[: at + 1].tolist())}"


def _by_ratio(likely: Codes, rare: Codes, known: Codes) -> Codes:
    """The likelier first."""
    return np.asarray(
        known[np.argsort(-(likely[known] + 0.5) / (rare[known] + 0.5), kind="stable")],
        dtype=np.int64,
    )


def _ends(hits: Codes) -> Codes:
    """Where the beginnings to try end: everywhere, or at even quantiles, and everywhere at the
    ends, if those are too many.
    """
    if hits.size <= _MAX_EVENTS:
        return np.arange(hits.size)
    total = np.cumsum(hits)
    even = np.searchsorted(total, np.linspace(1, total[-1], _MAX_EVENTS))
    return np.unique(
        np.concatenate(
            [
                np.arange(_FAR),
                np.minimum(even, hits.size - 1),
                np.arange(hits.size - _FAR, hits.size),
            ]
        )
    )


def _encode(
    data: Outputs, neighbour: Outputs, count: int, grid: float | None
) -> tuple[Codes, Codes, _Outcomes]:
    """Outcomes as codes 0, 1, ...; numeric outcomes in their order, so that threshold sets are
    beginnings and ends.
    """
    for outputs in (data, neighbour):
        if len(outputs) != count:
            raise InvalidInput(
                "OUTPUTS_INVALID", f"the mechanism must give {count} outputs, got {len(outputs)}"
            )
    if isinstance(data, np.ndarray) and isinstance(neighbour, np.ndarray):
        if data.ndim != 1 or neighbour.ndim != 1 or data.dtype.kind not in "iufb":
            raise InvalidInput(
                "OUTPUTS_INVALID",
                "array outputs must be numeric with one axis; project vectors first",
            )
        return _encode_numbers(data, neighbour, count, grid)
    table: dict[Hashable, int] = {}
    codes = [
        table.setdefault(outcome, len(table))
        for outputs in (data, neighbour)
        for outcome in outputs
    ]
    both = np.array(codes, dtype=np.int64)
    return both[:count], both[count:], _Outcomes(list(table))


def _encode_numbers(
    data: NDArray[Any], neighbour: NDArray[Any], count: int, grid: float | None
) -> tuple[Codes, Codes, _Outcomes]:
    pooled = np.concatenate([data, neighbour])
    if pooled.dtype.kind == "f" and not np.all(np.isfinite(pooled)):
        raise InvalidInput("OUTPUTS_INVALID", "numeric outputs must be finite")
    values, codes = np.unique(pooled, return_inverse=True)
    codes = codes.ravel()
    return codes[:count], codes[count:], _Outcomes(values.tolist(), True, whole_units(values, grid))
