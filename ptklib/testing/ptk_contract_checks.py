"""Checks of a PTK that guard the contract: configuration, arrays, loss, features, merging,
profile.
"""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.errors import InvalidInput
from ptklib.ptk import UNITS, Ptk, Tags
from ptklib.state import State
from ptklib.testing.ptk_cases import Case, Check, demand, same_arrays, varied

__all__ = ["CONTRACT_CHECKS"]

_LEVELS = ("0.01", "0.1", "1", "10")
_SHARP = 100
_FADED = Fraction(1, 10_000)


def _config_frozen(case: Case) -> None:
    """A frozen dataclass that takes keywords only."""
    ptk, kind = case.ptk, type(case.ptk)
    demand(is_dataclass(ptk), f"{kind.__name__} must be a dataclass")
    demand(bool(kind.__dataclass_params__.frozen), f"{kind.__name__} must be a frozen dataclass")  # type: ignore[attr-defined]
    for field in fields(kind):
        demand(
            field.kw_only is True, f"field {field.name!r} of {kind.__name__} must be keyword-only"
        )
    try:
        hash(ptk)
    except TypeError:
        demand(False, f"{kind.__name__} must be hashable: use tuples, not lists")
    try:
        setattr(ptk, fields(kind)[0].name, None)
    except FrozenInstanceError:
        return
    demand(False, f"{kind.__name__} must refuse to be changed")


def _config_json(case: Case) -> None:
    """JSON and back; a field that is not known is refused; the schema is JSON."""
    ptk = case.ptk
    body = json.loads(json.dumps(ptk.as_json(), allow_nan=False))
    demand(
        type(ptk).from_json(body) == ptk, "from_json(as_json()) must be the same PTK, got another"
    )
    json.dumps(ptk.json_schema(), allow_nan=False)
    try:
        type(ptk).from_json({**body, "no_such_field": 1})
    except InvalidInput:
        return
    demand(False, "from_json must refuse a field that it does not know")


def _names(case: Case) -> None:
    """Kind, tags, columns and feature names are what the engine expects, and training reads no
    other column.
    """
    ptk = case.ptk
    demand(
        isinstance(ptk.kind, str) and ptk.kind.isidentifier(),
        f"kind must be an identifier, got {ptk.kind!r}",
    )
    demand(
        isinstance(ptk.tags, Tags) and set(ptk.tags.units) <= set(UNITS),
        f"tags must be Tags with units of {UNITS}",
    )
    for what, names in (("columns", ptk.columns()), ("feature_names", ptk.feature_names())):
        whole = isinstance(names, tuple) and all(isinstance(name, str) and name for name in names)
        demand(
            whole and len(set(names)) == len(names) > 0,
            f"{what}() must be a tuple of different names, got {names!r}",
        )
    demand(
        set(ptk.feature_columns()) <= set(ptk.columns()),
        "feature_columns() must be among columns()",
    )
    case.train(case.data.select(list(ptk.columns())))


def _inputs_unchanged(case: Case) -> None:
    """Batches and previous arrays are as they were."""
    kept = case.train()
    # Writable copies: a PTK that writes into them must be able to.
    previous = {name: np.array(array) for name, array in kept.items()}
    batches = [
        pa.RecordBatch.from_pylist(batch.to_pylist(), schema=batch.schema) for batch in case.batches
    ]
    copies = [batch.to_pylist() for batch in batches]
    case.train(batches, previous=previous)
    case.ptk.loss(previous, batches)
    case.ptk.features(previous, pa.Table.from_batches(batches))
    demand(
        [batch.to_pylist() for batch in batches] == copies,
        "the batches must not be changed, they were",
    )
    demand(
        same_arrays(previous, kept),
        "the arrays of the previous state must not be changed, they were",
    )


def _empty_data(case: Case) -> None:
    """No batches, and batches without records, are data like any other."""
    for words, batches in (("no batches", []), ("an empty batch", [case.empty])):
        try:
            arrays = case.train(batches)
            case.ptk.validate(arrays)
            demand(len(case.ptk.loss(arrays, batches)) == 0, f"loss on {words} must have no values")
            made = case.ptk.features(arrays, pa.Table.from_batches([case.empty]))
            demand(made.num_rows == 0, f"features of {words} must have no rows")
            case.ptk.exact(batches)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            demand(False, f"{words} must work like any data, got {type(error).__name__}: {error}")


def _arrays_numeric(case: Case) -> None:
    """Numbers, finite, in plain NumPy arrays."""
    for name, array in case.train().items():
        plain = type(array) is np.ndarray and array.dtype.kind in "iufb"
        demand(
            plain,
            f"array {name!r} must be a NumPy array of numbers, got "
            f"{getattr(array, 'dtype', type(array))}",
        )
        demand(bool(np.all(np.isfinite(array))), f"array {name!r} must be finite")


