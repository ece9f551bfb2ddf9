"""The service on PostgreSQL, S3 and Redis, by settings alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptkstore import Store
from ptkstore.bus import RedisBus
from ptkstore.engine.guarded_lake import GuardedLake
from ptkstore.lake import S3Lake
from ptkstore.server import Server, open_store
from ptkstore.settings import Settings
from tests.engine.small import DAY_MS, FIRST_MS
from tests.rpc.small import PACE
from tests.rpc.store_suite import filled


def test_the_settings_choose_the_servers(
    tmp_path: Path, postgres_url: str, redis_server: Any, minio: Any
) -> None:
    sections: dict[str, Any] = {
        "server": {"address": "127.0.0.1:0", "threads": 32, "watchers": 16},
        "metadata": {"url": postgres_url},
        "ledger": {"url": postgres_url, "key_file": tmp_path / "ledger.key"},
        "lake": {
            "endpoint": minio.endpoint,
            "bucket": "service-tests",
            "access_key": minio.access_key,
            "secret_key": minio.secret_key,
        },
        "bus": {"url": redis_server.url, "prefix": "service-tests."},
        "workers": {"processes": 0},
    }
    settings = Settings(**sections)
    with (
        open_store(tmp_path / "store", settings) as store,
        Server(store, settings, pace=PACE) as server,
    ):
        assert isinstance(store.parts.lake, GuardedLake)
        assert isinstance(store.parts.lake.behind, S3Lake)
        assert isinstance(store.parts.bus, RedisBus)
        with Store(server.address) as remote:
            filled(remote)
            (cycle,) = remote.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert cycle.trained[0].outcome == "PUBLISHED"
            assert (
                remote.get_state("hour-speed").to_bytes()
                == store.get_state("hour-speed").to_bytes()
            )
            assert remote.events() == store.events()
    assert not list((tmp_path / "store").glob("*.db"))
