"""What the ledger admits and refuses, and in which order it checks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from ptklib.errors import BudgetExceeded, GrantRefused, InvalidInput, Refused, SageError
from ptklib.ledger import decide, queries
from ptklib.ledger.commands import (
    AddBlocks,
    Command,
    CreateStream,
    Expire,
    Release,
    Reserve,
    ReserveAll,
    Retire,
    SetQuota,
    Spend,
)
from ptklib.ledger.decide import apply
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import WHOLE, Slice, TagRange
from ptklib.ledger.snapshot import digest
from ptklib.ledger.state import LedgerState
from ptklib.privacy.costs import GaussianCost, PureCost, ZcdpCost

LATER_MS = 10_000


def book(*blocks: str, **policy: Any) -> LedgerState:
    state = LedgerState()
    apply(state, CreateStream("s", Policy(**({"epsilon": 1, "delta": 0} | policy))))
    apply(state, AddBlocks("s", blocks or ("a", "b", "c")))
    return state


def ask(
    epsilon: object = "0.1", blocks: tuple[str, ...] = ("a",), tags: TagRange = WHOLE, **more: Any
) -> Reserve:
    fields: dict[str, Any] = {
        "stream": "s",
        "slices": (Slice(blocks, tags),),
        "cost": PureCost(epsilon=epsilon),  # type: ignore[arg-type]
        "expires_at_ms": LATER_MS,
    }
    return Reserve(**(fields | more))


def reason_of(state: LedgerState, command: Command) -> str:
    before = digest(state)
    with pytest.raises(SageError) as refusal:
        apply(state, command)
    assert digest(state) == before, "a refusal must change nothing"
    return refusal.value.reason


def test_ten_charges_of_a_tenth_fit_one_and_the_eleventh_does_not() -> None:
    state = book()
    for _ in range(10):
        apply(state, ask("0.1"))
    assert reason_of(state, ask("0.1")) == "BUDGET_EXCEEDED"
    assert reason_of(state, ask("0.000000001")) == "BUDGET_EXCEEDED"
    apply(state, ask("1", ("b",)))


def test_thirds_round_up() -> None:
    state = book()
    for _ in range(2):
        apply(state, ask("1/3"))
    assert queries.left(state, "s", Slice(("a",))).limit_denominator(10**9) * 10**9 == 333_333_332
    assert reason_of(state, ask("1/3")) == "BUDGET_EXCEEDED"


def test_disjoint_slices_compose_in_parallel_and_overlapping_ones_add_up() -> None:
    state = book()
    low, high = TagRange.of_shares(0, "0.5"), TagRange.of_shares("0.5", 1)
    apply(state, ask("1", tags=low))
    apply(state, ask("0.7", tags=high))
    assert reason_of(state, ask("0.4", tags=high)) == "BUDGET_EXCEEDED"
    assert reason_of(state, ask("0.1")) == "BUDGET_EXCEEDED"
    assert (
        reason_of(state, ask("0.1", tags=TagRange.of_shares("0.4999", "0.6"))) == "BUDGET_EXCEEDED"
    )
    apply(state, ask("0.3", tags=high))


def test_one_full_block_refuses_the_whole_request_and_is_named() -> None:
    state = book("a", "b", "c")
    apply(state, ask("0.95", ("b",)))
    with pytest.raises(BudgetExceeded) as refusal:
        apply(state, ask("0.1", ("a", "b", "c")))
    details = refusal.value.details
    assert details["blocks"] == ["b"]
    assert details["blocks_refused"] == 1
    assert details["left"] == {"b": "0.05"}
    assert details["asked"] == PureCost(epsilon="0.1").as_json()
    assert "b 0.05" in str(refusal.value)
    assert queries.left(state, "s", Slice(("a", "c"))) == 1


def test_a_refusal_names_at_most_ten_blocks() -> None:
    names = tuple(f"block-{k}" for k in range(30))
    state = book(*names)
    apply(state, ask("1", names))
    with pytest.raises(BudgetExceeded) as refusal:
        apply(state, ask("0.1", names))
    assert refusal.value.details["blocks"] == list(names[:10])
    assert refusal.value.details["blocks_refused"] == 30


def test_many_blocks_with_disjoint_charges_admit_exactly_what_fits() -> None:
    names = tuple(f"block-{k}" for k in range(40))
    state = book(*names)
    halves = TagRange.of_shares(0, "0.5"), TagRange.of_shares("0.5", 1)
    for tags in halves:
        apply(state, ask("0.6", names, tags=tags))
    # The sum of what was charged is beyond the policy, the loss at every tag is not.
    apply(state, ask("0.4", names))
    assert reason_of(state, ask("0.000000001", names, tags=halves[1])) == "BUDGET_EXCEEDED"
    apply(state, Release(0))
    apply(state, ask("0.6", names, tags=halves[0]))
    assert reason_of(state, ask("0.000000001", names)) == "BUDGET_EXCEEDED"


def test_one_full_block_among_many_is_enough_to_refuse() -> None:
    """Of many blocks a first look at their ceilings may admit, but only if every one of them has
    room.
    """
    names = tuple(f"b{number}" for number in range(20))
    state = book(*names)
    apply(state, ask("1", blocks=("b7",)))
    assert reason_of(state, ask("0.5", blocks=names)) == "BUDGET_EXCEEDED"
    apply(state, ask("0.5", blocks=tuple(name for name in names if name != "b7")))


def test_quotas_divide_but_never_replace_the_policy() -> None:
    state = book()
    apply(state, ask("0.2", contexts=("team-a",)))
    apply(state, SetQuota("s", "team-a", "0.5"))
    assert reason_of(state, ask("0.4", contexts=("team-a",))) == "QUOTA_EXCEEDED"
    apply(state, ask("0.3", contexts=("team-a",)))
    assert reason_of(state, ask("0.01", contexts=("team-a",))) == "QUOTA_EXCEEDED"
    # A request cannot escape a quota by naming more contexts, nor the policy by naming a roomy one.
    assert reason_of(state, ask("0.01", contexts=("team-b", "team-a"))) == "QUOTA_EXCEEDED"
    apply(state, SetQuota("s", "team-b", 1))
    assert reason_of(state, ask("0.6", contexts=("team-b",))) == "BUDGET_EXCEEDED"
    apply(state, ask("0.5", contexts=("team-b",)))
    assert reason_of(state, ask("0.01")) == "BUDGET_EXCEEDED"
    apply(state, ask("0.5", ("b",), contexts=("team-a",)))


def test_reserve_all_is_all_or_nothing() -> None:
    state = book()
    low = TagRange.of_shares(0, "0.3")
    before = digest(state)
    batch = ReserveAll(
        (ask("0.6", tags=low, contexts=("x",), key="k"), ask("0.3"), ask("0.3", ("b", "a")))
    )
    with pytest.raises(BudgetExceeded):
        apply(state, batch)
    assert digest(state) == before
    entries = apply(state, ReserveAll(batch.requests[:2]))
    assert [entry["charge"] for entry in entries] == [0, 1]


def test_the_life_of_a_charge() -> None:
    state = book()
    apply(state, ask("0.6"))
    assert queries.fate(state, 0) == "RESERVED"
    apply(state, Spend(0, 1))
    assert queries.fate(state, 0) == "SPENT"
    assert reason_of(state, Spend(0, 2)) == "GRANT_USED"
    assert reason_of(state, Release(0)) == "GRANT_USED"
    apply(state, ask("0.4"))
    apply(state, Release(1))
    assert queries.fate(state, 1) == "RELEASED"
    assert reason_of(state, Spend(1, 2)) == "GRANT_RELEASED"
    assert reason_of(state, Release(1)) == "GRANT_RELEASED"
    assert reason_of(state, Spend(7, 2)) == "CHARGE_UNKNOWN"
    apply(state, ask("0.4"))
    assert queries.left(state, "s", Slice(("a",))) == 0


def test_expiry_releases_what_never_started_and_only_that() -> None:
    state = book()
    apply(state, ask("0.2", expires_at_ms=100))
    apply(state, ask("0.3", expires_at_ms=100))
    apply(state, ask("0.4", expires_at_ms=101))
    apply(state, Spend(1, 99))
    assert reason_of(state, Spend(0, 100)) == "GRANT_EXPIRED"
    assert [entry["charge"] for entry in apply(state, Expire(100))] == [0]
    assert [queries.fate(state, n) for n in range(3)] == ["RELEASED", "SPENT", "RESERVED"]
    apply(state, ask("0.3"))
    assert reason_of(state, ask("0.1")) == "BUDGET_EXCEEDED"


def test_retired_blocks_take_nothing_and_keep_their_highest_loss() -> None:
    state = book()
    apply(state, ask("0.2", ("a", "b"), tags=TagRange.of_shares(0, "0.5")))
    apply(state, ask("0.3", ("a",), expires_at_ms=50))
    apply(state, Retire("s", ("a",), "expired"))
    assert reason_of(state, ask("0.1", ("a",))) == "BLOCK_RETIRED"
    assert reason_of(state, Spend(0, 1)) == "BLOCK_RETIRED"
    assert reason_of(state, Retire("s", ("a",), "again")) == "BLOCK_RETIRED"
    apply(state, Expire(50))
    view = queries.block_view(state, "s", "a")
    assert view.retired == "expired"
    assert view.left == 0
    assert view.losses[0][1][0] == 500_000_000
    assert queries.affordable(state, "s", PureCost(epsilon="0.1")) == ["b", "c"]


def test_a_key_makes_a_request_idempotent() -> None:
    state = book()
    request = ask("0.4", key="cycle-7/train/hour-speed")
    assert len(apply(state, request)) == 1
    assert apply(state, request) == []
    assert queries.find(state, "s", "cycle-7/train/hour-speed") == 0
    assert queries.left(state, "s", Slice(("a",))) * 10 == 6
    assert reason_of(state, ask("0.3", key="cycle-7/train/hour-speed")) == "KEY_REUSED"
    assert reason_of(state, ask("0.4", ("b",), key="cycle-7/train/hour-speed")) == "KEY_REUSED"
    apply(state, Spend(0, 1))
    assert reason_of(state, request) == "KEY_REUSED"
    apply(state, ask("0.1", key="other"))
    apply(state, Release(1))
    assert queries.find(state, "s", "other") is None
    apply(state, ask("0.2", key="other"))


def test_streams_and_blocks_have_names_of_their_own() -> None:
    state = book("a")
    assert reason_of(state, CreateStream("s", Policy())) == "STREAM_EXISTS"
    assert reason_of(state, AddBlocks("s", ("b", "a"))) == "BLOCK_EXISTS"
    assert reason_of(state, AddBlocks("s", ("b", "b"))) == "BLOCK_EXISTS"
    assert reason_of(state, AddBlocks("t", ("b",))) == "STREAM_UNKNOWN"
    assert reason_of(state, SetQuota("t", "x", 1)) == "STREAM_UNKNOWN"
    assert reason_of(state, Retire("s", ("zz",), "old")) == "BLOCK_UNKNOWN"


def test_affordable_finds_the_blocks_with_room() -> None:
    state = book("a", "b", "c", "d")
    apply(state, ask("0.5", ("a", "c"), tags=TagRange.of_shares(0, "0.5")))
    apply(state, ask("0.2", ("b",)))
    assert queries.affordable(state, "s", PureCost(epsilon="0.6")) == ["b", "d"]
    assert queries.affordable(
        state, "s", PureCost(epsilon="0.6"), TagRange.of_shares("0.5", 1)
    ) == ["a", "b", "c", "d"]
    assert queries.affordable(
        state, "s", PureCost(epsilon="0.9"), TagRange.of_shares("0.5", 1)
    ) == ["a", "c", "d"]
    assert queries.affordable(book("x"), "s", PureCost(epsilon=2)) == []


def _more(fields: dict[str, Any], one: Slice) -> None:
    fields["slices"] = (*fields["slices"], one)


# In the order of the table in `decide`: each fault by itself gives its reason; of two, the earlier
# one is reported.
FAULTS: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("STREAM_UNKNOWN", lambda fields: fields.update(stream="nowhere")),
    ("BLOCK_UNKNOWN", lambda fields: _more(fields, Slice(("never-added",)))),
    ("BLOCK_RETIRED", lambda fields: _more(fields, Slice(("retired",)))),
    (
        "SLICES_OVERLAP",
        lambda fields: _more(fields, Slice(("fine",), TagRange.of_shares("0.4", "0.6"))),
    ),
    ("COST_UNSUPPORTED", lambda fields: fields.update(cost=ZcdpCost(rho="0.1"))),
    ("KEY_REUSED", lambda fields: fields.update(key="taken")),
    (
        "TOO_MANY_RANGES",
        lambda fields: _more(fields, Slice(("cut",), TagRange.of_shares("0.91", "0.92"))),
    ),
    ("BUDGET_EXCEEDED", lambda fields: _more(fields, Slice(("full",)))),
    ("QUOTA_EXCEEDED", lambda fields: fields.update(contexts=("small",))),
]


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> LedgerState:
    monkeypatch.setattr(decide, "MAX_RANGES", 8)
    state = book("fine", "retired", "cut", "full")
    apply(state, Retire("s", ("retired",), "old"))
    apply(state, SetQuota("s", "small", "0.01"))
    apply(state, ask("1", ("full",)))
    apply(state, ask("0.001", ("fine",), key="taken"))
    for k in range(1, 4):
        apply(state, ask("0.001", ("cut",), tags=TagRange.of_shares(f"0.{k}", f"0.{k}5")))
    return state


def _faulty(*faults: Callable[[dict[str, Any]], None]) -> Reserve:
    fields: dict[str, Any] = {
        "stream": "s",
        "slices": (Slice(("fine",), TagRange.of_shares(0, "0.5")),),
        "cost": PureCost(epsilon="0.1"),
        "expires_at_ms": LATER_MS,
    }
    for fault in faults:
        fault(fields)
    return Reserve(**fields)


def test_without_a_fault_the_request_is_admitted(crowded: LedgerState) -> None:
    apply(crowded, _faulty())


@pytest.mark.parametrize(("reason", "fault"), FAULTS, ids=[reason for reason, _ in FAULTS])
def test_each_fault_has_its_reason(
    crowded: LedgerState, reason: str, fault: Callable[[dict[str, Any]], None]
) -> None:
    assert reason_of(crowded, _faulty(fault)) == reason


@pytest.mark.parametrize(
    ("first", "second"), list(combinations(FAULTS, 2)), ids=lambda fault: str(fault[0])
)
def test_of_two_faults_the_earlier_in_the_table_is_reported(
    crowded: LedgerState,
    first: tuple[str, Callable[[dict[str, Any]], None]],
    second: tuple[str, Callable[[dict[str, Any]], None]],
) -> None:
    assert reason_of(crowded, _faulty(first[1], second[1])) == first[0]
    assert reason_of(crowded, _faulty(second[1], first[1])) == first[0]


def test_the_documented_table_lists_the_reasons_in_the_order_that_is_tested() -> None:
    text = decide.__doc__ or ""
    places = [text.index(reason) for reason, _ in FAULTS]
    assert places == sorted(places)


def test_an_expired_grant_on_a_retired_block_is_reported_as_expired() -> None:
    state = book()
    apply(state, ask("0.1", expires_at_ms=5))
    apply(state, Retire("s", ("a",), "old"))
    assert reason_of(state, Spend(0, 5)) == "GRANT_EXPIRED"


def test_error_types_follow_the_tree() -> None:
    state = book()
    apply(state, ask("1"))
    with pytest.raises(BudgetExceeded):
        apply(state, ask("1"))
    with pytest.raises(GrantRefused):
        apply(state, Spend(9, 1))
    with pytest.raises(Refused):
        apply(state, Retire("s", ("zz",), "old"))
    with pytest.raises(InvalidInput):
        apply(state, ask(cost=GaussianCost(sigma=1)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: AddBlocks("s", ()),
        lambda: AddBlocks("", ("a",)),
        lambda: AddBlocks("s", ("a" * 201,)),
        lambda: AddBlocks("s", ("line\nbreak",)),
        lambda: CreateStream("s", "policy"),  # type: ignore[arg-type]
        lambda: SetQuota("s", "x", 0),
        lambda: SetQuota("s", "x", "1.01"),
        lambda: ask(slices=()),
        lambda: ask(slices=("a",)),
        lambda: ask(cost=0.1),
        lambda: ask(expires_at_ms=1.5),
        lambda: ask(expires_at_ms=-1),
        lambda: ask(key=""),
        lambda: ask(contexts=tuple(f"c{k}" for k in range(9))),
        lambda: ReserveAll(()),
        lambda: Spend(True, 1),
        lambda: Spend(-1, 1),
        lambda: Release("0"),  # type: ignore[arg-type]
        lambda: Expire(2**60),
        lambda: Retire("s", ("a", "a"), "old"),
        lambda: Retire("s", ("a",), ""),
    ],
)
def test_malformed_commands_are_refused_at_construction(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        make()
