"""The lake: trained states, content-addressed and immutable. `DirectoryLake` keeps them in a directory."""

from ptkstore.lake.directory import DirectoryLake
from ptkstore.lake.protocol import Lake, LakeUnavailable, StateDamaged, StateMissing, digest_of

__all__ = ["DirectoryLake", "Lake", "LakeUnavailable", "StateDamaged", "StateMissing", "digest_of"]
