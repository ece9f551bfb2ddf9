"""Filters are made of sound policies, keep the contract and survive JSON; what has the wrong form
is refused.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number
from ptklib.privacy.filters import COMPOSITIONS, filter_from_json, make_filter
from ptklib.testing.filters import check_filter

PROMISES: list[tuple[str, Number, Number]] = [
    ("pure", 1, 0),
    ("basic", 1, "1e-6"),
    ("basic", 1, 0),
    ("strong", 1, "1e-6"),
    ("strong", "0.1", "1e-9"),
    ("renyi", 1, "1e-6"),
    ("renyi", 10, "1e-9"),
    ("gaussian", 1, "1e-6"),
    ("gaussian", 5, "0.001"),
]


def test_compositions_are_listed() -> None:
    assert COMPOSITIONS == ("basic", "gaussian", "pure", "renyi", "strong")
    assert {name for name, _, _ in PROMISES} == set(COMPOSITIONS)


@pytest.mark.parametrize(
    ("composition", "epsilon", "delta", "reason"),
    [
        ("free", 1, 0, "POLICY_INVALID_COMPOSITION"),
        (None, 1, 0, "POLICY_INVALID_COMPOSITION"),
        ("pure", 1, "1e-6", "POLICY_INVALID_DELTA"),
        ("renyi", 1, 0, "POLICY_INVALID_DELTA"),
        ("gaussian", 1, 0, "POLICY_INVALID_DELTA"),
        ("strong", 1, 0, "POLICY_INVALID_DELTA"),
        ("strong", 1, "0.4", "POLICY_INVALID_DELTA"),
        ("renyi", "0.0001", "1e-6", "POLICY_INVALID_EPSILON"),
        ("strong", "1e-6", "1e-6", "POLICY_INVALID_EPSILON"),
        ("gaussian", "1e-8", "1e-18", "POLICY_INVALID_EPSILON"),
        ("basic", 0, 0, "AMOUNT_ZERO"),
        ("basic", 1001, 0, "AMOUNT_TOO_LARGE"),
        ("basic", 1, 1, "AMOUNT_TOO_LARGE"),
        ("basic", float("nan"), 0, "AMOUNT_NOT_FINITE"),
        ("basic", "9" * 400, 0, "AMOUNT_TOO_LONG"),
    ],
)
def test_bad_policies_are_refused(
    composition: Any, epsilon: Number, delta: Number, reason: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make_filter(composition, epsilon, delta)
    assert refusal.value.reason == reason


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_every_filter_keeps_the_contract(promise: tuple[str, Number, Number]) -> None:
    check_filter(make_filter(*promise))


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_every_quota_is_exact_json_too(promise: tuple[str, Number, Number]) -> None:
    quota = make_filter(*promise).scaled("1/3")
    assert filter_from_json(json.loads(json.dumps(quota.as_json()))) == quota
    assert pickle.loads(pickle.dumps(quota)) == quota


def test_recorded_capacities_count_and_nothing_is_recomputed() -> None:
    body = make_filter("gaussian", 1, "1e-6").as_json()
    body["capacity"] = [12345]
    assert filter_from_json(body).capacity == (12345,)


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": [1.5]},
        {"capacity": [-1]},
        {"capacity": []},
        {"capacity": "1"},
        {"capacity": [True]},
        {"capacity": [2**62]},
        {"capacity": [1, 2]},
        {"ceiling": [0]},
        {"extra": 1},
    ],
)
def test_a_damaged_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        filter_from_json({**make_filter("gaussian", 1, "1e-6").as_json(), **change})
    assert refusal.value.reason == "FILTER_INVALID"


@pytest.mark.parametrize("share", [0, "1.1", -1, "1e-10", float("nan")])
def test_a_share_is_between_a_billionth_and_one(share: Number) -> None:
    with pytest.raises(InvalidInput):
        make_filter("pure", 1).scaled(share)


@pytest.mark.parametrize(
    ("losses", "demand"),
    [
        (np.zeros((1, 3), dtype=np.int64), (1, 1)),
        (np.zeros(2, dtype=np.int64), (1, 1)),
        (np.zeros((1, 2), dtype=np.int64), (1,)),
        (np.zeros((1, 2), dtype=np.int64), (1, -1)),
        (np.zeros((1, 2), dtype=np.int64), (1, 2**63)),
        (np.zeros((1, 2), dtype=np.int64), (0.5, 0)),
        (np.zeros((1, 2)), (1, 1)),
    ],
)
def test_losses_and_demands_of_the_wrong_form_are_refused(losses: Any, demand: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make_filter("pure", 1).admits(losses, demand)
    assert refusal.value.reason == "LOSS_INVALID"
