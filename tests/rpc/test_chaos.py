"""The short form of ``python -m benchmarks chaos``: everything is killed once under load, and
nothing is lost or doubled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from devtools.servers.cache import tell
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore.server import open_store
from ptkstore.settings import Settings
from tests.rpc.chaos import VICTIMS, chaos
from tests.rpc.chaos_backends import BUCKET, Backends
from tests.rpc.chaos_load import DAY_MS, FIRST_MS, ROWS
from tests.rpc.chaos_told import Told
from tests.rpc.chaos_verdict import Verdict, judge


def test_everything_is_killed_once(
    tmp_path: Path, postgres: Any, postgres_url: str, minio: Any, redis_server: Any
) -> None:
    backends = Backends(postgres, minio, redis_server, postgres_url.rpartition("/")[2])
    try:
        told = chaos(tmp_path, backends, seconds=0, seed=23, say=tell)
        verdict = judge(tmp_path, told)
        assert verdict.broken() == {}, verdict.notes
        assert told.kills == dict.fromkeys(VICTIMS, 1)
        assert told.windows >= 2
        assert verdict.figures["states published"] >= 2  # type: ignore[operator]
        spoiled = tampered(tmp_path, backends, told)
        assert spoiled.broken() == {
            "rows_lost": 1 + ROWS,
            "rows_doubled": ROWS,
            "charges_doubled": 1,
            "charges_reserved": 1,
            "states_unreadable": 1,
            "subscribers_behind": 1,
            "versions_missed": 1,
            # The doctor names the state that is gone and the block that the ledger alone knows.
            "wrong": 2,
        }, spoiled.notes
    finally:
        backends.start_again()


def tampered(folder: Path, backends: Backends, told: Told) -> Verdict:
    """The verdict after each of its numbers was given a reason."""
    told.archived[0] += ROWS
    told.archived[1] -= ROWS
    told.heard["follower-0"].pop()
    told.heard["follower-1"].insert(0, 2)
    with open_store(folder / "store", Settings.read(folder / "sage.yaml")) as store:
        # A day whose count a kill took is skipped by the verdict: one that was counted is spoiled.
        counted = next(cycle for cycle in store.cycles("rides") if cycle.dp_records)
        told.rows_by_day[counted.window - FIRST_MS // DAY_MS] += 1
        ledger = store.parts.ledger
        ledger.add_blocks("rides", ["made-up"])
        for key in ("made-up", "kept"):
            grant = ledger.reserve("rides", [Slice(("made-up",))], PureCost(epsilon=1), key=key)
            if key == "made-up":
                ledger.spend(grant)
        gone = store.states("hour-rides")[0].digest
    backends.minio.client().remove_object(BUCKET, f"sha256/{gone[:2]}/{gone}.json")
    return judge(folder, told)
