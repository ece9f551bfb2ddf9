"""Checks of a PTK that guard the promise of privacy. ``tests/ptks/broken.py`` has a PTK for each
but `audit_user`.

No check proves privacy. They catch the mistakes that are made: no noise, too little of it, noise
from elsewhere, keys or raw values in the state, and a price that is not the one paid.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.testing.audit import AuditResult, audit_epsilon, most_telling_residue
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.testing.ptk_cases import Case, Check, CheckSkipped, demand, same_arrays

__all__ = ["PRIVACY_CHECKS"]

_LEVELS = ("0.1", "0.5", "1", "2")
# With these numbers the audit catches half of the noise or half of the price, even when it is split
# over two numbers. A right PTK is accused only if both confidence bounds fail together, which is
# far rarer than either.
_LEVEL = 2
_RUNS = 4000
_CONFIDENCE = 1 - 1e-4
# The first of these runs decide whether the others are needed. With half of the noise, or of the
# price, they show more than this share of the claim (all of 2,800 tries, of one to four numbers);
# right Laplace noise does at most three times in ten, right Gaussian noise in none of 800.
_FIRST_RUNS, _FIRST_CONFIDENCE, _FIRST_CHOOSING, _SUSPECT = 1500, 0.8, 0.4, 0.9
_LOUD = 100
# Of the check of remainders: one that is told exactly shows an epsilon of 1.5 or more in so many
# runs, at delta 1/20 too.
_SMALL_LEVEL = Fraction(1, 2)
_RESIDUE_RUNS, _RESIDUE_RECORDS = 240, 6
_SURE = 1 - 1e-6


def _cost_before_data(case: Case) -> None:
    """Priced without data, the same every time, more for more, never above what was asked."""
    spent = [_spent(case, level) for level in _LEVELS]
    demand(
        all(0 < epsilon < math.inf for epsilon in spent),
        f"cost at {_LEVELS} must be positive and finite, got epsilons {spent}",
    )
    demand(
        all(a < b for a, b in pairwise(spent)),
        f"cost must rise with epsilon, got epsilons {spent} at {_LEVELS}",
    )
    for level, epsilon in zip(_LEVELS, spent, strict=True):
        demand(
            epsilon <= float(level) * (1 + 1e-9),
            f"cost({level}, {float(case.delta)}) must be at most that, got epsilon {epsilon:.6g}: "
            "the caller budgets what it asked",
        )
    for units in (1, 5):
        again = case.ptk.cost(1, case.delta, records_per_unit=units).epsilon(case.delta)
        demand(
            again <= 1 + 1e-9,
            f"cost at records_per_unit={units} must be at most epsilon 1, got {again:.6g}",
        )


def _cost_ignores_data(case: Case) -> None:
    """The same before and after training, whatever the data was."""
    before = _priced(case)
    for name, batches in (
        ("the data", case.batches),
        ("no data", [case.empty]),
        ("other data", case.unseen()),
    ):
        case.train(batches)
        demand(
            _priced(case) == before,
            f"cost must not depend on the data seen, it changed after training on {name}",
        )


def _noise_in_every_number(case: Case) -> None:
    """Two runs differ, and no number follows the data without following the noise."""
    third, whole = case.data.slice(0, case.data.num_rows // 3), case.data
    # Much noise and enough runs: a number with noise is the same in all of them once in a billion
    # times.
    runs = [case.coordinates(data, 8, epsilon="0.1") for data in (third, whole)]
    demand(
        any(np.any(np.ptp(each, axis=0) > 0) for each in runs),
        "two trainings on the same data must differ: the state has no noise",
    )
    still = [np.ptp(each, axis=0) == 0 for each in runs]
    exposed = still[0] & still[1] & (runs[0][0] != runs[1][0])
    demand(
        not np.any(exposed),
        f"{int(exposed.sum())} numbers of the state follow the data and have no noise: "
        f"{_where(case, exposed)}",
    )


def _noise_from_the_source(case: Case) -> None:
    """With the same planted source two runs are equal: there is no other source."""
    if "PYTEST_CURRENT_TEST" not in os.environ:
        raise CheckSkipped(
            "planted noise is accepted only while a pytest test runs: call check_ptk in a test"
        )
    with planted_noise():
        runs = [case.train(noise=SeededSource(seed)) for seed in (7, 7, 8)]
    demand(
        same_arrays(runs[0], runs[1]),
        "two trainings with the same planted source must be equal: noise comes from somewhere else "
        "too, such as a "
        "global generator",
    )
    demand(
        not same_arrays(runs[0], runs[2]),
        "another planted source must give other noise: the source is not used",
    )


def _audit(case: Case) -> None:
    """Neighbours are no easier to tell apart than the cost says, for the most exposed of many
    records.
    """
    _audit_at(case, 1)


def _audit_user(case: Case) -> None:
    """The same for a user of three records."""
    _audit_at(case, 3)


def _audit_at(case: Case, units: int) -> None:
    claim = case.ptk.cost(_LEVEL, case.delta, records_per_unit=units).epsilon(case.delta)
    added, shift, middle, spread = _most_exposed(case, units)
    pair = [case.small.to_batches(), pa.concat_tables([case.small, *[added] * units]).to_batches()]
    moved = np.flatnonzero(shift)

    def runs(side: int, count: int) -> NDArray[np.float64]:
        numbers = (
            case.coordinates(pair[side], count, epsilon=_LEVEL, records_per_unit=units)[:, moved]
            - middle[moved]
        )
        # The log-likelihood ratio, were the noise Laplace: one number that gathers what all moved
        # numbers tell.
        ratio: NDArray[np.float64] = (
            (np.abs(numbers) - np.abs(numbers - shift[moved])) / spread[moved]
        ).sum(axis=1)
        return ratio.round(9)

    audit_result = _audited(runs, float(claim), float(case.delta))
    demand(
        not audit_result.contradicts(claim),
        f"adding {units} record(s) can be told at epsilon {audit_result.lower_bound:.3g} or more, "
        f"the cost says {claim:.3g} "
        f"(record {added.to_pylist()[0]}): too little noise, or a sensitivity that is too small",
    )


def _audited(
    runs: Callable[[int, int], NDArray[np.float64]], claim: float, delta: float
) -> AuditResult:
    """The audit of all runs, or of the first alone where those show less than the claim.

    Only all of them can accuse.
    """
    seen = [runs(side, _FIRST_RUNS) for side in (0, 1)]
    audit_result = audit_epsilon(
        lambda side, _: seen[side],
        0,
        1,
        count=_FIRST_RUNS,
        delta=delta,
        confidence=_FIRST_CONFIDENCE,
        choosing=_FIRST_CHOOSING,
    )
    if audit_result.lower_bound <= _SUSPECT * claim:
        return audit_result
    seen = [np.concatenate([seen[side], runs(side, _RUNS - _FIRST_RUNS)]) for side in (0, 1)]
    return audit_epsilon(
        lambda side, _: seen[side], 0, 1, count=_RUNS, delta=delta, confidence=_CONFIDENCE
    )


def _audit_residues(case: Case) -> None:
    """No number tells by its low bits, or by its remainder modulo small numbers, whether a record
    is there.

    Remainders do not depend on how much noise there is, so a small epsilon makes a small claim, and
    few runs are enough.
    """
    claim = case.ptk.cost(_SMALL_LEVEL, case.delta).epsilon(case.delta)
    without = case.coordinates(case.small, _RESIDUE_RUNS, epsilon=_SMALL_LEVEL)
    # Spread over the candidates: what all of them move by even numbers, one of many does not.
    tried = case.candidates()
    for added in tried[:: max(1, len(tried) // _RESIDUE_RECORDS)]:
        with_it = case.coordinates(
            pa.concat_tables([case.small, added]), _RESIDUE_RUNS, epsilon=_SMALL_LEVEL
        )
        audit_result = most_telling_residue(
            without, with_it, delta=float(case.delta), confidence=_SURE
        )
        demand(
            not audit_result.contradicts(claim),
            f"the remainder of a number tells a record at epsilon {audit_result.lower_bound:.3g} or more, "
            "the cost says "
            f"{claim:.3g} ({audit_result.event}; record {added.to_pylist()[0]}): low bits without noise",
        )


def _most_exposed(
    case: Case, units: int
) -> tuple[pa.Table, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The record that moves the numbers most in units of their noise, how it moves them, and their
    middle and spread.

    Moves are seen at a large epsilon, where the noise is small, and those within the noise are
    taken as none.
    """
    options: dict[str, Any] = {"records_per_unit": units}
    spread = case.coordinates(case.small, 40, epsilon=_LEVEL, **options).std(axis=0)
    quiet = case.coordinates(case.small, 15, epsilon=_LOUD, **options)
    middle, blur = np.median(quiet, axis=0), quiet.std(axis=0)
    spread = np.maximum(spread, 1e-9 + 1e-3 * float(np.median(spread)))
    best = (-1.0, case.small.slice(0, 1), np.ones_like(middle))
    for added in case.candidates():
        more = pa.concat_tables([case.small, *[added] * units])
        shift = np.median(case.coordinates(more, 5, epsilon=_LOUD, **options), axis=0) - middle
        shift[np.abs(shift) <= 4 * blur] = 0.0
        best = max(
            best,
            (float((np.abs(shift) / spread).sum()), added, shift),
            key=lambda candidate: candidate[0],
        )
    return best[1], best[2], middle, spread


