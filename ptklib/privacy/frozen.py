"""Values that are frozen, and compute fields of their own while they are made."""

from __future__ import annotations

__all__ = ["keep"]


def keep(made: object, **fields: object) -> None:
    """Set the fields of a frozen value, in its ``__init__`` and nowhere else."""
    for name, value in fields.items():
        object.__setattr__(made, name, value)
