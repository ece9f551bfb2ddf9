"""Two servers that share no code, and a lake in a new bucket of each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devtools.servers.cache import tell
from devtools.servers.s3 import S3, start_minio
from ptkstore.lake import S3Lake
from ptkstore.lake.s3.bucket import Bucket
from tests.adapters.lake_s3.buckets import (
    WatchedBucket,
    open_bucket,
)


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
def watched(s3: S3) -> WatchedBucket:
    return WatchedBucket(
        s3.endpoint, s3.new_bucket_name(), access_key=s3.access_key, secret_key=s3.secret_key
    )


@pytest.fixture
def own_minio(minio: S3) -> Iterator[S3]:
    """A server that a test may stop.

    It depends on the other one, so that it is skipped where there is none.
    """
    mine = start_minio(tell)
    yield mine
    mine.server.close()
