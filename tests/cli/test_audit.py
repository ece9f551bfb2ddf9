"""``sage audit``: one command, a report to hand on, exit 1 where a claim is wrong, and no look at a
protected stream.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ptkstore.ledger import Ledger
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.reading.reader import StreamReader
from tests.auditing.plants import plant_half_noise, plant_lowest_bit
from tests.cli.sage import call
from tests.engine.small import config, day, open_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A stream with a day of records, and a PTK on it."""
    with open_store(tmp_path / "store") as made:
        made.register("speed", stream="rides", kind="statistics", config=config(), target=0.2)
        made.push("rides", day(0))
    return tmp_path / "store"


def audited(store: Path, *more: str, code: int = 0) -> Any:
    return call(
        "audit",
        "speed",
        "--runs",
        "2000",
        "--store",
        store,
        "--json",
        *more,
        cwd=store.parent,
        code=code,
    ).json


def test_a_ptk_of_the_store_is_audited_with_its_own_configuration(store: Path) -> None:
    body = audited(store)
    assert body["passed"]
    found = {one["name"]: one for one in body["findings"]}
    assert set(found) == {"speed", "block count of rides"}
    for one in found.values():
        assert one["verdict"] == "HOLDS", one
        assert one["claim"]["epsilon"] / 4 <= one["lower_bound"] <= one["claim"]["epsilon"]
        assert one["runs_per_side"] == 2000
    assert found["speed"]["about"]["kind"] == "statistics"
    assert body["confidence"] == 0.999999
    assert body["tests"] == sum(one["tests"] for one in body["findings"])
    assert {"sage", "numpy", "scipy", "python"} <= set(body["versions"])


def test_no_grant_is_asked_for_and_no_block_is_opened(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the audit touched a protected stream")

    for kind, names in (
        (Ledger, ("reserve", "reserve_all", "request", "charge", "spend", "spend_all")),
        (StreamReader, ("spend", "open_slice", "count_blocks", "_tagged", "_records")),
        (Vault, ("key", "reading", "tag_key")),
    ):
        for name in names:
            monkeypatch.setattr(kind, name, never)
    assert audited(store)["passed"]


@pytest.mark.parametrize("plant", [plant_half_noise, plant_lowest_bit])
def test_a_planted_fault_ends_with_1(
    store: Path, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    body = audited(store, code=1)
    assert not body["passed"]
    assert {one["verdict"] for one in body["findings"]} == {"EXCEEDS"}
    assert "contradicted" in body["verdict"]


def test_the_page_needs_nothing_else(store: Path, tmp_path: Path) -> None:
    run = call(
        "audit", "speed", "--runs", "1000", "--html", "a.html", "--store", store, cwd=tmp_path
    )
    assert "claimed epsilon" in run.out
    assert "confidence 0.999999 for all" in run.out
    text = (tmp_path / "a.html").read_text()
    assert not re.findall(r"https?:|src=|<link|<script", text)
    for words in (
        "Clopper-Pearson",
        "speed",
        "block count of rides",
        "No stream, block, key or grant was used",
    ):
        assert words in text


def test_what_is_to_be_audited_must_be_said(store: Path) -> None:
    for arguments in ((), ("speed", "--all")):
        assert (
            "name a PTK of the store, or give --all"
            in call("audit", *arguments, cwd=store, code=2).err
        )
    assert "PTK_UNKNOWN" in call("audit", "nothing", "--store", store, cwd=store, code=1).err