def _records_per_unit(case: Case) -> None:
    """More records per unit, more noise."""
    spread = [
        float(case.coordinates([case.empty], 60, records_per_unit=units).std(axis=0).sum())
        for units in (1, 8)
    ]
    demand(
        spread[1] > 2 * spread[0],
        f"records_per_unit=8 must raise the noise well above that of 1, got {spread[1]:.3g} after "
        f"{spread[0]:.3g}",
    )


def _no_key_leak(case: Case) -> None:
    """Names, shapes and dtypes of the arrays are those of an empty stream."""
    wanted = _shape(case.train())
    for name, batches in (
        ("no data", [case.empty]),
        ("one record", case.data.slice(0, 1)),
        ("unseen keys", case.unseen()),
    ):
        shapes = _shape(case.train(batches))
        demand(
            shapes == wanted,
            f"names, shapes and dtypes of the arrays must not depend on the data, got {shapes} on "
            f"{name} and {wanted} on all",
        )


def _no_raw_values(case: Case) -> None:
    """Planted canaries are not found in the state."""
    for column, value, data in case.canaries():
        for name, array in case.train(data).items():
            demand(
                not _holds(np.asarray(array), value),
                f"array {name!r} holds the value {value!r} planted in column {column!r}: raw "
                "values are stored",
            )


