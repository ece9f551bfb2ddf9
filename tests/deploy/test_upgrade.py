"""Stores that earlier releases left are opened, brought up to date and go on: what they promised
still holds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from devtools.servers.cache import tell, unpack
from devtools.servers.recipes import get
from ptklib.features import featurize
from ptkstore import LocalStore, Store
from ptkstore.api.times import GRAIN_MS
from ptkstore.metadata import Metadata, MetadataDamaged
from ptkstore.metadata.database.schema import REVISIONS, VERSION_TABLE
from ptkstore.server import Server, open_store
from ptkstore.settings import Settings
from tests.engine.small import DAY_MS, FIRST_MS, day
from tests.rpc.small import settings_of

STORES = sorted((Path(__file__).parent / "stores").glob("schema-*.tar.gz"))


@pytest.fixture(params=STORES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def left(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """What a release left, and the schema it had."""
    unpack(request.param, tmp_path)
    for key in tmp_path.rglob("*.key"):
        key.chmod(0o600)
    found = re.search(r"schema-(\d+)", request.param.name)
    assert found
    return tmp_path, found[1]


def check(store: LocalStore) -> None:
    """What was trained is served; what was pushed is trained on; what was spent is known."""
    assert [one.version for one in store.states("hour-speed")] == [1]
    assert {one.created_ms % GRAIN_MS for one in store.states("hour-speed")} == {0}
    assert {(one.at_ms or 1) % GRAIN_MS for one in store.events()} == {0}
    spent = {block.name: block.left for block in store.budget("rides").blocks}
    (cycle,) = store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    assert cycle.trained[0].outcome == "PUBLISHED"
    assert abs(cycle.dp_records - 400) < 150
    store.push("rides", day(2, 400), seq=2)
    store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
    assert [one.version for one in store.states("hour-speed")] == [1, 2, 3]
    frame = pa.table({"hour": pa.array([3, 9], pa.int32())})
    speeds = (
        featurize(frame, [store.get_state("hour-speed@v1")]).column("hour_speed_mean").to_pylist()
    )
    assert all(0 <= speed <= 60 for speed in speeds)
    now = {block.name: block.left for block in store.budget("rides").blocks}
    assert {name: now[name] for name in spent if name < "2026-01-02"} == {
        name: value for name, value in spent.items() if name < "2026-01-02"
    }
    assert not [one for one in store.doctor() if one.level == "ERROR"]


def revision_of(url: str) -> Any:
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    finally:
        engine.dispose()


def test_there_is_a_store_of_every_schema_that_was_kept() -> None:
    kept = [path.name[len("schema-") : -len(".tar.gz")] for path in STORES]
    assert kept
    assert set(kept) <= set(REVISIONS)
    assert REVISIONS[-1] in kept or REVISIONS[-2] in kept, (
        "make one: python -m tests.deploy.make_store"
    )


def test_a_store_in_a_directory_goes_on(left: tuple[Path, str]) -> None:
    root, schema = left
    url = f"sqlite:///{root / 'sqlite/meta.db'}"
    assert revision_of(url) == schema
    with Store(root / "sqlite", workers=0) as store:
        check(store)
    assert revision_of(url) == REVISIONS[-1]


def test_a_store_in_postgresql_goes_on_and_serves(
    left: tuple[Path, str], postgres_url: str
) -> None:
    root, schema = left
    psql = [
        str(get("postgres", tell) / "psql"),
        "--quiet",
        "--set=ON_ERROR_STOP=1",
        f"--file={root / 'postgres.sql'}",
    ]
    subprocess.run([*psql, postgres_url], check=True, capture_output=True, env={**os.environ})
    url = postgres_url.replace("postgresql://", "postgresql+psycopg://")
    assert revision_of(url) == schema
    sections = {
        "metadata": {"url": postgres_url},
        "ledger": {"url": postgres_url},
        "workers": {"processes": 0},
    }
    settings = Settings.checked(sections, "here")
    with open_store(root / "postgres", settings) as store, Server(store, settings_of()) as server:
        with Store(server.address) as remote:
            assert remote.get_state("hour-speed@v1").manifest.version == 1
        check(store)
    assert revision_of(url) == REVISIONS[-1]


def test_an_older_release_refuses_what_a_newer_one_left(
    left: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the guide says: there is no way down, and nothing is touched."""
    root, schema = left
    older = REVISIONS[: REVISIONS.index(schema)]
    before = root / "before.db"
    shutil.copyfile(root / "sqlite/meta.db", before)
    monkeypatch.setattr("ptkstore.metadata.database.schema.REVISIONS", older)
    with pytest.raises(MetadataDamaged, match="SCHEMA_TOO_NEW"):
        Metadata.open(root / "sqlite/meta.db")
    assert (root / "sqlite/meta.db").read_bytes() == before.read_bytes()
