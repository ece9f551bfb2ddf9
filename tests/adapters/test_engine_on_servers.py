"""The engine on all servers at once: a stream goes in, states come out of a bucket, and another
store is told of them.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from devtools.servers.redis import Redis
from devtools.servers.s3 import S3
from ptklib.features import featurize
from ptkstore import Store
from ptkstore.api.views import StateView
from ptkstore.bus import RedisBus
from ptkstore.engine import parts as parts
from ptkstore.lake import Bucket, S3Lake
from ptkstore.ledger import Ledger
from ptkstore.metadata import Metadata
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec


@pytest.fixture(params=["minio", "versity"])
def s3(request: pytest.FixtureRequest) -> S3:
    found: S3 = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def on_servers(
    postgres_url: str, s3: S3, redis_server: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Store]:
    """Stores in directories of their own for what is raw, and with everything else in common."""
    bucket = s3.new_bucket_name()

    def open_ledger(_place: object, **options: Any) -> Ledger:
        return Ledger.open(postgres_url, key_path=tmp_path / "ledger.key", **options)

    monkeypatch.setattr(parts, "Ledger", SimpleNamespace(open=open_ledger))
    monkeypatch.setattr(
        parts, "Metadata", SimpleNamespace(open=lambda _place: Metadata.open(postgres_url))
    )
    monkeypatch.setattr(parts, "LocalBus", lambda: RedisBus(redis_server.url, prefix=f"{bucket}."))
    monkeypatch.setattr(
        parts,
        "DirectoryLake",
        lambda _path: S3Lake(
            Bucket(s3.endpoint, bucket, access_key=s3.access_key, secret_key=s3.secret_key)
        ),
    )
    return lambda name: Store(tmp_path / name, workers=0)


def test_a_window_on_servers_gives_states_that_another_store_is_told_of(
    on_servers: Callable[[str], Store],
) -> None:
    with on_servers("first") as store:
        store.create_stream(spec())
        assert (
            store.register(
                "hour-speed", stream="rides", kind="statistics", config=config(), target=0.1
            ).status
            == "ACTIVE"
        )
        with on_servers("second") as other:
            told: queue.Queue[StateView] = queue.Queue()
            stop = other.subscribe("hour-speed", told.put)
            for number in range(2):
                store.push("rides", day(number))
                (cycle,) = store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
                assert cycle.status == "DONE"
                assert told.get(timeout=30).version == number + 1
            stop()
            assert [one.version for one in other.states("hour-speed")] == [1, 2]
            frame = pa.table({"hour": pa.array([3, 9], pa.int32())})
            speeds = (
                featurize(frame, [other.get_state("hour-speed")])
                .column("hour_speed_mean")
                .to_pylist()
            )
            assert all(10 < speed < 40 for speed in speeds)
            ours, theirs = store.budget("rides"), other.budget("rides")
            assert ours.blocks == theirs.blocks
        assert not [one for one in store.doctor() if one.level == "ERROR"]
