"""A lake in a bucket, on two servers that share no code: the suite, damage, crashes, sweeps, and servers that go away."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptkstore.lake import LakeUnavailable, S3Lake, StateDamaged, StateMissing, digest_of, s3_bucket
from ptkstore.lake import s3 as s3_lake
from ptkstore.lake.s3_bucket import Bucket
from tests.adapters.flipping_proxy import FlippingProxy
from tests.adapters.lake_suite import ABSENT, LakeSuite
from tests.servers.cache import tell
from tests.servers.s3 import S3, start_minio

ROOT = Path(__file__).parents[2]
WAIT = 30.0
SUFFIXES = (".safetensors", ".json")


@pytest.fixture(params=["minio", "versity"])
def s3(request: pytest.FixtureRequest) -> S3:
    found: S3 = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def bucket(s3: S3) -> Bucket:
    return open_bucket(s3, s3.new_bucket_name())


@pytest.fixture
def lake(bucket: Bucket) -> S3Lake:
    return S3Lake(bucket)


@pytest.fixture
def own_minio(minio: S3) -> Iterator[S3]:
    """A server that a test may stop. It depends on the other one, so that it is skipped where there is none."""
    mine = start_minio(tell)
    yield mine
    mine.server.close()


def open_bucket(s3: S3, name: str, **options: Any) -> Bucket:
    return Bucket(s3.endpoint, name, access_key=s3.access_key, secret_key=s3.secret_key, **options)


def key_of(digest: str, suffix: str) -> str:
    return f"sha256/{digest[:2]}/{digest}{suffix}"


def keys(bucket: Bucket) -> list[str]:
    return [one.key for one in bucket.keys("")]


class TestS3(LakeSuite):
    """Everything any backend must do."""


class Killed(BaseException):
    """Stands for kill -9."""


class WatchedBucket(Bucket):
    """A bucket that calls ``before(verb, key)`` before every request."""

    before: Callable[[str, str], None] = staticmethod(lambda _verb, _key: None)

    def put(self, key: str, data: bytes) -> None:
        self.before("put", key)
        super().put(key, data)

    def get(self, key: str) -> bytes | None:
        self.before("get", key)
        return super().get(key)

    def stat(self, key: str) -> s3_bucket.Found | None:
        self.before("stat", key)
        return super().stat(key)

    def delete(self, key: str, *, attempts: int | None = None) -> None:
        self.before("delete", key)
        super().delete(key, attempts=attempts)


def dying_after(alive: int) -> Callable[[str, str], None]:
    done: list[tuple[str, str]] = []

    def before(verb: str, key: str) -> None:
        if len(done) >= alive:
            raise Killed
        done.append((verb, key))

    return before


@pytest.fixture
def watched(s3: S3) -> WatchedBucket:
    return WatchedBucket(s3.endpoint, s3.new_bucket_name(), access_key=s3.access_key, secret_key=s3.secret_key)


def test_the_manifest_comes_last_and_goes_first(watched: WatchedBucket) -> None:
    lake, done = S3Lake(watched), []
    watched.before = lambda verb, key: done.append((verb, key)) if verb in {"put", "delete"} else None
    digest = lake.put(b"arrays", b"manifest")
    assert done == [("put", key_of(digest, suffix)) for suffix in SUFFIXES]
    done.clear()
    lake.delete_unreferenced([], grace_seconds=-1)
    deleted = [key for verb, key in done if verb == "delete" and key.startswith("sha256/")]
    assert deleted == [key_of(digest, suffix) for suffix in reversed(SUFFIXES)]


def test_a_put_killed_anywhere_shows_nothing_or_the_whole(watched: WatchedBucket) -> None:
    lake = S3Lake(watched)
    other = lake.put(b"other", b"{}")
    seen = set()
    for alive in range(100):
        arrays, manifest = b"arrays %d" % alive, b"{1}"
        digest = digest_of(arrays, manifest)
        watched.before = dying_after(alive)
        try:
            lake.put(arrays, manifest)
            break
        except Killed:
            pass
        finally:
            del watched.before
        there = lake.exists(digest)
        seen.add(there)
        assert (digest in lake.list()) == there
        if there:
            assert lake.get(digest) == (arrays, manifest)
        else:
            with pytest.raises(StateMissing):
                lake.get(digest)
        assert lake.put(arrays, manifest) == digest
        assert lake.get(digest) == (arrays, manifest)
        assert lake.delete_unreferenced([other], grace_seconds=-1) == (digest,)
        assert keys(watched) == [key_of(other, suffix) for suffix in reversed(SUFFIXES)]
    assert alive > 3
    assert seen == {False, True}


def test_a_sweep_killed_anywhere_can_be_done_again(watched: WatchedBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = S3Lake(watched)
    kept = lake.put(b"kept", b"{}")

    def put_past_the_dead() -> str:
        with monkeypatch.context() as patch:
            # What the dead announced is believed for a moment only.
            patch.setattr(s3_lake, "ANNOUNCED_SECONDS", 0.05)
            return lake.put(b"gone", b"{}")

    for alive in range(100):
        gone = put_past_the_dead()
        watched.before = dying_after(alive)
        try:
            lake.delete_unreferenced([kept], grace_seconds=-1)
            break
        except Killed:
            pass
        finally:
            del watched.before
        if lake.exists(gone):
            assert lake.get(gone) == (b"gone", b"{}")
        else:
            with pytest.raises(StateMissing):
                lake.get(gone)
        put_past_the_dead()
        assert lake.get(gone) == (b"gone", b"{}")
        lake.delete_unreferenced([kept], grace_seconds=-1)
        assert lake.list() == (kept,)
    assert alive > 8


class Gate:
    """Stops whoever comes to one request until it is opened."""

    def __init__(self, verb: str, part: str) -> None:
        self.verb, self.part = verb, part
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, verb: str, key: str) -> None:
        if verb == self.verb and self.part in key and not self.open.is_set():
            self.reached.set()
            assert self.open.wait(WAIT)


@pytest.mark.parametrize("part", [".json", ".safetensors", "touched/"])
def test_a_put_that_meets_a_sweep_is_there_when_it_returns(watched: WatchedBucket, s3: S3, part: str) -> None:
    sweeping, putting = S3Lake(watched), S3Lake(open_bucket(s3, watched.name))
    digest = putting.put(b"a", b"{}")
    watched.before = gate = Gate("delete", part)  # the sweep has looked, and is about to delete
    swept: list[tuple[str, ...]] = []
    sweep = threading.Thread(target=lambda: swept.append(sweeping.delete_unreferenced([], grace_seconds=-1)))
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


def test_a_sweep_that_looks_after_a_put_sees_that_the_state_is_young(watched: WatchedBucket, s3: S3) -> None:
    sweeping, putting = S3Lake(watched), S3Lake(open_bucket(s3, watched.name))
    again, old = putting.put(b"again", b"{}"), putting.put(b"old", b"{}")
    stat = putting._bucket.stat(key_of(old, ".json"))
    assert stat is not None
    while (putting._now() - stat.modified).total_seconds() < 4:
        time.sleep(0.2)
    # The sweep has listed both as old. It is stopped before it announces the first; then one is put again.
    watched.before = gate = Gate("put", "sweeping/" + min(again, old))
    swept: list[tuple[str, ...]] = []
    sweep = threading.Thread(target=lambda: swept.append(sweeping.delete_unreferenced([], grace_seconds=3)))
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
        lake.delete_unreferenced([digest])  # gone once it is old by the server's clock, which may count in seconds


def test_processes_put_while_another_sweeps(s3: S3, lake: S3Lake, bucket: Bucket) -> None:
    code = (
        "import sys; from ptkstore.lake import LakeUnavailable, S3Lake\n"
        "lake = S3Lake.open(sys.argv[1], sys.argv[2], access_key=sys.argv[3], secret_key=sys.stdin.readline())\n"
        "for n in range(20):\n"
        "    try:\n"
        "        lake.put(bytes([n % 5]) * 100_000, b'{}')\n"
        "    except LakeUnavailable as error:\n"
        "        assert 'as fast as it is put' in str(error), error\n"
    )
    command = [sys.executable, "-W", "error", "-c", code, s3.endpoint, bucket.name, s3.access_key]
    writers = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True) for _ in range(2)]
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


def test_large_states_go_in_parts(s3: S3) -> None:
    bucket = open_bucket(s3, s3.new_bucket_name(), part_bytes=5 * 2**20)
    lake = S3Lake(bucket)
    arrays = bytes(range(256)) * (11 * 2**20 // 256) + b"end"
    digest = lake.put(arrays, b"{}")
    assert lake.get(digest) == (arrays, b"{}")
    stat = s3.client().stat_object(bucket.name, key_of(digest, ".safetensors"))
    assert stat.etag == s3_bucket._etag(arrays, 5 * 2**20)
    assert str(stat.etag).endswith("-3")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "grow"])
def test_wrong_bytes_are_never_returned_and_a_put_mends_them(
    lake: S3Lake, bucket: Bucket, suffix: str, damage: str
) -> None:
    digest = lake.put(b"arrays", b"manifest")
    data = bucket.get(key_of(digest, suffix))
    assert data is not None
    flipped = bytes([data[0] ^ 1]) + data[1:]
    bucket.put(key_of(digest, suffix), {"flip": flipped, "cut": data[:-1], "empty": b"", "grow": data + b"\0"}[damage])
    with pytest.raises(StateDamaged, match="STATE_DAMAGED"):
        lake.get(digest)
    assert lake.put(b"arrays", b"manifest") == digest
    assert lake.get(digest) == (b"arrays", b"manifest")


def test_arrays_that_are_gone_are_damage(lake: S3Lake, bucket: Bucket) -> None:
    digest = lake.put(b"arrays", b"manifest")
    bucket.delete(key_of(digest, ".safetensors"))
    with pytest.raises(StateDamaged, match="STATE_DAMAGED"):
        lake.get(digest)
    assert not lake.exists(digest)
    assert lake.list() == ()


def test_bytes_hurt_on_the_way_are_sent_again(s3: S3) -> None:
    arrays = b"a state on its way" * 10
    with FlippingProxy(s3.server.port, b"on its way", b"on ist way", times=2) as proxy:
        bucket = Bucket(
            f"http://127.0.0.1:{proxy.port}",
            s3.new_bucket_name(),
            access_key=s3.access_key,
            secret_key=s3.secret_key,
        )
        lake = S3Lake(bucket)
        digest = lake.put(arrays, b"{}")
        assert proxy.left == 0
        assert lake.get(digest) == (arrays, b"{}")


def test_a_server_that_keeps_other_bytes_shows_no_state(lake: S3Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    client = lake._bucket._client
    put_object = client.put_object

    def forget(bucket: str, key: str, data: Any, length: int, **options: Any) -> Any:
        return put_object(bucket, key, io.BytesIO(bytes(length)), length, **options)

    monkeypatch.setattr(client, "put_object", forget)
    monkeypatch.setattr(s3_bucket, "_FIRST_DELAY_SECONDS", 0.001)
    with pytest.raises(LakeUnavailable, match="other bytes"):
        lake.put(b"arrays", b"{}")
    monkeypatch.undo()
    assert lake.list() == ()
    assert not lake.exists(digest_of(b"arrays", b"{}"))


def test_a_server_with_etags_of_its_own_is_read_back(lake: S3Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with encryption by a key service, where an ETag is no hash of the bytes."""
    monkeypatch.setattr(s3_bucket, "_etag", lambda *_: "unlike")
    digest = lake.put(b"arrays", b"{}")
    assert lake.get(digest) == (b"arrays", b"{}")


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


