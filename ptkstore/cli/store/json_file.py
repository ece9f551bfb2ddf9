"""A JSON file that a command is given, or stdin.

Reason: FILE_UNREADABLE.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ptklib.errors import InvalidInput

__all__ = ["read_json"]


def read_json(source: str) -> Any:
    """What the file holds; `-` is stdin."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("FILE_UNREADABLE", f"{source} is not UTF-8 text", file=source) from None
    except OSError as error:
        raise InvalidInput("FILE_UNREADABLE", f"{source}: {error.strerror}", file=source) from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            "FILE_UNREADABLE",
            f"{source} must be JSON: {error.msg} in line {error.lineno}",
            file=source,
        ) from None
    except RecursionError:
        raise InvalidInput(
            "FILE_UNREADABLE", f"{source} must be JSON: it is nested too deeply", file=source
        ) from None
