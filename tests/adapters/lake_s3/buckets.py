"""Buckets of the servers, what lies in them, and one that tells of every request or stops at it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from devtools.servers.s3 import S3
from ptkstore.lake.s3 import bucket as s3_bucket
from ptkstore.lake.s3.bucket import Bucket

__all__ = [
    "SUFFIXES",
    "WAIT",
    "Gate",
    "Killed",
    "WatchedBucket",
    "dying_after",
    "key_of",
    "keys",
    "open_bucket",
]

WAIT = 30.0
SUFFIXES = (".safetensors", ".json")


def open_bucket(s3: S3, name: str, **options: Any) -> Bucket:
    return Bucket(s3.endpoint, name, access_key=s3.access_key, secret_key=s3.secret_key, **options)


def key_of(digest: str, suffix: str) -> str:
    return f"sha256/{digest[:2]}/{digest}{suffix}"


def keys(bucket: Bucket) -> list[str]:
    return [one.key for one in bucket.keys("")]


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

    def stat(self, key: str) -> s3_bucket.StoredObject | None:
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


class Gate:
    """Stops whoever comes to one request until it is opened."""

    def __init__(self, verb: str, part: str) -> None:
        self.verb, self.part = verb, part
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, verb: str, key: str) -> None:
        if verb == self.verb and self.part in key and not self.open.is_set():
            self.reached.set()
            assert self.open.wait(WAIT)