def test_lists_are_fetched_page_by_page(lake: S3Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = sorted(lake.put(bytes([n]), b"{}") for n in range(12))
    asked = []
    page = Bucket._page

    def counted(self: Bucket, start: str, after: str | None) -> Any:
        asked.append(after)
        return page(self, start, after)

    monkeypatch.setattr(s3_bucket, "_PAGE", 5)
    monkeypatch.setattr(Bucket, "_page", counted)
    assert lake.list() == tuple(digests)
    assert len(asked) == 5
    asked.clear()
    assert lake.list(limit=2, after=digests[3]) == tuple(digests[4:6])
    assert len(asked) == 1


def test_lakes_with_prefixes_share_a_bucket(s3: S3) -> None:
    name = s3.new_bucket_name()
    lakes = [S3Lake(open_bucket(s3, name, prefix=prefix)) for prefix in ("a/", "a/b/", "")]
    digests = [lake.put(bytes([n]), b"{}") for n, lake in enumerate(lakes)]
    assert [lake.list() for lake in lakes] == [(digest,) for digest in digests]
    lakes[2].delete_unreferenced([], grace_seconds=-1)
    assert [lake.list() for lake in lakes] == [(digests[0],), (digests[1],), ()]


def test_anybody_with_the_url_reads_a_state_for_a_while(lake: S3Lake) -> None:
    digest = lake.put(b"arrays", b"manifest")

    def read(url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=10) as response:
            return bytes(response.read())

    urls = lake.presigned(digest)
    assert digest_of(read(urls.arrays), read(urls.manifest)) == digest
    assert read(lake.presigned_url(digest)) == b"arrays"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        read(urls.arrays.split("?")[0])
    with pytest.raises(urllib.error.HTTPError, match="403"):
        read(urls.arrays.replace(".safetensors", ".json"))
    short = lake.presigned(digest, seconds=1)
    deadline = time.monotonic() + WAIT
    codes: set[int] = set()
    while not codes:
        try:
            read(short.arrays)
        except urllib.error.HTTPError as error:
            codes.add(error.code)
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert codes <= {400, 403}
    with pytest.raises(StateMissing, match="STATE_MISSING"):
        lake.presigned(ABSENT)
    with pytest.raises(InvalidInput, match="VALUE_INVALID"):
        lake.presigned(digest, seconds=0)


def test_a_server_that_goes_away_and_comes_back(own_minio: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    name = own_minio.new_bucket_name()
    lake, hasty = S3Lake(open_bucket(own_minio, name)), S3Lake(open_bucket(own_minio, name, attempts=2))
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
    monkeypatch.setattr(s3_bucket, "_LONGEST_DELAY_SECONDS", 0.2)
    patient = S3Lake.__new__(S3Lake)
    patient._bucket = open_bucket(own_minio, name, attempts=200)
    late: list[str] = []
    thread = threading.Thread(target=lambda: late.append(patient.put(b"late", b"{}")))
    thread.start()
    own_minio.server.start()
    thread.join(WAIT)
    assert lake.get(late[0]) == (b"late", b"{}")
    assert lake.get(digest) == (b"before", b"{}")


def test_wrong_credentials_are_told_at_once_and_not_repeated(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("there is nothing to wait for"))
    wrong = Bucket(s3.endpoint, "a-bucket", access_key=s3.access_key, secret_key="wrong-secret")
    with pytest.raises(LakeUnavailable, match="LAKE_UNAVAILABLE") as refusal:
        S3Lake(wrong)
    assert "wrong-secret" not in str(refusal.value)


def test_credentials_come_from_the_environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    lake = S3Lake.open(s3.endpoint, s3.new_bucket_name())
    assert lake.get(lake.put(b"a", b"{}")) == (b"a", b"{}")


@pytest.mark.parametrize(
    "endpoint", ["", "host:9000", "ftp://host", "http://user:secret@host", "http://host/path", "http://", "secret"]
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
