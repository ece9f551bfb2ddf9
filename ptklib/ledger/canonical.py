"""JSON with one spelling per value: what is hashed, signed and compared."""

from __future__ import annotations

import json

__all__ = ["canonical"]

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: object) -> bytes:
    """``value`` as UTF-8 JSON with sorted keys and no spaces. NaN and infinities are refused."""
    return _ENCODER.encode(value).encode()
