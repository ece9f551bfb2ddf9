"""What reflection looks symbols up in: the descriptors of the process, in which methods are found
by name too.

The library's pool knows services, messages and enums; `grpcurl describe
ptkstore.v1.PtkService.GetPtk` asks for a method.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pool

__all__ = ["Symbols"]


class Symbols:
    """A descriptor pool, as the reflection service uses one."""

    def __init__(self) -> None:
        """Of everything that was imported."""
        self._pool: Any = descriptor_pool.Default()

    def FindFileContainingSymbol(self, name: str) -> Any:  # noqa: N802 - the library's name
        """The file of a message, an enum, a service or one of its methods. KeyError."""
        try:
            return self._pool.FindFileContainingSymbol(name)
        except KeyError:
            service, _, method = name.rpartition(".")
            descriptor = self._pool.FindServiceByName(service)
            if method not in descriptor.methods_by_name:
                raise
            return descriptor.file

    def __getattr__(self, name: str) -> Any:
        """Everything else is the pool's."""
        return getattr(self._pool, name)
