"""How deep a JSON value from outside may be nested: what is checked, compared and shown recursively
must not come near the end of a stack, wherever it is done.
"""

from __future__ import annotations

from typing import Any

__all__ = ["MAX_NESTING", "too_deep"]

# Configurations and specifications of ours need six levels.
MAX_NESTING = 64


def too_deep(value: Any) -> bool:
    """Whether lists and objects in it lie more than `MAX_NESTING` levels inside each other."""
    level = [value]
    for _ in range(MAX_NESTING + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list | tuple)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
