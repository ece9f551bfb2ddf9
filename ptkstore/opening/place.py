"""``open("shop")`` gives a `ptkstore.local.store.LocalStore`, ``open("host:port")`` a
`ptkstore.client.store.RemoteStore`: both are a `ptkstore.api.store.Store`. Only the one that is
meant is imported. Reason: ADDRESS_INVALID.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptklib.errors import InvalidInput
from ptkstore.api.references import is_address
from ptkstore.api.store import Store
from ptkstore.extras import package_missing

__all__ = ["is_remote", "open", "require_local"]

_REMOTE = ("ca_file", "cert_file", "key_file", "timeout_seconds", "token")


def open(place: str | Path = ".", **options: Any) -> Store:  # noqa: A001
    """The store at a place.

    A server takes ``token``, ``ca_file``, ``cert_file``, ``key_file`` and ``timeout_seconds``.
    """
    if is_remote(place):
        try:
            from ptkstore.client.store import RemoteStore

            return RemoteStore(str(place), **options)
        except ModuleNotFoundError as missing:
            raise package_missing(missing.name, "server") from None
    require_local(options)
    from ptkstore.local.store import LocalStore

    return LocalStore(place, **options)


def is_remote(place: str | Path) -> bool:
    """True for the address of a server; a directory of that name goes first."""
    return isinstance(place, str) and is_address(place) and not Path(place).exists()


def require_local(options: dict[str, Any]) -> None:
    """Refuse options that are for a server: ADDRESS_INVALID."""
    remote = sorted(set(options) & set(_REMOTE))
    if remote:
        raise InvalidInput(
            "ADDRESS_INVALID", f"{', '.join(remote)}: for a server, whose address is host:port"
        )
