"""`Store`: `open` in the form of a class, for those whose store is in a directory.

``Store("shop")`` is a `LocalStore`, and so is what inherits from it; ``Store("host:port")`` is what
`open` gives for an address. Whoever only wants a server uses ``ptkstore.open``, which does not
import the store in a directory. Reason: ADDRESS_INVALID.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, cast

from ptkstore.local.store import LocalStore
from ptkstore.opening.place import is_remote, open, require_local  # noqa: A004

__all__ = ["Store"]


class Store(LocalStore):
    """A store in a directory or, for an address (``Store("host:port")``), behind a server."""

    def __new__(cls, path: str | Path = ".", **options: Any) -> Self:
        """A store in a directory, unless ``path`` is an address."""
        if is_remote(path):
            return cast(Self, open(path, **options))
        return super().__new__(cls)

    def __init__(self, path: str | Path = ".", **options: Any) -> None:
        """Open the store in ``path``, or make one there.

        See `LocalStore` for the options of a directory.
        """
        require_local(options)
        super().__init__(path, **options)