def _validate(case: Case) -> None:
    """Its own states pass; anything else does not."""
    arrays = case.train()
    case.ptk.validate(arrays)
    first = sorted(arrays)[0]
    for words, wrong in (
        ("of another PTK", {"no_such_array": np.zeros(3)}),
        ("without one array", {name: arrays[name] for name in arrays if name != first}),
        ("with one array more", {**arrays, "no_such_array": np.zeros(3)}),
        (
            "of another shape",
            {**arrays, first: np.zeros((*arrays[first].shape, 2), arrays[first].dtype)},
        ),
        ("of another dtype", {**arrays, first: arrays[first].astype(np.complex64)}),
    ):
        try:
            case.ptk.validate(wrong)
        except InvalidInput:
            continue
        demand(False, f"validate must refuse arrays {words}, it accepted them")


def _state_round_trip(case: Case) -> None:
    """Bytes and back, the same bytes again."""
    state = State.make(case.ptk, case.train(), name="checked", epsilon=1, delta=case.delta)
    again = State.from_bytes(*state.to_bytes(), kinds={case.ptk.kind: type(case.ptk)})
    demand(
        again.to_bytes() == state.to_bytes(), "a state must have the same bytes after a round trip"
    )
    demand(
        same_arrays(again.arrays, state.arrays),
        "a state must have the same arrays after a round trip",
    )


def _loss(case: Case) -> None:
    """One value in [0, 1] for each record, also for states of pure noise and for unseen keys; eval
    is the mean.
    """
    noisy = case.train([case.empty], epsilon="0.05")
    for words, arrays in (("a state", case.train()), ("a state of pure noise", noisy)):
        for what, table in (("the data", case.data), ("unseen keys", case.unseen())):
            losses = case.ptk.loss(arrays, table.to_batches())
            shape = np.shape(losses)
            demand(
                shape == (table.num_rows,),
                f"loss on {what} must be one value per record, got shape {shape}",
            )
            inside = bool(np.all((losses >= 0) & (losses <= 1)))
            demand(
                inside,
                f"loss of {words} on {what} must be in [0, 1], got {np.min(losses):.4g} to "
                f"{np.max(losses):.4g}",
            )
            mean = case.ptk.eval(arrays, table.to_batches())
            demand(
                math.isclose(mean, float(np.mean(losses)), abs_tol=1e-12),
                "eval must be the mean of the losses",
            )


def _features(case: Case) -> None:
    """The promised names, one row each, the same features for the same row wherever it stands."""
    arrays, ptk, table = case.train(), case.ptk, case.data
    for words, records in (
        ("the data", table),
        ("unseen keys", case.unseen()),
        ("one record", table.slice(0, 1)),
    ):
        made = ptk.features(arrays, records)
        names = tuple(made.column_names)
        demand(
            names == ptk.feature_names(),
            f"features of {words} must be named {ptk.feature_names()}, got {names}",
        )
        demand(
            made.num_rows == records.num_rows,
            f"features of {words} must have {records.num_rows} rows, got {made.num_rows}",
        )
        for name in names:
            values = made.column(name).to_numpy()
            demand(
                bool(np.all(np.isfinite(values))),
                f"feature {name!r} on {words} must be finite numbers",
            )
    whole = ptk.features(arrays, table)
    demand(whole.equals(ptk.features(arrays, table)), "features must be the same every time")
    other = case.train()
    demand(
        tuple(ptk.features(other, table).column_names) == ptk.feature_names(),
        "feature names must not change",
    )
    order = np.random.default_rng(3).permutation(table.num_rows)
    demand(
        ptk.features(arrays, table.take(order)).equals(whole.take(order).combine_chunks()),
        "a row must have the same features wherever it stands, they changed with the order of the "
        "rows",
    )


def _merge(case: Case) -> None:
    """A state of two windows knows both: its loss on all data is near that of a state trained on
    all at once.
    """
    ptk, batches = case.ptk, case.batches
    whole = ptk.eval(case.train(epsilon=_SHARP), batches)
    for column in ptk.columns():
        ordered = case.data.sort_by(column)
        middle = ordered.num_rows // 2
        for first, second in (
            (ordered[:middle], ordered[middle:]),
            (ordered[middle:], ordered[:middle]),
        ):
            previous = case.train(first, epsilon=_SHARP)
            merged = case.train(second, epsilon=_SHARP, previous=previous)
            ptk.validate(merged)
            alone = ptk.eval(case.train(second, epsilon=_SHARP), batches)
            loss = ptk.eval(merged, batches)
            demand(
                loss <= whole + max(0.01, (alone - whole) / 4),
                f"a state of two windows (split by {column!r}) must be as good as one of all data "
                f"(loss {whole:.4f}), got "
                f"{loss:.4f}; the second window alone has {alone:.4f}",
            )


