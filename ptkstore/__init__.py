"""ptkstore: the Sage service around ptklib. ``ptkstore.Store`` is the SDK; see ``ptkstore.client``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptkstore.client import Store

__all__ = ["Store"]


def __getattr__(name: str) -> Any:
    """`Store` is imported when first used, so that ``import ptkstore`` and the command line's help stay fast."""
    if name == "Store":
        from ptkstore.client import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
