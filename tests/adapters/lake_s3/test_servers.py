"""Servers of buckets that go away, credentials, and settings that are refused."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devtools.servers.s3 import S3
from ptklib.errors import InvalidInput
from ptkstore.backoff import SERVER_AWAY
from ptkstore.lake import LakeUnavailable, S3Lake
from ptkstore.lake.s3 import bucket as s3_bucket
from ptkstore.lake.s3.bucket import Bucket
from tests.adapters.lake_s3.buckets import (
    WAIT,
    open_bucket,
)

ROOT = Path(__file__).parents[3]


def test_a_server_that_goes_away_and_comes_back(
    own_minio: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = own_minio.new_bucket_name()
    lake, hasty = (
        S3Lake(open_bucket(own_minio, name)),
        S3Lake(open_bucket(own_minio, name, attempts=2)),
    )
    digest = lake.put(b"before", b"{}")
    own_minio.server.kill()
    acts: list[Callable[[], object]] = [
        lambda: hasty.put(b"a", b"{}"),
        lambda: hasty.get(digest),
        lambda: hasty.exists(digest),
        lambda: hasty.list(),
        lambda: hasty.delete_unreferenced([]),
    ]
    for act in acts:
        with pytest.raises(LakeUnavailable, match="LAKE_UNAVAILABLE"):
            act()
    # Who waits a little is served when the server is back.
    often = replace(SERVER_AWAY, longest_seconds=0.2)
    monkeypatch.setattr(s3_bucket, "SERVER_AWAY", often)
    patient = S3Lake.__new__(S3Lake)
    patient._bucket = open_bucket(own_minio, name, attempts=200)
    late: list[str] = []
    thread = threading.Thread(target=lambda: late.append(patient.put(b"late", b"{}")))
    thread.start()
    own_minio.server.start()
    thread.join(WAIT)
    assert lake.get(late[0]) == (b"late", b"{}")
    assert lake.get(digest) == (b"before", b"{}")


def test_wrong_credentials_are_told_at_once_and_not_repeated(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("there is nothing to wait for"))
    wrong = Bucket(s3.endpoint, "a-bucket", access_key=s3.access_key, secret_key="wrong-secret")
    with pytest.raises(LakeUnavailable, match="LAKE_UNAVAILABLE") as refusal:
        S3Lake(wrong)
    assert "wrong-secret" not in str(refusal.value)


def test_credentials_come_from_the_environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    lake = S3Lake(Bucket(s3.endpoint, s3.new_bucket_name()))
    assert lake.get(lake.put(b"a", b"{}")) == (b"a", b"{}")


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "host:9000",
        "ftp://host",
        "http://user:secret@host",
        "http://host/path",
        "http://",
        "secret",
    ],
)
def test_endpoints_that_are_refused_without_telling_passwords(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="LAKE_URL_INVALID") as refusal:
        Bucket(endpoint, "bucket", access_key="a", secret_key="b")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"bucket": "No Bucket"}, "LAKE_URL_INVALID"),
        ({"bucket": ""}, "LAKE_URL_INVALID"),
        ({"prefix": "a"}, "LAKE_URL_INVALID"),
        ({"prefix": "/"}, "LAKE_URL_INVALID"),
        ({"prefix": "a//"}, "LAKE_URL_INVALID"),
        ({"secret_key": None}, "LAKE_URL_INVALID"),
        ({"part_bytes": 1}, "VALUE_INVALID"),
        ({"timeout_seconds": 0}, "VALUE_INVALID"),
        ({"attempts": 0}, "VALUE_INVALID"),
    ],
)
def test_settings_that_are_refused(wrong: dict[str, Any], reason: str) -> None:
    settings = {"bucket": "bucket", "access_key": "a", "secret_key": "b", **wrong}
    with pytest.raises(InvalidInput, match=reason):
        Bucket("http://127.0.0.1:1", **settings)


def test_the_client_is_imported_only_when_a_bucket_is_opened() -> None:
    code = "import sys; import ptkstore.lake; assert not {'minio', 'urllib3'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True)
