"""How the console behaves. Reason: CONSOLE_UNPROTECTED."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptklib.errors import InvalidInput
from ptkstore.api.references import is_loopback

__all__ = ["LOOPBACK_HOSTS", "PREFIX", "ConsoleSettings", "require_protection"]

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True, kw_only=True)
class ConsoleSettings:
    """What an application with the console in it sets.

    A page that renews itself does not keep a session awake: only one that somebody asked for does.
    """

    # The names it answers to; all if left out.
    hosts: tuple[str, ...] = ()
    # A prefix that a proxy leaves in the path; one that it takes away needs no setting.
    root_path: str = ""
    # Believe X-Forwarded-Proto, -Host, -Prefix and -For, of a proxy that sets them.
    trust_proxy: bool = False
    # A session ends so long after the last page that somebody asked for.
    idle_seconds: float = 1800.0
    # A session ends so long after it began.
    longest_seconds: float = 43_200.0
    # At once; the one that was idle longest makes room.
    most_sessions: int = 1000
    # Tries to sign in, of one address.
    sign_ins_per_second: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not PREFIX.fullmatch(self.root_path):
            raise InvalidInput(
                "VALUE_INVALID", "root_path must be like /sage, without a slash at its end"
            )
        if not 0 < self.idle_seconds <= self.longest_seconds:
            raise InvalidInput(
                "VALUE_INVALID", "idle_seconds must be positive and at most longest_seconds"
            )


def require_protection(host: str, *, directory: bool, behind_proxy: bool) -> None:
    """CONSOLE_UNPROTECTED for what would let strangers in, or let tokens travel in plain text."""
    if is_loopback(host):
        return
    if directory:
        raise InvalidInput(
            "CONSOLE_UNPROTECTED",
            "the console of a directory is for this machine alone, for there are no tokens to sign in with: listen on "
            "127.0.0.1, or `sage serve` the store and use --server",
        )
    if not behind_proxy:
        raise InvalidInput(
            "CONSOLE_UNPROTECTED",
            "tokens must not travel in plain text: listen on 127.0.0.1, or put a proxy that speaks TLS in front and say "
            "--behind-proxy",
        )
