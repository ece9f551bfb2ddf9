"""A lake in a bucket: the suite, states in parts, lists in pages, prefixes, and URLs for
anybody.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from devtools.servers.s3 import S3
from ptklib.errors import InvalidInput
from ptkstore.lake import S3Lake, StateMissing, digest_of
from ptkstore.lake.s3 import bucket as s3_bucket
from ptkstore.lake.s3.bucket import Bucket
from tests.adapters.lake_s3.buckets import (
    WAIT,
    key_of,
    open_bucket,
)
from tests.adapters.lake_suite import ABSENT, LakeSuite


class TestS3(LakeSuite):
    """Everything any backend must do."""


def test_large_states_go_in_parts(s3: S3) -> None:
    bucket = open_bucket(s3, s3.new_bucket_name(), part_bytes=5 * 2**20)
    lake = S3Lake(bucket)
    arrays = bytes(range(256)) * (11 * 2**20 // 256) + b"end"
    digest = lake.put(arrays, b"{}")
    assert lake.get(digest) == (arrays, b"{}")
    stat = s3.client().stat_object(bucket.name, key_of(digest, ".safetensors"))
    assert stat.etag == s3_bucket._etag(arrays, 5 * 2**20)
    assert str(stat.etag).endswith("-3")


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
