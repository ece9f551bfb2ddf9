"""Sweeps delete what is old and unreferenced, and nothing that is being put meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from devtools.servers.s3 import S3
from ptkstore.lake import S3Lake, digest_of
from ptkstore.lake.s3 import lake as s3_lake
from ptkstore.lake.s3.bucket import Bucket
from tests.adapters.lake_s3.buckets import (
    SUFFIXES,
    WAIT,
    Gate,
    WatchedBucket,
    key_of,
    keys,
    open_bucket,
)
from tests.adapters.lake_suite import ABSENT

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("part", [".json", ".safetensors", "touched/"])
def test_a_put_that_meets_a_sweep_is_there_when_it_returns(
    watched: WatchedBucket, s3: S3, part: str
) -> None:
    sweeping, putting = S3Lake(watched), S3Lake(open_bucket(s3, watched.name))
    digest = putting.put(b"a", b"{}")
    watched.before = gate = Gate("delete", part)  # the sweep has looked, and is about to delete
    swept: list[tuple[str, ...]] = []
    sweep = threading.Thread(
        target=lambda: swept.append(sweeping.delete_unreferenced([], grace_seconds=-1))
    )
    sweep.start()
    assert gate.reached.wait(WAIT)
    returned = threading.Event()

    def put() -> None:
        putting.put(b"a", b"{}")
        returned.set()

    thread = threading.Thread(target=put)
    thread.start()
    assert not returned.wait(0.3), "the put must not return while the sweep may still delete"
    gate.open.set()
    sweep.join(WAIT)
    thread.join(WAIT)
    assert swept == [(digest,)]
    assert returned.is_set()
    assert putting.get(digest) == (b"a", b"{}")


def test_a_sweep_that_looks_after_a_put_sees_that_the_state_is_young(
    watched: WatchedBucket, s3: S3
) -> None:
    sweeping, putting = S3Lake(watched), S3Lake(open_bucket(s3, watched.name))
    again, old = putting.put(b"again", b"{}"), putting.put(b"old", b"{}")
    stat = putting._bucket.stat(key_of(old, ".json"))
    assert stat is not None
    while (putting._now() - stat.modified).total_seconds() < 4:
        time.sleep(0.2)
    # The sweep has listed both as old. It is stopped before it announces the first; then one is put
    # again.
    watched.before = gate = Gate("put", "sweeping/" + min(again, old))
    swept: list[tuple[str, ...]] = []
    sweep = threading.Thread(
        target=lambda: swept.append(sweeping.delete_unreferenced([], grace_seconds=3))
    )
    sweep.start()
    assert gate.reached.wait(WAIT)
    putting.put(b"again", b"{}")
    gate.open.set()
    sweep.join(WAIT)
    assert swept == [(old,)]
    assert putting.list() == (again,)


def test_announcements_of_the_dead_hold_up_a_put_for_a_moment_only(
    lake: S3Lake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = digest_of(b"a", b"{}")
    bucket.put(f"sweeping/{digest}/dead", b"")
    monkeypatch.setattr(s3_lake, "ANNOUNCED_SECONDS", 0.2)
    assert lake.put(b"a", b"{}") == digest
    lake.delete_unreferenced([digest])
    while [one for one in keys(bucket) if one.startswith("sweeping/")]:
        lake.delete_unreferenced(
            [digest]
        )  # gone once it is old by the server's clock, which may count in seconds


def test_processes_put_while_another_sweeps(s3: S3, lake: S3Lake, bucket: Bucket) -> None:
    code = (
        "import sys; from ptkstore.lake import Bucket, LakeUnavailable, S3Lake\n"
        "lake = S3Lake(Bucket(sys.argv[1], sys.argv[2], access_key=sys.argv[3], "
        "secret_key=sys.stdin.readline()))\n"
        "for n in range(20):\n"
        "    try:\n"
        "        lake.put(bytes([n % 5]) * 100_000, b'{}')\n"
        "    except LakeUnavailable as error:\n"
        "        assert 'as fast as it is put' in str(error), error\n"
    )
    command = [sys.executable, "-W", "error", "-c", code, s3.endpoint, bucket.name, s3.access_key]
    writers = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(s3.secret_key)
            writer.stdin.close()
        sweeps = 0
        while any(writer.poll() is None for writer in writers):
            lake.delete_unreferenced([], grace_seconds=-1)
            sweeps += 1
        assert [writer.wait(60) for writer in writers] == [0, 0]
        assert sweeps > 0
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    lake.delete_unreferenced([], grace_seconds=-1)
    assert keys(bucket) == []


def test_strays_are_swept_once_they_are_old(lake: S3Lake, bucket: Bucket) -> None:
    kept = lake.put(b"kept", b"{}")
    lake.put(b"kept", b"{}")
    stray = digest_of(b"stray", b"{}")
    bucket.put(key_of(stray, ".safetensors"), b"stray")
    before = keys(bucket)
    assert f"touched/{kept}" in before
    assert lake.delete_unreferenced([kept]) == ()
    assert keys(bucket) == before
    assert lake.delete_unreferenced([kept], grace_seconds=-1) == ()
    assert keys(bucket) == [key_of(kept, suffix) for suffix in reversed(SUFFIXES)]


def test_uploads_that_were_never_finished_are_swept(versity: S3) -> None:
    bucket = open_bucket(versity, versity.new_bucket_name())
    lake = S3Lake(bucket)
    client = versity.client()
    client._create_multipart_upload(bucket.name, key_of(ABSENT, ".safetensors"), {})
    assert len(client._list_multipart_uploads(bucket.name).uploads) == 1
    lake.delete_unreferenced([])
    assert len(client._list_multipart_uploads(bucket.name).uploads) == 1
    lake.delete_unreferenced([], grace_seconds=-1)
    assert client._list_multipart_uploads(bucket.name).uploads == []
