"""The ``sage.yaml`` of a store that runs on these servers."""

from __future__ import annotations

import yaml

from devtools.servers.postgres import Postgres
from devtools.servers.redis import Redis
from devtools.servers.s3 import S3

__all__ = ["sage_yaml"]


def sage_yaml(
    postgres: Postgres, s3: S3, redis: Redis, *, database: str = "sage", bucket: str = "sage"
) -> str:
    """The sections of the adapters, credentials included: for servers on this machine, never for a
    repository.
    """
    sections = {
        "metadata": {"url": postgres.url(database)},
        "ledger": {"url": postgres.url(database), "key_file": "ledger.key"},
        "lake": {
            "endpoint": s3.endpoint,
            "bucket": bucket,
            "access_key": s3.access_key,
            "secret_key": s3.secret_key,
        },
        "bus": {"url": redis.url},
    }
    return yaml.safe_dump(sections, sort_keys=False)
