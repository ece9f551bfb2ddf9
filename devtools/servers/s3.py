"""Two S3 servers that share no code: MinIO, and the Versity gateway over a directory."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3
from minio import Minio

from devtools.servers.cache import Say
from devtools.servers.recipes import get
from devtools.servers.running import LocalServer, new_directory, new_secret, running

__all__ = ["S3", "start_minio", "start_versity"]

ACCESS_KEY = "sage-access"
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class S3:
    """A running S3 server."""

    server: LocalServer
    access_key: str
    secret_key: str

    @property
    def endpoint(self) -> str:
        """Its URL, without credentials."""
        return f"http://127.0.0.1:{self.server.port}"

    def client(self) -> Minio:
        """A client that tries once."""
        return _client(self.server.port, self.access_key, self.secret_key)

    def new_bucket_name(self) -> str:
        """A name that was not given out before."""
        return f"test-{next(_NUMBERS)}"


def start_minio(say: Say) -> S3:
    """A new, empty MinIO."""
    program = get("minio", say)
    secret = new_secret()

    def make(port: int) -> LocalServer:
        directory = new_directory("minio")
        # No update check and no browser: the tests talk to nobody else.
        environment = {
            "MINIO_ROOT_USER": ACCESS_KEY,
            "MINIO_ROOT_PASSWORD": secret,
            "MINIO_UPDATE": "off",
        }
        command = [
            str(program),
            "server",
            str(directory / "data"),
            "--address",
            f"127.0.0.1:{port}",
            "--quiet",
        ]
        return _server(
            "minio", port, directory, secret, command, {**environment, "MINIO_BROWSER": "off"}
        )

    return S3(running(make), ACCESS_KEY, secret)


def start_versity(say: Say) -> S3:
    """A new, empty Versity gateway."""
    program = get("versity", say)
    secret = new_secret()

    def make(port: int) -> LocalServer:
        directory = new_directory("versity")
        (directory / "data").mkdir()
        environment = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": secret}
        command = [
            str(program),
            "--port",
            f"127.0.0.1:{port}",
            "--quiet",
            "posix",
            str(directory / "data"),
        ]
        return _server("versity", port, directory, secret, command, environment)

    return S3(running(make), ACCESS_KEY, secret)


def _server(
    name: str,
    port: int,
    directory: Path,
    secret: str,
    command: list[str],
    environment: Mapping[str, str],
) -> LocalServer:
    client = _client(port, ACCESS_KEY, secret)

    def answers() -> None:
        client.list_buckets()

    return LocalServer(name, port, directory, command, answers, dict(environment))


def _client(port: int, access_key: str, secret_key: str) -> Minio:
    pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(5))
    return Minio(
        f"127.0.0.1:{port}",
        access_key,
        secret_key,
        secure=False,
        region="us-east-1",
        http_client=pool,
    )
