"""A server on a free port, with stubs; one that wants credentials, with two streams; and
certificates.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from ptkstore.server import Server
from ptkstore.v1 import ptk_pb2_grpc, stream_pb2_grpc
from tests.engine.small import config, spec
from tests.rpc.calling import Clients
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    with (
        serving(tmp_path, auth={"required": True}) as (server, store),
        channel_to(server) as channel,
    ):
        filled(store)
        store.create_stream(spec(name="other"))
        store.register("foreign", stream="other", kind="statistics", config=config(), target=0.3)
        yield Clients(server, store, channel)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, a server's certificate and two clients'."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    request = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(
        *request, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2"
    )
    for name in ("server", "depot", "stranger"):
        openssl(*request, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.pem",
            "-days", "2", "-extfile", "ext",
        )  # fmt: skip
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as (server, _):
        yield server


@pytest.fixture
def channel(server: Server) -> Iterator[grpc.Channel]:
    with channel_to(server) as channel:
        yield channel


@pytest.fixture
def streams(channel: grpc.Channel) -> Any:
    return stream_pb2_grpc.StreamServiceStub(channel)


@pytest.fixture
def ptks(channel: grpc.Channel) -> Any:
    return ptk_pb2_grpc.PtkServiceStub(channel)
