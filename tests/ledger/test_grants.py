"""A privacy engineer tries to cheat: forged, altered, borrowed, replayed and outdated grants."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path

import pytest

from ptklib.encoding.mac import mac_of
from ptklib.errors import GrantRefused
from ptklib.ledger.grants import Grant, verify
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice, TagRange
from ptklib.privacy.costs import PureCost
from ptkstore.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.create_stream("s", Policy(epsilon=1, delta=0))
    ledger.add_blocks("s", ["a", "b"])
    return ledger


def reserve(ledger: Ledger) -> Grant:
    return ledger.reserve(
        "s", [Slice(("a",), TagRange.of_shares(0, "0.1"))], PureCost(epsilon="0.1")
    )


ALTERATIONS = {
    "another charge": {"charge": 1},
    "another stream": {"stream": "t"},
    "another block": {"slices": (Slice(("b",), TagRange.of_shares(0, "0.1")),)},
    "more tags": {"slices": (Slice(("a",)),)},
    "one more slice": {"slices": (Slice(("a",), TagRange.of_shares(0, "0.1")), Slice(("b",)))},
    "a later expiry": {"expires_at_ms": 2**50},
    "no mac": {"mac": b""},
    "a mac of zeros": {"mac": bytes(32)},
}


@pytest.mark.parametrize("change", list(ALTERATIONS.values()), ids=list(ALTERATIONS))
def test_an_altered_grant_opens_nothing(ledger: Ledger, change: dict[str, object]) -> None:
    grant = reserve(ledger)
    reserve(ledger)
    forged = dataclasses.replace(grant, **change)  # type: ignore[arg-type]
    for verb in (ledger.spend, ledger.release):
        with pytest.raises(GrantRefused) as refusal:
            verb(forged)
        assert refusal.value.reason == "GRANT_FORGED"
    ledger.spend(grant)


@pytest.mark.parametrize("change", list(ALTERATIONS.values()), ids=list(ALTERATIONS))
def test_the_signature_alone_tells_an_altered_grant(change: dict[str, object]) -> None:
    """Without a book: what is asked of the book later stands behind this, not in its place."""
    key, body = (
        bytes(range(32)),
        Grant(0, "s", (Slice(("a",), TagRange.of_shares(0, "0.1")),), 1, b""),
    )
    grant = dataclasses.replace(body, mac=mac_of(key, b"sage grant v1", body.body))
    verify(key, grant)
    for forged, under in ((dataclasses.replace(grant, **change), key), (grant, bytes(32))):  # type: ignore[arg-type]
        with pytest.raises(GrantRefused) as refusal:
            verify(under, forged)
        assert refusal.value.reason == "GRANT_FORGED"


@pytest.mark.parametrize("charge", [0, 1, 2, 99], ids=["reserved", "spent", "released", "unknown"])
def test_a_forger_is_not_told_what_became_of_a_charge(ledger: Ledger, charge: int) -> None:
    grant, spent, released = reserve(ledger), reserve(ledger), reserve(ledger)
    ledger.spend(spent)
    ledger.release(released)
    before = ledger.head
    for verb in (ledger.spend, ledger.release):
        with pytest.raises(GrantRefused) as refusal:
            verb(dataclasses.replace(grant, charge=charge, mac=bytes(32)))
        assert refusal.value.reason == "GRANT_FORGED"
    assert ledger.head == before


def test_a_grant_of_another_ledger_opens_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other.db") as other:
        other.create_stream("s", Policy(epsilon=1, delta=0))
        other.add_blocks("s", ["a", "b"])
        borrowed = reserve(other)
    reserve(ledger)
    with pytest.raises(GrantRefused) as refusal:
        ledger.spend(borrowed)
    assert refusal.value.reason == "GRANT_FORGED"


def test_a_grant_serves_once(ledger: Ledger) -> None:
    grant = reserve(ledger)
    ledger.spend(grant)
    with pytest.raises(GrantRefused) as refusal:
        ledger.spend(grant)
    assert refusal.value.reason == "GRANT_USED"
    assert ledger.left("s", ["a"]) * 10 == 9


def test_one_grant_named_twice_is_refused_and_not_spent(ledger: Ledger) -> None:
    grant, other = reserve(ledger), reserve(ledger)
    with pytest.raises(GrantRefused) as refusal:
        ledger.spend_all([grant, other, grant])
    assert refusal.value.reason == "GRANT_USED"
    assert [ledger.fate(one.charge) for one in (grant, other)] == ["RESERVED", "RESERVED"]
    ledger.spend_all([grant, other])


def test_a_grant_survives_travel_as_text(ledger: Ledger) -> None:
    grant = reserve(ledger)
    assert Grant.from_token(grant.token) == grant
    ledger.spend(Grant.from_token(grant.token))


@pytest.mark.parametrize(
    "text",
    ["", "grant", "A" * 100, base64.urlsafe_b64encode(bytes(32) + b"[1,2]").decode(), "é" * 40],
)
def test_text_that_is_no_grant_is_refused(text: str) -> None:
    with pytest.raises(GrantRefused) as refusal:
        Grant.from_token(text)
    assert refusal.value.reason == "GRANT_FORGED"


def test_a_token_edited_by_hand_is_refused(ledger: Ledger) -> None:
    raw = base64.urlsafe_b64decode(reserve(ledger).token)
    body = json.loads(raw[32:])
    body[2][0][2] = 2**64
    forged = base64.urlsafe_b64encode(raw[:32] + json.dumps(body).encode()).decode()
    with pytest.raises(GrantRefused) as refusal:
        ledger.spend(Grant.from_token(forged))
    assert refusal.value.reason == "GRANT_FORGED"


def test_an_expired_grant_opens_nothing(tmp_path: Path) -> None:
    now = [1000.0]
    with Ledger.open(tmp_path / "ledger.db", clock=lambda: now[0]) as ledger:
        ledger.create_stream("s", Policy(epsilon=1, delta=0))
        ledger.add_blocks("s", ["a"])
        grant = ledger.reserve("s", [Slice(("a",))], PureCost(epsilon=1), ttl_seconds=60)
        now[0] += 60
        with pytest.raises(GrantRefused) as refusal:
            ledger.spend(grant)
        assert refusal.value.reason == "GRANT_EXPIRED"
        # Its budget comes back by itself when somebody needs it.
        ledger.reserve("s", [Slice(("a",))], PureCost(epsilon=1))
        assert ledger.fate(grant.charge) == "RELEASED"


def test_a_grant_that_outlived_a_journal_set_back_does_not_fit_its_successor(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.create_stream("s", Policy(epsilon=1, delta=0))
        ledger.add_blocks("s", ["a", "b"])
    backup = path.read_bytes()
    with Ledger.open(path) as ledger:
        old = reserve(ledger)
    path.write_bytes(backup)
    with Ledger.open(path) as ledger:
        new = ledger.reserve("s", [Slice(("b",))], PureCost(epsilon="0.1"))
        assert new.charge == old.charge
        with pytest.raises(GrantRefused) as refusal:
            ledger.spend(old)
        assert refusal.value.reason == "GRANT_FORGED"
