"""Settings that change what a server does: metrics over HTTP, bytes per second, TLS to subscribers,
links into the lake.
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput, SageError
from ptkstore import Store
from ptkstore.api.permissions import PERMISSIONS
from ptkstore.lake import digest_of
from ptkstore.server import Server, open_store
from ptkstore.settings import Settings
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc
from ptkstore.wire.faults import LimitExceeded
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, day, spec
from tests.rpc.small import PACE, channel_to, serving
from tests.rpc.store_suite import filled
from tests.rpc.test_deliveries import Subscriber, subscribe, until


def free_address() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/plain")
        text: str = answer.read().decode()
    return text


class TestMetrics:
    def told(self, path: Path, tables: list[pa.Table], refused: int = 0) -> dict[str, str]:
        """Every series after some pushes and a window, but for times; refused pushes are pushes."""
        address = free_address()
        with serving(path, server={"metrics_address": address}) as (server, store):
            store.create_stream(spec(out_of_bounds="refuse"))
            with Store(server.address) as remote:
                remote.stream("rides")
                for number, table in enumerate(tables):
                    expected = (
                        pytest.raises(SageError, match="RECORDS_REFUSED")
                        if number < refused
                        else nullcontext()
                    )
                    with expected:
                        remote.push("rides", table, producer="p", seq=number)
                store.run("rides", until_ms=FIRST_MS + DAY_MS)
                remote.budget("rides")
            # A call is counted when the server has seen its end.
            until(lambda: "GetBudget" in scraped(address))
            text = scraped(address)
        assert CANARY not in text
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return dict(
            line.rsplit(" ", 1) for line in lines if not re.search(r"_created|_bucket|_sum", line)
        )

    def test_they_are_served_and_do_not_depend_on_records(self, tmp_path: Path) -> None:
        fast = day(0).set_column(2, "speed", pa.array(np.full(4000, 1e6)))
        few = self.told(tmp_path / "few", [day(0, 10), day(0, 1)])
        many = self.told(tmp_path / "many", [day(0), day(0, 3000), day(0, 50)])
        refused = self.told(tmp_path / "refused", [fast, day(0)], refused=1)
        assert few == many == refused
        assert not [name for name in few if "Append" in name]
        assert (
            few['sage_calls_total{code="OK",method="/ptkstore.v1.BudgetService/GetBudget"}']
            == "1.0"
        )

    def test_what_touches_records_is_not_timed(self, tmp_path: Path) -> None:
        address = free_address()
        with serving(tmp_path, server={"metrics_address": address}) as (server, store):
            filled(store)
            with Store(server.address) as remote:
                remote.run("rides", until_ms=FIRST_MS + DAY_MS)
                remote.doctor()
                remote.ptks()
            timed = set(
                re.findall(r'sage_call_seconds_count\{method="([^"]+)"\}', scraped(address))
            )
        assert "/ptkstore.v1.PtkService/ListPtks" in timed
        assert [name for name in timed if PERMISSIONS[name].records] == []
        # Sealing writes what is held: the calls that seal, and the doctor, who reads it, grow with
        # it.
        grows = {
            name.rpartition("/")[2] for name, one in PERMISSIONS.items() if one.records == "grows"
        }
        assert grows == {"SealStream", "CloseWindow", "RunDoctor"}

    def test_without_the_setting_nothing_listens(self, tmp_path: Path) -> None:
        with serving(tmp_path) as (server, _):
            assert server._metrics_server is None

    def test_it_ends_with_the_server(self, tmp_path: Path) -> None:
        address = free_address()
        with serving(tmp_path, server={"metrics_address": address}):
            scraped(address)
        with pytest.raises(urllib.error.URLError):
            scraped(address)


def test_a_producer_that_sends_too_many_bytes_is_told_and_others_are_not(tmp_path: Path) -> None:
    batch = day(0, 2000)
    rate = 2 * batch.nbytes
    with serving(tmp_path, server={"append_bytes_per_second": rate}) as (server, store):
        store.create_stream(spec())
        with Store(server.address) as remote:
            remote.push("rides", batch, producer="p", seq=0)
            with pytest.raises(LimitExceeded, match="RATE_LIMITED") as refusal:
                [remote.push("rides", batch, producer="p", seq=number) for number in range(1, 200)]
            wait = refusal.value.details["retry_seconds"]
            assert isinstance(wait, float)
            assert 0 < wait < 3
            # What was acknowledged stays, and other calls go on.
            assert remote.stream("rides") == spec()
            (cycle,) = remote.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert cycle.dp_records > 1800


class TestSubscribersOverTls:
    def heard(self, path: Path, pki: Path, ca_file: Path, seconds: float) -> tuple[list[int], int]:
        """What a subscriber with a certificate of our CA is told, and how many deliveries
        failed.
        """
        subscriber = Subscriber()
        pair = ((pki / "server.key").read_bytes(), (pki / "server.pem").read_bytes())
        theirs = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
        ptk_pb2_grpc.add_SubscriberServiceServicer_to_server(subscriber, theirs)
        port = theirs.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        theirs.start()
        sections: dict[str, Any] = {"subscribers": {"allowed": ["localhost:*"], "ca_file": ca_file}}
        try:
            with serving(path, **sections) as (server, store), channel_to(server) as channel:
                filled(store)
                subscribe(channel, f"localhost:{port}")
                store.run("rides", until_ms=FIRST_MS + DAY_MS)

                def late() -> int:
                    with store.parts.metadata.read() as tx:
                        return sum(one.attempts for one in tx.notifications.list())

                until(lambda: subscriber.told or late() > 0, seconds)
                return subscriber.told, late()
        finally:
            theirs.stop(None).wait()

    def test_a_subscriber_of_the_ca_is_told(self, tmp_path: Path, pki: Path) -> None:
        assert self.heard(tmp_path, pki, pki / "ca.pem", 20) == ([1], 0)

    def test_one_of_another_ca_is_told_nothing(self, tmp_path: Path, pki: Path) -> None:
        told, attempts = self.heard(tmp_path, pki, pki / "stranger.pem", 20)
        assert told == []
        assert attempts > 0


def test_a_link_into_the_lake_is_read_with_plain_http(tmp_path: Path, minio: Any) -> None:
    lake = {
        "endpoint": minio.endpoint,
        "bucket": "links",
        "access_key": minio.access_key,
        "secret_key": minio.secret_key,
    }
    sections: dict[str, Any] = {
        "server": {"address": "127.0.0.1:0", "threads": 32, "watchers": 16},
        "lake": lake,
        "workers": {"processes": 0},
    }
    settings = Settings(**sections)
    with (
        open_store(tmp_path / "store", settings) as store,
        Server(store, settings, pace=PACE) as server,
    ):
        filled(store)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        with channel_to(server) as channel:
            ptks = ptk_pb2_grpc.PtkServiceStub(channel)
            plain = ptks.GetState(ptk_pb2.GetStateRequest(name="hour-speed"))
            found = ptks.GetState(ptk_pb2.GetStateRequest(name="hour-speed", presign=True))
        assert plain.presigned_url == ""
        assert minio.secret_key not in found.presigned_url
        with urllib.request.urlopen(found.presigned_url, timeout=10) as answer:
            arrays = answer.read()
        assert hashlib.sha256(arrays).digest() == hashlib.sha256(found.arrays).digest()
        assert digest_of(arrays, found.manifest) == found.state.digest
        # The link is for these bytes alone.
        elsewhere = found.presigned_url.replace(found.state.digest, "0" * 64)
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(elsewhere, timeout=10)
        error.value.close()
        assert error.value.code == 403


def test_a_lake_in_a_directory_has_no_links(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, store), channel_to(server) as channel:
        filled(store)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        found = ptk_pb2_grpc.PtkServiceStub(channel).GetState(
            ptk_pb2.GetStateRequest(name="hour-speed", presign=True)
        )
        assert found.presigned_url == ""
        assert found.arrays


def test_a_server_that_cannot_read_its_files_leaves_nothing_behind(tmp_path: Path) -> None:
    sections: dict[str, Any] = {
        "subscribers": {"allowed": ["localhost:*"], "ca_file": tmp_path / "missing.pem"}
    }
    settings = Settings(**sections)
    with open_store(tmp_path / "store", settings) as store:
        before = set(threading.enumerate())
        with pytest.raises(InvalidInput, match="FILE_UNREADABLE"):
            Server(store, settings)
        assert set(threading.enumerate()) <= before
