"""Bytes that were hurt, in the bucket or on the way, are never taken for a state."""

from __future__ import annotations

import io
from typing import Any

import pytest

from devtools.servers.s3 import S3
from ptkstore.backoff import Backoff
from ptkstore.lake import LakeUnavailable, S3Lake, StateDamaged, digest_of
from ptkstore.lake.s3 import bucket as s3_bucket
from ptkstore.lake.s3.bucket import Bucket
from tests.adapters.flipping_proxy import FlippingProxy
from tests.adapters.lake_s3.buckets import (
    SUFFIXES,
    key_of,
)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "grow"])
def test_wrong_bytes_are_never_returned_and_a_put_mends_them(
    lake: S3Lake, bucket: Bucket, suffix: str, damage: str
) -> None:
    digest = lake.put(b"arrays", b"manifest")
    data = bucket.get(key_of(digest, suffix))
    assert data is not None
    flipped = bytes([data[0] ^ 1]) + data[1:]
    bucket.put(
        key_of(digest, suffix),
        {"flip": flipped, "cut": data[:-1], "empty": b"", "grow": data + b"\0"}[damage],
    )
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


def test_a_server_that_keeps_other_bytes_shows_no_state(
    lake: S3Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = lake._bucket._client
    put_object = client.put_object

    def forget(bucket: str, key: str, data: Any, length: int, **options: Any) -> Any:
        return put_object(bucket, key, io.BytesIO(bytes(length)), length, **options)

    monkeypatch.setattr(client, "put_object", forget)
    soon = Backoff(first_seconds=0.001, longest_seconds=2)
    monkeypatch.setattr(s3_bucket, "SERVER_AWAY", soon)
    with pytest.raises(LakeUnavailable, match="other bytes"):
        lake.put(b"arrays", b"{}")
    monkeypatch.undo()
    assert lake.list() == ()
    assert not lake.exists(digest_of(b"arrays", b"{}"))


def test_a_server_with_etags_of_its_own_is_read_back(
    lake: S3Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with encryption by a key service, where an ETag is no hash of the bytes."""
    monkeypatch.setattr(s3_bucket, "_etag", lambda *_: "unlike")
    digest = lake.put(b"arrays", b"{}")
    assert lake.get(digest) == (b"arrays", b"{}")
