"""What the metadata store raises beyond `InvalidInput` (a wrong argument) and `Refused` (the rows
say no).
"""

from __future__ import annotations

from ptklib.errors import MetadataConflict, MetadataDamaged, MetadataUnavailable

__all__ = ["MetadataConflict", "MetadataDamaged", "MetadataUnavailable"]
