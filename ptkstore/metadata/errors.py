"""What the metadata store raises beyond `InvalidInput` (a wrong argument) and `Refused` (the rows say no)."""

from __future__ import annotations

from ptklib.errors import SageError

__all__ = ["MetadataConflict", "MetadataDamaged", "MetadataUnavailable"]


class MetadataUnavailable(SageError):
    """The database cannot be used now (locked, full, unreachable, closed). Writes are idempotent: asking again is safe."""


class MetadataConflict(MetadataUnavailable):
    """Somebody wrote past our lock, and the database took this transaction back as a whole. `Metadata.transact` tries again."""


class MetadataDamaged(SageError):
    """The database is not a metadata store of ours, or was written by a newer release. Nothing was changed."""
