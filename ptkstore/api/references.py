"""How a state is named (``name``, ``name@latest`` or ``name@v7``), and a server (``host:port``); and
the ids that a store gave for other things.

Reasons: REFERENCE_INVALID, ID_INVALID.
"""

from __future__ import annotations

import ipaddress
import re

from ptklib.errors import InvalidInput

__all__ = ["is_address", "is_loopback", "number_of", "parse_reference"]

_REFERENCE = re.compile(r"(?P<name>[^@]+)(?:@(?:v(?P<version>\d{1,9})|latest))?")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")


def is_address(text: str) -> bool:
    """True for ``host:port``."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and 0 < int(match["port"]) < 65536


def is_loopback(host: str) -> bool:
    """True for names and numbers of this machine that nobody else can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_reference(reference: str, as_of_ms: int | None) -> tuple[str, int | None]:
    """The name of the PTK, and the version if one is named; that and a time do not go together."""
    match = _REFERENCE.fullmatch(reference)
    if not match or (match["version"] and as_of_ms is not None):
        raise InvalidInput(
            "REFERENCE_INVALID",
            f"a state is 'name', 'name@latest' or 'name@v7', got {reference!r:.80}",
        )
    return match["name"], int(match["version"]) if match["version"] else None


def number_of(text: str, what: str) -> int:
    """The number that an id is. Reason: ID_INVALID."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput("ID_INVALID", f"the id of {what} must be one that the server gave")
    return int(text)
