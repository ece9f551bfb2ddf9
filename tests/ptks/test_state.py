"""States: the same bytes every time, nothing read that the manifest does not vouch for, no
pickle.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ptklib import registry, state
from ptklib.columns.keys import IntegerRange
from ptklib.encoding.canonical import canonical
from ptklib.encoding.state_digest import digest_of
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import PureCost
from ptklib.ptks.statistics import Statistics
from ptklib.state import Manifest, State
from ptkstore.lake.protocol import state_key
from tests.ptks.broken import Average

PTK = Statistics(
    keys=(IntegerRange(column="zone", first=0, last=3),),
    statistics=("mean",),
    value="speed",
    lower=0,
    upper=1,
)


def make(**options: Any) -> State:
    return State.make(PTK, PTK.exact([]), name="speed-by-zone", epsilon="0.1", **options)


def test_equal_states_are_equal_bytes_whatever_the_order_and_layout() -> None:
    arrays = PTK.exact([])
    turned = {name: np.asfortranarray(arrays[name]) for name in sorted(arrays, reverse=True)}
    assert (
        State.make(PTK, turned, name="speed-by-zone", epsilon=0.1).to_bytes() == make().to_bytes()
    )


def test_a_round_trip_keeps_everything() -> None:
    one = make(
        delta="1e-9",
        version=3,
        stream="rides",
        unit="user",
        records_per_unit=4,
        windows=("w1", "w3"),
        samples=100,
    )
    again = State.from_bytes(*one.to_bytes())
    assert (again.ptk, again.manifest) == (one.ptk, one.manifest)
    assert again.digest == one.digest == digest_of(*one.to_bytes())
    assert again.manifest.cost == PTK.cost("0.1", "1e-9", records_per_unit=4)
    assert (again.manifest.epsilon, again.manifest.delta, again.manifest.windows) == (
        "0.1",
        "1e-09",
        ("w1", "w3"),
    )


def test_the_digest_is_the_rule_of_the_lake_and_the_manifest_alone_knows_it() -> None:
    # Written down once and for all: lakes and exports that exist hold these names.
    assert (
        digest_of(b"arrays", b"{}")
        == "d1169f5a443afa16f3124e995da66d0da2f7d90057423ac8ca460d152c45dae2"
    )
    state = make()
    arrays, manifest = state.to_bytes()
    parts = hashlib.sha256(arrays).digest() + hashlib.sha256(manifest).digest()
    assert state.digest == hashlib.sha256(b"sage state v1\n" + parts).hexdigest()
    assert Manifest.from_bytes(manifest).digest == state.digest
    assert make(version=2).digest != state.digest
    assert state_key(state.digest, ".json") == f"sha256/{state.digest[:2]}/{state.digest}.json"


@pytest.mark.parametrize("wrong", ["", "no hex", 7, "\ud800"])
def test_a_manifest_that_names_no_arrays_has_no_digest(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="STATE_INVALID"):
        _ = replace(make().manifest, arrays_sha256=wrong).digest


def test_the_manifest_is_canonical_json_and_vouches_for_the_arrays() -> None:
    arrays, manifest = make().to_bytes()
    body = json.loads(manifest)
    assert canonical(body) == manifest
    assert body["arrays_sha256"] == hashlib.sha256(arrays).hexdigest()
    assert body["config"] == PTK.as_json()
    assert {
        "name",
        "kind",
        "version",
        "stream",
        "unit",
        "composition",
        "cost",
        "target",
        "previous",
    } <= set(body)


@pytest.mark.parametrize("place", [0, 9, -1])
def test_changed_arrays_are_refused(place: int) -> None:
    arrays, manifest = make().to_bytes()
    changed = bytearray(arrays)
    changed[place] ^= 1
    with pytest.raises(InvalidInput, match="STATE_DAMAGED"):
        State.from_bytes(bytes(changed), manifest)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest[:-1],
        lambda manifest: manifest + b" ",
        lambda manifest: manifest.replace(b'"version":1', b'"version": 1'),
        lambda manifest: manifest.replace(b'"version":1,', b""),
        lambda manifest: manifest.replace(b'"version":1', b'"version":1,"extra":1'),
        lambda manifest: manifest.replace(b'"discrete_laplace"', b'"no_such_cost"'),
        lambda _: b"[]",
        lambda _: b"\x80\x04N.",
        lambda _: b"[" * 100_000,
    ],
)
def test_a_manifest_that_is_none_is_refused(change: Any) -> None:
    arrays, manifest = make().to_bytes()
    with pytest.raises(InvalidInput, match="STATE_DAMAGED"):
        State.from_bytes(arrays, change(manifest))


def test_bytes_with_the_right_digest_that_are_no_arrays_are_refused() -> None:
    _, manifest = make().to_bytes()
    body = json.loads(manifest)
    for bad in (b"", b"\x80\x04N.", b"\xff" * 64):
        forged = canonical({**body, "arrays_sha256": hashlib.sha256(bad).hexdigest()})
        with pytest.raises(InvalidInput, match="STATE_DAMAGED"):
            State.from_bytes(bad, forged)


def test_a_newer_format_and_an_unknown_kind_are_told() -> None:
    arrays, manifest = make().to_bytes()
    body = json.loads(manifest)
    with pytest.raises(InvalidInput, match="STATE_INVALID"):
        State.from_bytes(arrays, canonical({**body, "format": 2}))
    with pytest.raises(InvalidInput, match="PTK_KIND_UNKNOWN"):
        State.from_bytes(arrays, canonical({**body, "kind": "no_such_kind"}))
    with pytest.raises(InvalidInput, match="CONFIG_FIELDS"):
        State.from_bytes(arrays, canonical({**body, "config": {}}))


def test_arrays_and_manifest_must_belong_to_the_ptk() -> None:
    one = make()
    with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
        State(PTK, {"totals": np.zeros(3)}, one.manifest)
    other = Average()
    with pytest.raises(InvalidInput, match="STATE_INVALID"):
        State(other, other.exact([]), one.manifest)
    with pytest.raises(InvalidInput, match="STATE_INVALID"):
        make(unit="household")


def test_a_state_cannot_be_changed() -> None:
    arrays = {name: np.array(array) for name, array in PTK.exact([]).items()}
    one = State.make(PTK, arrays, name="x", epsilon=1)
    before = one.to_bytes()
    arrays["totals"][0, 0] = 77
    assert one.to_bytes() == before
    with pytest.raises(ValueError, match="read-only"):
        one.arrays["totals"][0, 0] = 1
    with pytest.raises(TypeError):
        one.arrays["totals"] = arrays["totals"]  # type: ignore[index]


def test_the_charge_may_be_another_than_the_ptks_own() -> None:
    assert make(cost=PureCost(epsilon=2)).manifest.cost == PureCost(epsilon=2)
    assert Manifest.from_bytes(make().manifest.to_bytes()) == make().manifest


def test_kinds_come_from_entry_points_and_are_frozen() -> None:
    kinds = registry.kinds()
    assert kinds["statistics"] is Statistics
    assert registry.kinds() is kinds
    with pytest.raises(TypeError):
        kinds["mine"] = Average  # type: ignore[index]
    assert registry.make("statistics", PTK.as_json()) == PTK
    with pytest.raises(InvalidInput, match="PTK_KIND_UNKNOWN"):
        registry.make("no_such_kind", {})


@pytest.mark.parametrize("found", [Average, dict])
def test_an_entry_point_that_is_no_ptk_of_its_name_is_refused(
    found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        name, value = "mine", "somewhere:Mine"

        def load(self) -> Any:
            return found

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry()])
    with pytest.raises(InvalidInput, match="PTK_KIND_INVALID"):
        registry.kinds.__wrapped__()


def test_the_code_version_is_known() -> None:
    assert state.code_version() != "unknown"


def test_what_was_needed_is_certified_where_more_was_used_and_nowhere_else() -> None:
    plain, rich = make(), make(minimum={"epsilon": "0.1", "samples": 7})
    assert b"minimum" not in plain.to_bytes()[1]
    again = State.from_bytes(*rich.to_bytes())
    assert again.manifest.minimum == {"epsilon": "0.1", "samples": 7}
    assert (again.digest, again.to_bytes()) == (rich.digest, rich.to_bytes())


def test_a_certificate_says_over_which_windows_and_of_which_parts_a_state_is() -> None:
    plain, rolled = make(), make(over="rolling:2", parts=(("6", "ab"), ("7", "cd")))
    assert not {b"over", b"parts"} & {*plain.to_bytes()[1].split(b'"')}
    again = State.from_bytes(*rolled.to_bytes())
    assert (again.manifest.over, again.manifest.parts) == ("rolling:2", (("6", "ab"), ("7", "cd")))
    assert (again.digest, again.to_bytes()) == (rolled.digest, rolled.to_bytes())
