"""Where subscribers may be: the operator's patterns of ``host:port``, for names and for the
addresses behind them.

==================  ================================================================================
``10.1.2.3:7000``   this address
``10.*:*``          addresses: a pattern of numbers, dots and ``*`` matches no name
``10.0.0.0/8:*``    addresses of a network; ``[fd00::/8]:*`` likewise
``hook.corp:7000``  this name
``*.corp:*``        names: ``*`` stands for one part of a name, without dots
``*:7000``          any name and any address
==================  ================================================================================

A name is judged twice: by itself, and by the address it stands for at the moment of the call, which
is what is connected to. Whoever answers for a name could answer with an address inside. So a name
leads to loopback, link-local and other special addresses only where a pattern names the address,
too (``localhost`` may lead to loopback); and a name that matched through a ``*`` leads to private
addresses only so. ``?`` is like ``*`` for one character. Reason: ENDPOINT_NOT_ALLOWED.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ptklib.errors import Refused

__all__ = ["Target", "is_allowed", "resolved"]

_ENDPOINT = re.compile(
    r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?):([0-9]{1,5})"
)
_PATTERN = re.compile(r"(?P<host>\[.*\]|[^:\[\]]+):(?P<port>[0-9*?]+)")
_ADDRESSES = re.compile(r"[0-9.*?]*[0-9][0-9.*?]*")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Target:
    """An endpoint and the address behind it that was judged."""

    endpoint: str
    address: str

    @property
    def host(self) -> str:
        """The name, as certificates know it."""
        return self.endpoint.rpartition(":")[0].strip("[]")


def is_allowed(endpoint: str, allowed: Sequence[str]) -> bool:
    """True for ``host:port`` that matches one of the operator's patterns.

    Anything else a channel could take is not.
    """
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None or not 0 < int(match[3]) < 65536:
        return False
    address = _address(match[1])
    rules = _rules(allowed, match[3])
    return any(
        _covers(rule, address) if address is not None else _names(rule, match[1]) for rule in rules
    )


def resolved(endpoint: str, allowed: Sequence[str]) -> Target:
    """Where to connect for an endpoint, as of now.

    ENDPOINT_NOT_ALLOWED; OSError where a name stands for nothing.
    """
    if not is_allowed(endpoint, allowed):
        raise _denied()
    host, _, port = endpoint.rpartition(":")
    if _address(host) is not None:
        return Target(endpoint, endpoint)
    rules = _rules(allowed, port)
    for family, _, _, _, place in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        if _may_lead(host, address, rules):
            shown = f"[{address}]" if family == socket.AF_INET6 else str(address)
            return Target(endpoint, f"{shown}:{port}")
    raise _denied()


def _may_lead(name: str, address: _Address, rules: Sequence[str]) -> bool:
    """True when a name that is allowed may stand for that address."""
    if any(_covers(rule, address) for rule in rules):
        return True
    exact = any(rule == name for rule in rules)
    if address.is_loopback:
        return exact and name == "localhost"
    special = (
        address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address.is_reserved
    )
    return not special and (address.is_global or exact)


def _rules(allowed: Iterable[str], port: str) -> list[str]:
    """The hosts of the patterns for that port."""
    rules = []
    for pattern in allowed:
        # An opening bracket used to be written as a class of characters.
        match = _PATTERN.fullmatch(pattern.replace("[[]", "["))
        if match is not None and _fits(match["port"], "[0-9]", port):
            rules.append(match["host"])
    return rules


def _covers(rule: str, address: _Address) -> bool:
    """True when a pattern is about addresses, and about this one."""
    if rule == "*":
        return True
    if _ADDRESSES.fullmatch(rule):
        return address.version == 4 and _fits(rule, "[0-9.]", str(address))
    try:
        return address in ipaddress.ip_network(rule.strip("[]"))
    except ValueError:
        return False


def _names(rule: str, name: str) -> bool:
    """True when a pattern is about names, and about this one."""
    if rule == "*":
        return True
    if _ADDRESSES.fullmatch(rule) or rule.startswith("["):
        return False
    return _fits(rule, "[^.]", name)


def _fits(pattern: str, some: str, text: str) -> bool:
    """True when a text is a pattern's, whose ``*`` stands for any number of ``some`` and ``?`` for
    one.
    """
    parts = (
        some + "*" if character == "*" else some if character == "?" else re.escape(character)
        for character in pattern
    )
    return re.fullmatch("".join(parts), text) is not None


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _denied() -> Refused:
    return Refused(
        "ENDPOINT_NOT_ALLOWED", "the operator's list has no such endpoint (subscribers.allowed)"
    )