def _combine(case: Case) -> None:
    """States of two windows add up; one that counts next to nothing says next to nothing; what was
    given is as it was.
    """
    ptk = case.ptk
    whole = ptk.eval(case.train(epsilon=_SHARP), case.batches)
    ordered = case.data.sort_by(ptk.columns()[0])
    middle = ordered.num_rows // 2
    halves = ordered[:middle], ordered[middle:]
    first, second = (case.train(half, epsilon=_SHARP) for half in halves)
    kept = {name: np.array(array) for name, array in first.items()}
    both = dict(ptk.combined(((Fraction(1), first), (Fraction(1), second))))
    ptk.validate(both)
    demand(same_arrays(first, kept), "the arrays of a state that is combined must not be changed")
    alone = ptk.eval(second, case.batches)
    loss = ptk.eval(both, case.batches)
    demand(
        loss <= whole + max(0.01, (alone - whole) / 4),
        f"two states combined must be as good as one of all data (loss {whole:.4f}), got "
        f"{loss:.4f}; the second alone has {alone:.4f}",
    )
    faded = dict(ptk.combined(((_FADED, first), (Fraction(1), second)), previous=first))
    ptk.validate(faded)
    own = halves[1].to_batches()
    alone, loss = ptk.eval(second, own), ptk.eval(faded, own)
    demand(
        loss <= alone + 0.01,
        f"a state that counts {_FADED} must hardly matter beside one that counts 1 (loss "
        f"{alone:.4f}), got {loss:.4f}",
    )
    try:
        ptk.combined(((Fraction(1), {"no_such_array": np.zeros(3)}),))
    except InvalidInput:
        return
    demand(False, "a state of another PTK must be refused, it was combined")


def _foreign_previous(case: Case) -> None:
    """A previous state of another PTK is refused."""
    try:
        case.train(previous={"no_such_array": np.zeros(3)})
    except InvalidInput:
        return
    demand(False, "a previous state of another PTK must be refused, it was used")


def _exact_minimiser(case: Case) -> None:
    """No other state has less loss than `exact`."""
    ptk, batches = case.ptk, case.batches
    exact = ptk.exact(batches)
    demand(exact is not None, "exact must give arrays where tags say exact_minimiser")
    assert exact is not None
    ptk.validate(exact)
    least = ptk.eval(exact, batches)
    others: list[Any] = [case.train(epsilon=level) for level in ("0.1", "1", "10")]
    others += list(varied(exact, np.random.default_rng(5)))
    for other in others:
        try:
            ptk.validate(other)
        except InvalidInput:
            continue
        loss = ptk.eval(other, batches)
        demand(
            loss >= least - 1e-9,
            f"exact must minimise the mean loss, it has {least:.6f} and another has {loss:.6f}",
        )


def _analytic_profile(case: Case) -> None:
    """One number per level; never more records for more budget, nor fewer for more records per
    unit.
    """
    profiles = []
    for target, units in ((0.05, 1), (0.1, 1), (0.1, 4)):
        profile = case.ptk.analytic_profile(target, _LEVELS, case.delta, records_per_unit=units)
        if profile is None:
            return
        demand(
            len(profile) == len(_LEVELS)
            and all(count is None or (isinstance(count, int) and count > 0) for count in profile),
            f"analytic_profile must give a count or None for each of {_LEVELS}, got {profile}",
        )
        counts = [math.inf if count is None else count for count in profile]
        demand(
            counts == sorted(counts, reverse=True),
            f"more budget must not need more records, got {profile} at {_LEVELS}",
        )
        profiles.append(counts)
    strict, plain, users = profiles
    demand(
        all(a >= b for a, b in zip(strict, plain, strict=True)),
        "a stricter target must not need fewer records",
    )
    demand(
        all(a >= b for a, b in zip(users, plain, strict=True)),
        "more records per unit must not need fewer records",
    )


def _mergeable(ptk: Ptk) -> bool:
    return ptk.tags.mergeable


def _combines(ptk: Ptk) -> bool:
    return ptk.tags.combines


CONTRACT_CHECKS = (
    Check("config_frozen", _config_frozen),
    Check("config_json", _config_json),
    Check("names", _names),
    Check("empty_data", _empty_data),
    Check("arrays_numeric", _arrays_numeric),
    Check("inputs_unchanged", _inputs_unchanged),
    Check("validate", _validate),
    Check("state_round_trip", _state_round_trip),
    Check("loss", _loss),
    Check("features", _features),
    Check("merge", _merge, _mergeable),
    Check("combine", _combine, _combines),
    Check("foreign_previous", _foreign_previous, _mergeable),
    Check("exact_minimiser", _exact_minimiser, lambda ptk: ptk.tags.exact_minimiser),
    Check("analytic_profile", _analytic_profile),
)
