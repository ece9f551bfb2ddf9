"""``sage serve`` as a process, and the servers under it, which may be killed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import yaml

from devtools.servers.postgres import Postgres, start_postgres
from devtools.servers.redis import Redis, start_redis
from devtools.servers.running import LocalServer, free_port
from devtools.servers.s3 import S3, start_minio
from devtools.servers.settings import sage_yaml
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc
from tests.cli.sage import environment

__all__ = ["BUCKET", "Backends", "own_backends", "sage_server", "troubles_in_log"]

BUCKET = "chaos"


@dataclass(frozen=True)
class Backends:
    """The servers under the service, which may be killed."""

    postgres: Postgres
    minio: S3
    redis: Redis
    database: str = "sage"

    def start_again(self) -> None:
        """Start what was left dead, where the chaos ended early."""
        for one in (self.postgres, self.minio, self.redis):
            if not one.server.runs:
                one.server.start()


@contextmanager
def own_backends(say: Callable[[str], None]) -> Iterator[Backends]:
    """New ones, for nobody else."""
    with ExitStack() as stack:
        postgres = start_postgres(say)
        stack.callback(postgres.server.close)
        postgres.execute("CREATE DATABASE sage")
        minio = start_minio(say)
        stack.callback(minio.server.close)
        redis = start_redis(say)
        stack.callback(redis.server.close)
        yield Backends(postgres, minio, redis)


def sage_server(folder: Path, backends: Backends) -> LocalServer:
    """``sage serve`` on these backends.

    Its store is ``folder/store``; its settings and log are elsewhere.
    """
    port = free_port()
    parts = folder / "server"
    parts.mkdir()
    sections = yaml.safe_load(
        sage_yaml(
            backends.postgres,
            backends.minio,
            backends.redis,
            database=backends.database,
            bucket=BUCKET,
        )
    )
    sections["server"] = {
        "address": f"127.0.0.1:{port}",
        "threads": 64,
        "watchers": 32,
        "drain_seconds": 5,
    }
    sections["workers"] = {"processes": 1}
    sections["ledger"]["key_file"] = str(folder / "ledger.key")
    (folder / "sage.yaml").write_text(yaml.safe_dump(sections))

    def answers() -> None:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            ptk_pb2_grpc.PtkServiceStub(channel).ListPtkKinds(
                ptk_pb2.ListPtkKindsRequest(), timeout=5
            )

    serve = "from ptkstore.cli import main; main()"
    return LocalServer(
        "sage",
        port,
        parts,
        [
            sys.executable,
            "-c",
            serve,
            "serve",
            "--config",
            str(folder / "sage.yaml"),
            "--store",
            str(folder / "store"),
        ],
        answers,
        environment={**environment(), "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def troubles_in_log(sage: LocalServer) -> list[str]:
    """Lines of the server's log that tell of errors that are not ours."""
    wrong = []
    for line in sage.log.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            told = json.loads(line)
            if told["event"] == "failed":
                wrong.append(f"in the log: {line:.300}")
        elif "Traceback" in line:
            wrong.append(f"in the log: {line:.300}")
    return wrong
