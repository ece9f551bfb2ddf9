"""Files that a browser keeps instead of showing them."""

from __future__ import annotations

import re

__all__ = ["attachment"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def attachment(name: str) -> dict[str, str]:
    """The header of a download; what has no place in the name of a file becomes a dash."""
    return {"content-disposition": f'attachment; filename="{_UNSAFE.sub("-", name)}"'}
