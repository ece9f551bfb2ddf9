"""Those whose credentials are no good: how often one address may try.

Finding out that somebody is unknown takes a look into the metadata, and costs the stranger nothing.
So every address has an allowance of failures that refills with time. Where it is used up, calls
from there are judged by the tokens that this server has in memory, which are read anew every few
seconds: who shares an address with an attacker goes on.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable
from urllib.parse import unquote

from ptkstore.allowance import Allowance
from ptkstore.wire.faults import LimitExceeded

__all__ = ["Strangers", "address_of"]

BURST_SECONDS = 10.0
_PEER = re.compile(r"ipv[46]:(?:\[(?P<six>[^\]]+)\]|(?P<four>[^:]+)):\d+")


class Strangers:
    """The failures of every address. Thread-safe."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """0 per second is no limit."""
        self._allowance = Allowance(per_second, burst_seconds=BURST_SECONDS, clock=clock)

    def limited(self, address: str) -> bool:
        """True for an address that has failed too often."""
        try:
            self._allowance.take(address, 0.0, least=1.0)
        except LimitExceeded:
            return True
        return False

    def failed(self, address: str) -> None:
        """One failure more, or RATE_LIMITED where there were too many."""
        self._allowance.take(address)


def address_of(peer: str) -> str:
    """What stands for one machine in gRPC's name of a peer: an IPv4 address, the first half of an
    IPv6 address (the other is the machine's own choice), or the name itself for anything else.
    """
    match = _PEER.fullmatch(unquote(peer))
    if match is None:
        return peer
    try:
        address = ipaddress.ip_address((match["six"] or match["four"]).partition("%")[0])
    except ValueError:
        return peer
    if address.version == 4:
        return str(address)
    mapped = address.ipv4_mapped
    return (
        str(mapped)
        if mapped is not None
        else str(ipaddress.ip_network((address, 64), strict=False))
    )
