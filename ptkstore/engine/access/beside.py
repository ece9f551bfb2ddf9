"""The metadata of a store, opened beside a server that may be running."""

from __future__ import annotations

from pathlib import Path

from ptkstore.metadata import Metadata

__all__ = ["Metadata", "has_metadata", "open_beside"]

_FILE = "meta.db"


def has_metadata(path: Path) -> bool:
    """True when the metadata of a store lies in its directory."""
    return (path / _FILE).exists()


def open_beside(path: Path, url: str | None) -> Metadata:
    """The metadata at ``url``, or in the directory of the store."""
    return Metadata.open(path / _FILE if url is None else url)
