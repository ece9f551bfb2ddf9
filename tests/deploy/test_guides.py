"""The guides for operators, word for word, on the real servers: what was spent before a loss is not
spent again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import yaml

from devtools.servers.cache import tell
from devtools.servers.recipes import get
from devtools.servers.redis import Redis
from devtools.servers.s3 import S3
from ptklib.ledger.state import Entry
from ptkstore import Store
from ptkstore.lake import Bucket, S3Lake
from ptkstore.ledger import Ledger
from ptkstore.wire.faults import AccessDenied
from tests.cli.sage import SAGE, environment, sage
from tests.deploy.compose_faults import secrets_of
from tests.deploy.files import broken
from tests.deploy.test_restoring import charged
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, day
from tests.rpc.store_suite import filled

GUIDES = Path(__file__).parents[2] / "docs/guides/operate"


def steps(page: str) -> list[str]:
    """The ``sh`` blocks of a guide, in order."""
    found = re.findall(r"^ *```sh\n(.*?)^ *```", (GUIDES / page).read_text(), flags=re.M | re.S)
    assert found
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(frozen=True)
class Place:
    """A deployment on the servers of the tests, as the guides name its parts."""

    root: Path
    database: str
    s3: S3
    bucket: str

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def variables(self) -> dict[str, str]:
        programs = get("postgres", tell)
        return {
            "SAGE_STORE": str(self.store),
            "BACKUP": str(self.root / "backups/today"),
            "KEYS": str(self.root / "keys"),
            "DATABASE": self.database,
            "PATH": f"{Path(SAGE).parent}{os.pathsep}{programs}{os.pathsep}{os.environ['PATH']}",
        }

    def follow(self, step: str) -> str:
        """Run one block of a guide in an empty directory."""
        run = subprocess.run(
            ["/bin/sh", "-eu", "-c", step],
            cwd=self.root / "elsewhere",
            env={**environment(), **self.variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, f"{step}\n{run.stdout}\n{run.stderr}"
        return run.stdout

    @contextmanager
    def serving(self) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        """``sage serve`` as the guides start it."""
        with subprocess.Popen(
            [SAGE, "serve", "--config", str(self.store / "sage.yaml"), "--json"],
            cwd=self.root / "elsewhere",
            env={**environment(), **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            text = ""
            while not text.endswith("}\n"):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                text += line
            try:
                yield json.loads(text)["address"], process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                process.wait(60)

    def history(self) -> list[Entry]:
        with Ledger.open(self.database, key_path=self.root / "keys/ledger.key") as ledger:
            return list(ledger.history())

    def lake(self) -> S3Lake:
        s3 = self.s3
        bucket = Bucket(
            s3.endpoint, self.bucket, access_key=s3.access_key, secret_key=s3.secret_key
        )
        return S3Lake(bucket)


@pytest.fixture
def place(postgres_url: str, minio: S3, redis_server: Redis, tmp_path: Path) -> Place:
    found = Place(tmp_path, postgres_url, minio, minio.new_bucket_name())
    for name in ("store", "keys", "backups", "elsewhere"):
        (tmp_path / name).mkdir()
    sections = {
        "server": {"address": f"127.0.0.1:{free_port()}"},
        "metadata": {"url": postgres_url},
        "ledger": {"url": postgres_url},
        "lake": {
            "endpoint": minio.endpoint,
            "bucket": found.bucket,
            "access_key": minio.access_key,
            "secret_key": minio.secret_key,
        },
        "bus": {"url": redis_server.url, "prefix": f"{found.bucket}."},
        "workers": {"processes": 0},
    }
    (found.store / "sage.yaml").write_text(yaml.safe_dump(sections))
    return found


def lose_everything(place: Place) -> None:
    """A fire: the directory, the database and the bucket are gone."""
    shutil.rmtree(place.store)
    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA sage_ledger CASCADE")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    place.lake().delete_unreferenced((), grace_seconds=-60)
    assert place.lake().list() == ()


def test_backup_and_restore_word_for_word(place: Place) -> None:
    once, daily = steps("backup.md")
    (restoring,) = steps("restore.md")
    with place.serving() as (address, process):
        with Store(address) as store:
            filled(store)
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
            store.push("rides", day(1), producer="depot", seq=1)
            place.follow(once)
            # Beside the running server.
            assert "copied 1 states" in place.follow(daily)
            common = len(place.history())
            # What a copy from now does not know.
            store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
            lost_state = store.states("hour-speed")[-1]
            assert lost_state.version == 2
        process.kill()
        process.wait()
    lost = place.history()
    lose_everything(place)

    told = place.follow(restoring)
    assert "ERROR" not in told
    assert re.search(r"rides +\d+ ", told)
    tomorrow = int(time.time() * 1000) // DAY_MS - FIRST_MS // DAY_MS + 2
    with place.serving() as (address, _), Store(address) as store:
        assert [one.version for one in store.states("hour-speed")] == [1]
        assert store.get_state("hour-speed").manifest.version == 1
        # The producer sends again, and goes on.
        store.push("rides", day(1), producer="depot", seq=1)
        store.push("rides", day(tomorrow), producer="depot", seq=2)
        cycles = store.run("rides", until_ms=FIRST_MS + (tomorrow + 1) * DAY_MS)
        assert cycles[-1].trained[0].outcome == "PUBLISHED"
        assert abs(cycles[-1].dp_records - 4000) < 300
        assert all(cycle.dp_records < 300 for cycle in cycles[:-1])
        assert store.states("hour-speed")[-1].digest != lost_state.digest
    now = place.history()
    assert now[:common] == lost[:common]
    assert charged(lost, common)
    assert charged(now, common)
    assert not charged(lost, common) & charged(now, common)


def test_a_backup_on_servers_holds_no_raw_data_and_no_key(place: Place) -> None:
    once, daily = steps("backup.md")
    with place.serving() as (address, _), Store(address) as store:
        filled(store)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        store.push("rides", day(1), producer="depot", seq=1)
        place.follow(once)
        place.follow(daily)
    secrets = [one.read_bytes() for one in place.store.rglob("*.key")]
    assert len(secrets) >= 4
    files = [one for one in (place.root / "backups").rglob("*") if one.is_file()]
    assert any(one.suffix == ".dump" for one in files)
    for one in files:
        assert CANARY.encode() not in one.read_bytes()
        assert not any(secret in one.read_bytes() for secret in secrets)


def test_an_old_database_below_a_living_directory_is_not_served(place: Place) -> None:
    once, daily = steps("backup.md")
    (restoring,) = steps("restore.md")
    with place.serving() as (address, _), Store(address) as store:
        filled(store)
        place.follow(once)
        place.follow(daily)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
    # The operator forgets the last line of the guide.
    lines = [line for line in restoring.splitlines() if not line.startswith("sage restore")]
    place.follow("\n".join(lines))
    refused = sage(
        "serve",
        "--config",
        place.store / "sage.yaml",
        "--json",
        cwd=place.root,
        code=1,
        **place.variables,
    )
    assert refused.error["reason"] == "HISTORY_CUT"
    place.follow("sage restore")
    with place.serving() as (address, _), Store(address) as store:
        assert store.budget("rides").exposure.dp_records == 0


def test_upgrading_word_for_word(place: Place) -> None:
    copying, checking = steps("upgrade.md")
    with place.serving() as (address, _), Store(address) as store:
        filled(store)
        place.follow(copying)
    with place.serving() as (address, _):
        assert place.follow(checking) == f"{address} is SERVING\n"
        with Store(address) as store:
            assert (
                store.run("rides", until_ms=FIRST_MS + DAY_MS)[0].trained[0].outcome == "PUBLISHED"
            )


def test_a_store_in_a_directory_alone_word_for_word(tmp_path: Path) -> None:
    page = (GUIDES / "restore.md").read_text().partition("## In a directory alone\n")[2]
    restoring = page.partition("```text\n")[2].partition("```")[0]
    found = re.search(r"In a directory alone: `(cp [^`]+)`", (GUIDES / "backup.md").read_text())
    assert found
    store, backup, keys = tmp_path / "store", tmp_path / "backup", tmp_path / "keys"
    keys.mkdir()
    variables = {"SAGE_STORE": str(store), "BACKUP": str(backup), "KEYS": str(keys)}

    def follow(step: str, code: int = 0) -> str:
        run = subprocess.run(
            ["/bin/sh", "-eu", "-c", step],
            cwd=tmp_path, env=environment(**variables), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert run.returncode == code, run.stdout + run.stderr
        return run.stdout + run.stderr

    with Store(store, workers=0) as one:
        filled(one)
        one.run("rides", until_ms=FIRST_MS + DAY_MS)
        # Beside the process that has it open.
        follow(found[1])
        assert "copied meta.db, ledger.db, 1 states" in follow('sage backup "$BACKUP"')
    assert "[BACKUP_EXISTS]" in follow('sage backup "$BACKUP"', code=2)
    assert "[STORE_EXISTS]" in follow(restoring, code=2)
    shutil.rmtree(store)
    assert "ERROR" not in follow(restoring)
    assert "version" in follow("sage ptk versions hour-speed")
    assert sage("doctor", cwd=store).code == 0


def test_health_tells_a_server_that_is_not_there(tmp_path: Path) -> None:
    refused = sage(
        "health", f"127.0.0.1:{free_port()}", "--timeout", "2", "--json", cwd=tmp_path, code=1
    )
    assert refused.error["reason"] in ("SERVER_UNAVAILABLE", "DEADLINE_PASSED")


def test_the_secrets_of_compose_serve_over_tls_with_the_probe_of_the_container(
    place: Place,
) -> None:
    """The settings that make-secrets.sh writes, with the addresses of the tests' servers in place
    of the containers'.
    """
    deploy = broken(
        place.root, "compose/sage.yaml.template", "bucket: sage", f"bucket: {place.bucket}"
    )
    secrets = secrets_of(deploy)
    body = yaml.safe_load((secrets / "sage.yaml").read_text())
    ours = yaml.safe_load((place.store / "sage.yaml").read_text())
    body |= {name: ours[name] for name in ("metadata", "ledger", "lake", "bus", "workers")}
    body["server"]["address"] = f"0.0.0.0:{free_port()}"
    body["server"]["metrics_address"] = f"127.0.0.1:{free_port()}"
    for name in ("cert_file", "key_file"):
        body["server"]["tls"][name] = str(secrets / Path(body["server"]["tls"][name]).name)
    (place.store / "sage.yaml").write_text(yaml.safe_dump(body))
    probe = yaml.safe_load((deploy / "compose/compose.yaml").read_text())["services"]["sage"][
        "healthcheck"
    ]["test"][1:]
    variables = {**place.variables, "SAGE_CA_FILE": str(secrets / "ca.pem")}
    # The image's working directory is where its settings are.
    asked = {
        "cwd": place.store,
        "env": {**environment(), **variables},
        "capture_output": True,
        "text": True,
    }
    down = subprocess.run(probe, timeout=60, check=False, **asked)  # type: ignore[call-overload]
    assert down.returncode == 1
    with place.serving() as (address, _):
        up = subprocess.run(probe, timeout=60, check=False, **asked)  # type: ignore[call-overload]
        assert up.returncode == 0, up.stderr
        token = sage(
            "token", "create", "boss", "--role", "operator", cwd=place.store, code=0, **variables
        ).out.strip()
        port = address.rpartition(":")[2]
        with Store(f"localhost:{port}", token=token, ca_file=secrets / "ca.pem") as store:
            filled(store)
        with (
            pytest.raises(AccessDenied, match="CREDENTIALS_MISSING"),
            Store(f"localhost:{port}", ca_file=secrets / "ca.pem") as store,
        ):
            store.streams()
