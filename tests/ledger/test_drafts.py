"""Drafts save time and decide nothing."""

from __future__ import annotations

import itertools

import pytest

from ptklib.encoding.canonical import canonical, canonical_entries
from ptklib.errors import BudgetExceeded, Refused
from ptklib.ledger.commands import AddBlocks, CreateStream, Reserve, Retire
from ptklib.ledger.decide import apply
from ptklib.ledger.drafts import drafted
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice, TagRange
from ptklib.ledger.snapshot import dump, load
from ptklib.ledger.state import LedgerState
from ptklib.privacy.costs import PureCost

COST = PureCost(epsilon="0.6")
STREAM = 'Weg "7" ü'


def _state() -> LedgerState:
    state = LedgerState()
    apply(state, CreateStream(STREAM, Policy(epsilon=1, delta="1e-6")))
    apply(state, AddBlocks(STREAM, tuple(f"b{number}" for number in range(5))))
    return state


def _request(**more: object) -> Reserve:
    fields: dict[str, object] = {
        "stream": STREAM,
        "slices": (Slice(("b1",)),),
        "cost": COST,
        "expires_at_ms": 9,
    }
    return Reserve(**(fields | more))  # type: ignore[arg-type]


def test_a_drafted_entry_is_the_one_that_would_be_made_and_is_spelled_alike() -> None:
    several = (
        Slice(("b0", "b1", "b3")),
        Slice(("b4",), TagRange(3, 7)),
        Slice(("b4",), TagRange(7, 8)),
    )
    for slices, contexts, key, spent in itertools.product(
        [(Slice(("b1",)),), several], [(), ("research", "ads")], [None, "one key"], [None, 8]
    ):
        request = _request(slices=slices, contexts=contexts, key=key, spend_at_ms=spent)
        ahead, late = _state(), _state()
        drafted(request, ahead)
        entries = apply(ahead, request)
        assert canonical_entries(entries) == canonical(entries) == canonical(apply(late, request))
        assert dump(ahead) == dump(late)


def test_a_draft_holds_no_decision() -> None:
    state = _state()
    first, second = _request(), _request()
    for request in (first, second):
        drafted(request, state)
    apply(state, first)
    with pytest.raises(BudgetExceeded, match="BUDGET_EXCEEDED"):
        apply(state, second)
    drafted(third := _request(slices=(Slice(("b2",)),)), state)
    number = len(state.fates)
    apply(state, _request(slices=(Slice(("b0",)),)))
    assert apply(state, third)[0]["charge"] == number + 1, "numbers are given in the turn"


def test_a_draft_ends_with_its_blocks_and_with_its_state() -> None:
    state = _state()
    request, other = _request(), _request(slices=(Slice(("b1", "b2")),))
    made = [drafted(one, state) for one in (request, other)]
    assert [drafted(one, state) for one in (request, other)] == made
    again = load(dump(state))
    apply(again, request)
    assert len(state.fates) == 0
    assert made[0].stream.by_name["b1"].loss.peak().sum() == 0, (
        "the state it was drafted on is not touched"
    )
    apply(again, Retire(STREAM, ("b2",), "old"))
    drafted(other, state)
    with pytest.raises(Refused, match="BLOCK_RETIRED"):
        apply(again, other)


def test_one_refusal_names_the_blocks_of_all_slices() -> None:
    with pytest.raises(Refused, match="'x', 'y'"):
        drafted(_request(slices=(Slice(("x",)), Slice(("b1", "y")))), _state())
