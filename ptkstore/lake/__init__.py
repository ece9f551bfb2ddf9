"""The lake: trained states, content-addressed and immutable, in a directory (`DirectoryLake`) or a
bucket (`S3Lake` in a `Bucket`).
"""

from ptklib.encoding.state_digest import digest_of
from ptkstore.lake.directory import DirectoryLake
from ptkstore.lake.protocol import Lake, LakeUnavailable, StateDamaged, StateMissing
from ptkstore.lake.s3.bucket import Bucket
from ptkstore.lake.s3.lake import S3Lake

__all__ = [
    "Bucket",
    "DirectoryLake",
    "Lake",
    "LakeUnavailable",
    "S3Lake",
    "StateDamaged",
    "StateMissing",
    "digest_of",
]