def _refuses_before_reading(case: Case) -> None:
    """A wrong epsilon, delta or number of records is refused before the first batch is read."""
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("epsilon=0", {"epsilon": 0}),
        ("epsilon=-1", {"epsilon": -1}),
        ("delta=2", {"epsilon": 1, "delta": 2}),
        ("records_per_unit=0", {"epsilon": 1, "records_per_unit": 0}),
    ]
    if case.ptk.tags.needs_delta:
        wrong.append(("delta=0", {"epsilon": 1, "delta": 0}))
    for words, options in wrong:
        read: list[int] = []

        def watched(read: list[int] = read) -> Any:
            for batch in case.batches:
                read.append(1)
                yield batch

        try:
            case.ptk.train_dp(watched(), **{"delta": case.delta, **options})
        except ValueError:
            demand(
                not read, f"{words} must be refused before the data is read, it was refused after"
            )
        else:
            demand(False, f"{words} must be refused, it was trained with")


def _spent(case: Case, level: Number) -> float:
    cost = case.ptk.cost(level, case.delta)
    demand(isinstance(cost, Cost), f"cost must be a Cost, got {type(cost).__name__}")
    again = case.ptk.cost(level, case.delta)
    demand(cost == again, f"cost({level}) must be the same every time, got {cost} and {again}")
    return cost.epsilon(case.delta)


def _priced(case: Case) -> list[Cost]:
    return [case.ptk.cost(level, case.delta) for level in _LEVELS]


def _shape(arrays: dict[str, NDArray[Any]]) -> dict[str, str]:
    return {
        name: f"{np.asarray(array).dtype}{list(np.shape(array))}"
        for name, array in sorted(arrays.items())
    }


def _where(case: Case, exposed: NDArray[np.bool_]) -> str:
    parts, start = [], 0
    for name, array in sorted(case.train().items()):
        here = int(exposed[start : start + array.size].sum())
        parts += [f"{here} of {array.size} in {name!r}"] if here else []
        start += array.size
    return ", ".join(parts)


def _holds(array: NDArray[Any], value: object) -> bool:
    """The value as a number of the array, or its bytes anywhere in it."""
    if isinstance(value, str):
        return value.encode() in array.tobytes() or value.encode("utf-32-le") in array.tobytes()
    assert isinstance(value, int | float)
    if array.dtype.kind == "f" and np.any(array == np.asarray(value).astype(array.dtype)):
        return True
    return np.asarray(value).tobytes() in array.tobytes()


PRIVACY_CHECKS = (
    Check("cost_before_data", _cost_before_data),
    Check("cost_ignores_data", _cost_ignores_data),
    Check("refuses_before_reading", _refuses_before_reading),
    Check("no_key_leak", _no_key_leak),
    Check("noise_in_every_number", _noise_in_every_number),
    Check("noise_from_the_source", _noise_from_the_source),
    Check("no_raw_values", _no_raw_values),
    Check("records_per_unit", _records_per_unit, lambda ptk: "user" in ptk.tags.units),
    Check("audit_residues", _audit_residues, slow=True),
    Check("audit", _audit, slow=True),
    Check("audit_user", _audit_user, lambda ptk: "user" in ptk.tags.units, slow=True),
)
