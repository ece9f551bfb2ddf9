from __future__ import annotations

import random

import pytest

from ptklib.errors import JournalDamaged, Refused
from ptklib.ledger.commands import (
    AddBlocks,
    CreateStream,
    Release,
    Reserve,
    Retire,
    SetQuota,
    Spend,
)
from ptklib.ledger.decide import apply
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice, TagRange
from ptklib.ledger.snapshot import digest, dump, load
from ptklib.ledger.state import Entry, LedgerState
from ptklib.privacy.costs import Cost, GaussianCost, PureCost

COSTS: dict[str, Cost] = {
    "pure": PureCost(epsilon="0.03"),
    "basic": PureCost(epsilon="0.03"),
    "strong": PureCost(epsilon="0.01"),
    "renyi": GaussianCost(sigma=40),
    "gaussian": GaussianCost(sigma=40),
}


def lived(composition: str, seed: int) -> tuple[LedgerState, list[Entry]]:
    """A book with a little of everything in it, and its entries."""
    rng = random.Random(seed)
    state = LedgerState()
    delta = 0 if composition == "pure" else "1e-6"
    entries = apply(
        state, CreateStream("s", Policy(epsilon=1, delta=delta, composition=composition))
    )
    entries += apply(state, AddBlocks("s", tuple(f"block-{k}" for k in range(6))))
    entries += apply(state, SetQuota("s", "team", "0.4"))
    for step in range(60):
        first, last = sorted(rng.sample(range(11), 2))
        request = Reserve(
            stream="s",
            slices=(
                Slice(
                    tuple(rng.sample([f"block-{k}" for k in range(1, 6)], rng.randrange(1, 4))),
                    TagRange.of_shares(f"{first}/10", f"{last}/10"),
                ),
            ),
            cost=COSTS[composition],
            expires_at_ms=1000,
            contexts=("team",) if rng.random() < 0.5 else (),
            key=f"key-{step}" if rng.random() < 0.5 else None,
        )
        try:
            made = apply(state, request)
        except Refused:
            continue
        entries += made
        fate = rng.random()
        if fate < 0.4:
            entries += apply(state, Spend(made[0]["charge"], 1))
        elif fate < 0.7:
            entries += apply(state, Release(made[0]["charge"]))
    entries += apply(state, Retire("s", ("block-0",), "old"))
    return state, entries


@pytest.mark.parametrize("composition", sorted(COSTS))
def test_replay_and_snapshots_are_bit_equal(composition: str) -> None:
    state, entries = lived(composition, 1)
    body = dump(state)
    again = load(body)
    assert dump(again) == body
    replayed = LedgerState()
    for entry in entries:
        replayed.evolve(entry)
    assert dump(replayed) == body
    assert digest(replayed) == digest(state)
    # And it goes on alike, written rows included.
    follow_up = Reserve(
        stream="s",
        slices=(Slice(("block-1", "block-5")),),
        cost=PureCost(epsilon="0.000001"),
        expires_at_ms=5,
    )
    for one in (state, again, replayed):
        apply(one, follow_up)
    assert dump(again) == dump(state) == dump(replayed)


def test_different_histories_have_different_digests() -> None:
    assert digest(lived("renyi", 1)[0]) != digest(lived("renyi", 2)[0])


def test_bytes_that_are_no_snapshot_are_refused() -> None:
    body = dump(lived("pure", 3)[0])
    for broken in (
        b"",
        b"\0" * 8,
        body[:-1],
        body[:-8],
        body + bytes(8),
        body.replace(b'"version":1', b'"version":9'),
    ):
        with pytest.raises(JournalDamaged) as refusal:
            load(broken)
        assert refusal.value.reason == "SNAPSHOT_INVALID"
