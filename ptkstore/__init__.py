"""ptkstore: the Sage service around ptklib. ``ptkstore.open(place)`` is the way in: a directory, or
``host:port``.

What is named here is imported when it is first used, so that ``import ptkstore`` and the help of
the command line stay fast.
"""

# As type checkers read it; `typing` itself is not imported, so that this import is free.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ptklib.ledger.policy import Policy
    from ptkstore.api.columns import Column
    from ptkstore.api.stream_spec import StreamSpec
    from ptkstore.client.store import RemoteStore
    from ptkstore.local.store import LocalStore
    from ptkstore.opening.place import open  # noqa: A004
    from ptkstore.opening.store import Store

__all__ = ["Column", "LocalStore", "Policy", "RemoteStore", "Store", "StreamSpec", "open"]

_HOMES = {
    "Column": "ptkstore.api.columns",
    "LocalStore": "ptkstore.local.store",
    "Policy": "ptklib.ledger.policy",
    "RemoteStore": "ptkstore.client.store",
    "Store": "ptkstore.opening.store",
    "StreamSpec": "ptkstore.api.stream_spec",
    "open": "ptkstore.opening.place",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
