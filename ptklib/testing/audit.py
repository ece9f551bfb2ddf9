"""Catch a mechanism that is less private than it claims: a lower confidence bound on its epsilon, from its outputs.

The contract
------------
`audit_epsilon` runs the mechanism many times on two neighbouring inputs. On the first half of the runs it looks for the
event that tells the inputs apart best; on the other half, which it has not looked at, it bounds the probability of that
event from below on one input and from above on the other (Clopper-Pearson, exact). If the mechanism is
(epsilon, delta)-DP, then P[event | data] <= e^epsilon P[event | neighbour] + delta, so::

    epsilon >= ln((low - delta) / high)      with probability at least ``confidence``.

The bound is a *lower* bound: above the claim it proves a bug, below the claim it proves nothing. How far below it stays
for a right mechanism says how strong the audit is: a test should also show that the audit catches the mechanism with
half of its noise (`AuditResult.contradicts`).

A mechanism is a function ``(data, count) -> outputs`` that gives ``count`` independent runs at once; `one_at_a_time`
makes one of a function that runs once. Outputs are a one-dimensional numeric array (events: single values if there are
few, likelihood sets of them, and all threshold sets ``<= t`` and ``>= t``), or a sequence of hashable outcomes (events:
single outcomes and likelihood sets). A vector release is audited through a projection, such as a sum: post-processing,
so the bound stands.

Example::

    result = audit_epsilon(lambda data, count: data + laplace(count, scale=1), 0, 1, count=200_000)
    assert not result.contradicts(1.0)

Reasons of `InvalidInput`: COUNT_TOO_SMALL, CONFIDENCE_INVALID, DELTA_INVALID, OUTPUTS_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ptklib.errors import InvalidInput

__all__ = ["MIN_COUNT", "AuditResult", "audit_epsilon", "one_at_a_time"]

MIN_COUNT = 100
# Thresholds beyond this many are thinned to quantiles; values beyond it are not tried one by one.
_MAX_EVENTS = 1024

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
    """A set of outcome codes, and which input makes it likely."""

    codes: frozenset[int]
    likely_on_data: bool
    words: str


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
) -> AuditResult:
    """A lower confidence bound on the epsilon of ``mechanism`` from ``count`` runs on each of two neighbouring inputs.

    Both directions are tried. The bound is 0 where nothing was found. Raise ``confidence`` (0.999999 costs little)
    where a false accusation would be a nuisance, as in a test suite.
    """
    if count < MIN_COUNT:
        raise InvalidInput("COUNT_TOO_SMALL", f"count must be at least {MIN_COUNT}, got {count}")
    if not 0.5 <= confidence < 1:
        raise InvalidInput("CONFIDENCE_INVALID", f"confidence must be in [0.5, 1), got {confidence}")
    if not 0 <= delta < 1:
        raise InvalidInput("DELTA_INVALID", f"delta must be in [0, 1), got {delta}")
    codes_data, codes_neighbour, labels, ordered = _encode(mechanism(data, count), mechanism(neighbour, count), count)
    half = count // 2
    tail = (1 - confidence) / 2
    event = _best_event(codes_data[:half], codes_neighbour[:half], labels, ordered, delta, tail)
    members = np.fromiter(event.codes, dtype=np.int64)
    hits_data = np.isin(codes_data[half:], members).sum()
    hits_neighbour = np.isin(codes_neighbour[half:], members).sum()
    if not event.likely_on_data:
        hits_data, hits_neighbour = hits_neighbour, hits_data
    bound = _lower_bounds(np.array([hits_data]), np.array([hits_neighbour]), count - half, delta, tail)[0]
    return AuditResult(max(0.0, float(bound)), event.words, confidence, delta, count)


def _lower_bounds(likely: Codes, rare: Codes, size: int, delta: float, tail: float) -> Floats:
    """ln((low - delta)/high) for each pair of hits out of ``size``; -inf where the difference is not positive."""
    low = np.where(likely > 0, stats.beta.ppf(tail, np.maximum(likely, 1), size - likely + 1), 0.0)
    high = np.where(rare < size, stats.beta.ppf(1 - tail, rare + 1, np.maximum(size - rare, 1)), 1.0)
    excess = low - delta
    return np.where(excess > 0, np.log(np.where(excess > 0, excess, 1.0) / high), -math.inf)


def _best_event(data: Codes, neighbour: Codes, labels: list[Any], ordered: bool, delta: float, tail: float) -> _Event:
    """The event with the largest bound on the runs given, over all families and both directions."""
    # Likelihood sets are ordered on one part and cut on another, and the level is stricter than that of the result:
    # otherwise the luckiest of many small events would win over a large one and show little on fresh runs.
    part, tail = data.size // 2, tail / len(labels)
    size = data.size - part
    first = [np.bincount(codes[:part], minlength=len(labels)) for codes in (data, neighbour)]
    hits = [np.bincount(codes[part:], minlength=len(labels)) for codes in (data, neighbour)]
    best, best_bound = _Event(frozenset(range(len(labels))), True, "any output"), -math.inf
    for side, (one, other) in (("data", (0, 1)), ("neighbour", (1, 0))):
        likely, rare = hits[one], hits[other]
        for order, words in _orders(first[one], first[other], labels, ordered):
            ends = _ends(likely[order] + rare[order])
            bounds = _lower_bounds(np.cumsum(likely[order])[ends], np.cumsum(rare[order])[ends], size, delta, tail)
            if bounds.max() > best_bound:
                best_bound, last = float(bounds.max()), int(ends[np.argmax(bounds)])
                best = _Event(frozenset(order[: last + 1].tolist()), side == "data", f"{words(last)} on {side}")
        if len(labels) <= _MAX_EVENTS:
            bounds = _lower_bounds(likely, rare, size, delta, tail)
            if bounds.max() > best_bound:
                best_bound, top = float(bounds.max()), int(np.argmax(bounds))
                best = _Event(frozenset([top]), side == "data", f"output == {labels[top]!r} on {side}")
    return best


def _ends(hits: Codes) -> Codes:
    """Where the beginnings to try end: everywhere, or at even quantiles if that would be too many."""
    if hits.size <= _MAX_EVENTS:
        return np.arange(hits.size)
    total = np.cumsum(hits)
    return np.unique(np.searchsorted(total, np.linspace(1, total[-1], _MAX_EVENTS)))


def _orders(likely: Codes, rare: Codes, labels: list[Any], ordered: bool) -> list[tuple[Codes, Callable[[int], str]]]:
    """Orders of the outcomes whose beginnings are the events to try."""
    everything = np.arange(len(labels))
    orders: list[tuple[Codes, Callable[[int], str]]] = []
    if ordered:
        orders.append((everything, lambda last: f"output <= {labels[last]!r}"))
        orders.append((everything[::-1], lambda last: f"output >= {labels[len(labels) - 1 - last]!r}"))
    if len(labels) <= _MAX_EVENTS or not ordered:
        # Only outcomes seen on these runs: the choice must not know anything about the other runs.
        seen = np.flatnonzero(likely + rare)
        by_ratio = seen[np.argsort(-(likely[seen] + 0.5) / (rare[seen] + 0.5), kind="stable")]
        first = labels[by_ratio[0]]
        orders.append((by_ratio, lambda last: f"output in {last + 1} likely outcomes, such as {first!r},"))
    return orders


def _encode(data: Outputs, neighbour: Outputs, count: int) -> tuple[Codes, Codes, list[Any], bool]:
    """Outcomes as codes 0, 1, ...; numeric outcomes in their order, so that threshold sets are beginnings and ends."""
    for outputs in (data, neighbour):
        if len(outputs) != count:
            raise InvalidInput("OUTPUTS_INVALID", f"the mechanism must give {count} outputs, got {len(outputs)}")
    if isinstance(data, np.ndarray) and isinstance(neighbour, np.ndarray):
        if data.ndim != 1 or neighbour.ndim != 1 or data.dtype.kind not in "iufb":
            raise InvalidInput("OUTPUTS_INVALID", "array outputs must be numeric with one axis; project vectors first")
        return _encode_numbers(data, neighbour, count)
    table: dict[Hashable, int] = {}
    codes = [table.setdefault(outcome, len(table)) for outputs in (data, neighbour) for outcome in outputs]
    both = np.array(codes, dtype=np.int64)
    return both[:count], both[count:], list(table), False


def _encode_numbers(data: NDArray[Any], neighbour: NDArray[Any], count: int) -> tuple[Codes, Codes, list[Any], bool]:
    pooled = np.concatenate([data, neighbour])
    if pooled.dtype.kind == "f" and not np.all(np.isfinite(pooled)):
        raise InvalidInput("OUTPUTS_INVALID", "numeric outputs must be finite")
    values, codes = np.unique(pooled, return_inverse=True)
    codes = codes.ravel()
    return codes[:count], codes[count:], values.tolist(), True
