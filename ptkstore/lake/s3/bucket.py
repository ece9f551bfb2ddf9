"""A bucket of any S3 server: whole objects in and out, checked, tried again while the server is
away.

Only plain features are used (PUT, GET, HEAD, DELETE, LIST, multipart), for servers differ in
everything else. Every request carries the hash of its body, which the server checks; afterwards the
ETag must be that of the bytes, and where a server has ETags of another kind the object is read
back. Reasons: LAKE_UNAVAILABLE, LAKE_URL_INVALID.
"""

from __future__ import annotations

import functools
import hashlib
import io
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from ptklib.errors import InvalidInput
from ptkstore.backoff import SERVER_AWAY
from ptkstore.lake.protocol import LakeUnavailable

if TYPE_CHECKING:
    from minio import Minio
    from minio.credentials.providers import Provider

__all__ = ["PART_BYTES", "Bucket", "StoredObject"]

PART_BYTES = 16 * 2**20
ATTEMPTS = 6
_MISSING = frozenset({"NoSuchKey", "NoSuchObject", "ResourceNotFound"})
# What a server says that may be different the next time; everything with a status of 500 and above
# is, too.
_AGAIN = frozenset(
    {
        "BadDigest",
        "IncompleteBody",
        "NoSuchUpload",
        "OperationAborted",
        "RequestTimeout",
        "SlowDown",
    }
    | {"XAmzContentSHA256Mismatch"}
)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing or a look at it tells."""

    key: str
    size: int
    modified: datetime


class _OtherBytes(Exception):
    """The server keeps other bytes than it was given."""


class Bucket:
    """The objects below ``prefix`` of one bucket. Thread-safe."""

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        *,
        access_key: str | None = None,
        secret_key: str | None = None,
        region: str = "us-east-1",
        prefix: str = "",
        part_bytes: int = PART_BYTES,
        timeout_seconds: float = 30.0,
        attempts: int = ATTEMPTS,
    ) -> None:
        """Connects nowhere yet.

        Without an access key the credentials come from the environment, as usual for S3.
        """
        if prefix and not re.fullmatch(r"([A-Za-z0-9._-]+/)+", prefix):
            raise InvalidInput(
                "LAKE_URL_INVALID",
                f"a prefix must be words that end in a slash, got {prefix!r:.60}",
            )
        if not 5 * 2**20 <= part_bytes <= 2**30 or timeout_seconds <= 0 or attempts < 1:
            raise InvalidInput(
                "VALUE_INVALID", "parts are 5 MiB to 1 GiB; the timeout and the attempts positive"
            )
        self.name = bucket
        self._prefix = prefix
        self._part_bytes = part_bytes
        self._attempts = attempts
        self._client = _client(endpoint, bucket, access_key, secret_key, region, timeout_seconds)

    def make(self) -> None:
        """Make the bucket, where there is none."""

        def act() -> None:
            if not self._client.bucket_exists(self.name):
                self._client.make_bucket(self.name)

        self._patiently(act, taken=frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}))

    def put(self, key: str, data: bytes) -> None:
        """Keep an object. On return the server has said that it has these very bytes."""
        wanted = _etag(data, self._part_bytes)

        def act() -> None:
            result = self._client.put_object(
                self.name,
                self._prefix + key,
                io.BytesIO(data),
                len(data),
                part_size=self._part_bytes,
            )
            if result.etag != wanted and self._get(key) != data:
                raise _OtherBytes

        self._patiently(act)

    def get(self, key: str) -> bytes | None:
        """The bytes of an object, or None."""
        return self._patiently(lambda: self._get(key), taken=_MISSING)

    def stat(self, key: str) -> StoredObject | None:
        """What is known of an object, or None where there is none."""

        def act() -> StoredObject:
            stat = self._client.stat_object(self.name, self._prefix + key)
            return StoredObject(key, int(stat.size or 0), stat.last_modified or _EPOCH)

        return self._patiently(act, taken=_MISSING)

    def delete(self, key: str, *, attempts: int | None = None) -> None:
        """Remove an object; nothing happens where there is none."""
        self._patiently(
            lambda: self._client.remove_object(self.name, self._prefix + key), _MISSING, attempts
        )

    def keys(self, start: str, *, after: str | None = None) -> Iterator[StoredObject]:
        """The objects whose key begins so, in order, from the one after ``after``; fetched page by
        page.
        """
        last = after
        while True:
            page = self._patiently(functools.partial(self._page, start, last))
            yield from page or ()
            if not page or len(page) < _PAGE:
                return
            last = page[-1].key

    def url(self, key: str, seconds: int) -> str:
        """A URL that lets anybody read the object for a while."""
        return str(
            self._client.presigned_get_object(
                self.name, self._prefix + key, timedelta(seconds=seconds)
            )
        )

    def abort_uploads(self, start: str, before: datetime) -> None:
        """Give up multipart uploads that were begun before a time: what a crash in the middle of
        one leaves behind. Some servers list none and clear them by themselves.
        """
        listing = self._patiently(
            lambda: self._client._list_multipart_uploads(self.name, prefix=self._prefix + start),
            taken=_NO_UPLOADS,
        )
        for upload in listing.uploads if listing is not None else ():
            if (upload.initiated_time or _EPOCH) < before and upload.upload_id:
                abort = functools.partial(
                    self._client._abort_multipart_upload, self.name, upload.object_name
                )
                self._patiently(
                    functools.partial(abort, upload.upload_id), taken=frozenset({"NoSuchUpload"})
                )

    def _get(self, key: str) -> bytes:
        response = self._client.get_object(self.name, self._prefix + key)
        try:
            return bytes(response.read())
        finally:
            response.close()
            response.release_conn()

    def _page(self, start: str, after: str | None) -> list[StoredObject]:
        begin = None if after is None else self._prefix + after
        listed = self._client.list_objects(
            self.name, self._prefix + start, recursive=True, start_after=begin
        )
        page = []
        for entry in listed:
            if entry.object_name and not entry.is_dir:
                key = entry.object_name.removeprefix(self._prefix)
                page.append(StoredObject(key, int(entry.size or 0), entry.last_modified or _EPOCH))
            if len(page) == _PAGE:
                break
        return page

    def _patiently(
        self,
        act: Callable[[], Result],
        taken: frozenset[str] = frozenset(),
        attempts: int | None = None,
    ) -> Result | None:
        """Do it, again where that may help, less and less often.

        None where the server says one of ``taken``.
        """
        import urllib3
        from minio.error import InvalidResponseError, S3Error, ServerError

        most = attempts or self._attempts
        for attempt in range(1, most + 1):
            try:
                return act()
            except S3Error as error:
                code, again = str(error.code), error.code in _AGAIN or error.response.status >= 500
                if error.code in taken:
                    return None
                why: Exception = error
            except (ServerError, InvalidResponseError) as error:
                code, again, why = type(error).__name__, True, error
            except (urllib3.exceptions.HTTPError, OSError) as error:
                code, again, why = type(error).__name__, True, error
            except _OtherBytes as error:
                code, again, why = "it keeps other bytes than it was given", True, error
            if not again or attempt == most:
                raise LakeUnavailable(
                    "LAKE_UNAVAILABLE",
                    f"bucket {self.name!r} cannot be used now: {code}",
                    bucket=self.name,
                ) from why
            time.sleep(SERVER_AWAY.seconds(attempt))
        raise AssertionError


_EPOCH = datetime.fromtimestamp(0, UTC)
_PAGE = 1000
_NO_UPLOADS = frozenset({"NotImplemented", "MethodNotAllowed", "AccessDenied"})


def _client(
    endpoint: str,
    bucket: str,
    access_key: str | None,
    secret_key: str | None,
    region: str,
    timeout_seconds: float,
) -> Minio:
    """A client that tries once: when to try again is decided here."""
    try:
        import urllib3
        from minio import Minio
        from minio.helpers import check_bucket_name
    except ImportError:
        raise InvalidInput(
            "LAKE_URL_INVALID", "S3 needs its client: pip install 'ptkstore[servers]'"
        ) from None
    parts = urlsplit(endpoint)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.netloc
        or "@" in parts.netloc
        or parts.path.strip("/")
    ):
        raise InvalidInput(
            "LAKE_URL_INVALID",
            "an S3 endpoint is http://host:port or https://host, with no credentials and no path",
        )
    pool = urllib3.PoolManager(
        retries=False,
        timeout=urllib3.Timeout(connect=min(5.0, timeout_seconds), read=timeout_seconds),
        maxsize=16,
    )
    try:
        check_bucket_name(bucket, strict=True)
        return Minio(
            parts.netloc,
            access_key,
            secret_key,
            secure=parts.scheme == "https",
            region=region,
            http_client=pool,
            credentials=None if access_key else _environment(),
        )
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            "LAKE_URL_INVALID", f"the lake cannot be at such a place: {error}"
        ) from None


def _environment() -> Provider:
    from minio.credentials.providers import (
        ChainedProvider,
        EnvAWSProvider,
        EnvMinioProvider,
        IamAwsProvider,
    )

    return ChainedProvider([EnvAWSProvider(), EnvMinioProvider(), IamAwsProvider()])


def _etag(data: bytes, part_bytes: int) -> str:
    """The ETag of an object, and of one that was uploaded in parts."""

    def md5(text: bytes) -> bytes:
        return hashlib.md5(text, usedforsecurity=False).digest()

    if len(data) <= part_bytes:
        return md5(data).hex()
    view = memoryview(data)
    parts = [
        md5(bytes(view[start : start + part_bytes])) for start in range(0, len(data), part_bytes)
    ]
    return f"{md5(b''.join(parts)).hex()}-{len(parts)}"
