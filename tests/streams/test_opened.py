"""Several grants opened together, and what was never spent for stays closed."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.numpy

from ptklib.errors import GrantRefused
from ptklib.ledger.slices import Slice, TagRange
from ptklib.privacy.costs import PureCost
from ptkstore import Store
from ptkstore.streams.reading.opened import DirectoryOpener, spend_and_open
from ptkstore.workers.protocol import TrainJob
from ptkstore.workers.train import train_each
from tests.engine.small import DAY_MS, FIRST_MS, ROWS, config, day, open_store, spec

BLOCKS = ("2026-01-01T00:00Z", "2026-01-01T12:00Z")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(tmp_path)
    store.push("rides", day(0))
    store._parts.writer("rides").seal_due(FIRST_MS + DAY_MS)
    store._parts.ledger.add_blocks("rides", BLOCKS)
    return store


def reserve(store: Store, tags: TagRange) -> object:
    return store._parts.ledger.reserve("rides", [Slice(BLOCKS, tags)], PureCost(epsilon="0.1"))


def test_grants_open_their_union_once(store: Store) -> None:
    low, high, all_but = (
        TagRange.of_shares(a, b) for a, b in ((0, "0.3"), ("0.2", "0.5"), ("0.5", 1))
    )
    grants = [reserve(store, tags) for tags in (low, high)]
    opened = spend_and_open(store._parts.path, spec(), grants, store._parts.ledger)  # type: ignore[arg-type]
    assert [ranges for _, ranges in opened.ranges] == [((0, high.stop),)] * 2
    found = list(opened.read())
    assert sum(len(one.batch) for one in found) == ROWS
    assert "tag" not in found[0].batch.schema.names
    for tags in (low, high, TagRange.of_shares("0.1", "0.4")):
        opened.require(tags.start, tags.stop)
    for tags in (all_but, TagRange.of_shares("0.4", "0.51"), TagRange.of_shares(0, 1)):
        with pytest.raises(GrantRefused) as refusal:
            opened.require(tags.start, tags.stop)
        assert refusal.value.reason == "OPENED_TOO_FAR"
    assert store._parts.ledger.left(
        "rides", BLOCKS, TagRange.of_shares("0.21", "0.29")
    ) < store._parts.ledger.left("rides", BLOCKS, all_but)
    store.close()


def test_what_was_not_spent_for_stays_closed(store: Store) -> None:
    tags = TagRange.of_shares(0, "0.1")
    opened = spend_and_open(store._parts.path, spec(), [reserve(store, tags)], store._parts.ledger)  # type: ignore[list-item]
    wider = tuple((block, ((0, 2**64),)) for block in BLOCKS)
    for forged in (
        opened._replace(ranges=wider),
        DirectoryOpener(str(store._parts.path), spec().as_json(), wider),
        opened._replace(mac=bytes(32)),
    ):
        with pytest.raises(GrantRefused) as refusal:
            list(forged.read())
        assert refusal.value.reason == "OPENED_FORGED"
    store.close()


def test_one_refused_grant_spends_none(store: Store) -> None:
    good, used = (reserve(store, TagRange.of_shares(0, "0.1")) for _ in range(2))
    ledger = store._parts.ledger
    ledger.spend(used)  # type: ignore[arg-type]
    with pytest.raises(GrantRefused) as refusal:
        spend_and_open(store._parts.path, spec(), [good, used], ledger)  # type: ignore[list-item]
    assert refusal.value.reason == "GRANT_USED"
    assert ledger.fate(good.charge) == "RESERVED"  # type: ignore[attr-defined]
    with pytest.raises(GrantRefused):
        spend_and_open(store._parts.path, spec(), [good, good], ledger)  # type: ignore[list-item]
    assert ledger.fate(good.charge) == "RESERVED"  # type: ignore[attr-defined]
    store.close()


def test_a_worker_trains_on_no_tag_that_was_not_spent_for(store: Store) -> None:
    tags = TagRange.of_shares(0, "0.5")
    opened = spend_and_open(store._parts.path, spec(), [reserve(store, tags)], store._parts.ledger)  # type: ignore[list-item]
    fields = {
        "kind": "statistics",
        "config": config("count"),
        "epsilon": "50",
        "delta": "0",
        "records_per_unit": 1,
        "previous": None,
        "opener": opened,
    }
    inside = TrainJob(name="inside", ranges=((tags.start, tags.stop),), **fields)  # type: ignore[arg-type]
    beyond = TrainJob(name="beyond", ranges=((tags.start, tags.stop + 1),), **fields)  # type: ignore[arg-type]
    trained = {one.name: one for one in train_each([inside, beyond])}
    assert trained["beyond"].arrays is None
    assert "OPENED_TOO_FAR" in trained["beyond"].failure
    arrays = safetensors.numpy.load(trained["inside"].arrays or b"")
    assert abs(arrays["totals"].sum() - ROWS / 2) < 200
    store.close()
