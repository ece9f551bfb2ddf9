"""One tree of errors for the whole project.

Every error says what was asked, what is allowed, what was found and what to do, and carries a stable UPPER_SNAKE
``reason`` that programs may rely on (messages may change, reasons do not). ``details`` holds the same facts as
data; it contains public or differentially private values only, never anything read from a stream.

::

    SageError
    ├── InvalidInput         the caller's argument is wrong; nothing happened      (also a ValueError)
    ├── Refused              the ledger said no; nothing was charged
    │   ├── BudgetExceeded   a point would exceed the stream's policy or a quota
    │   └── GrantRefused     the grant is forged, used, released or expired
    ├── MechanismSpent       a one-shot mechanism was asked again
    ├── InsecureNoise        a test noise source outside a test, or a sampler that failed its self-test
    ├── JournalUnavailable   the durable book cannot be written now; nothing was granted
    └── JournalDamaged       the durable book does not add up; the ledger stops
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "BudgetExceeded",
    "GrantRefused",
    "InsecureNoise",
    "InvalidInput",
    "JournalDamaged",
    "JournalUnavailable",
    "MechanismSpent",
    "Refused",
    "SageError",
]


class SageError(Exception):
    """Base of all errors of ours. ``reason`` is stable; ``details`` are public facts as data."""

    def __init__(self, reason: str, message: str, **details: object) -> None:
        """Keep the parts apart, so that callers never parse the message."""
        super().__init__(f"{message} [{reason}]")
        self.reason = reason
        self.message = message
        self.details: Mapping[str, object] = MappingProxyType(details)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling between worker processes with reason and details intact."""
        return (_rebuild, (type(self), self.reason, self.message, dict(self.details)))


def _rebuild(kind: type[SageError], reason: str, message: str, details: dict[str, object]) -> SageError:
    return kind(reason, message, **details)


class InvalidInput(SageError, ValueError):
    """The caller's argument is wrong. Nothing happened."""


class Refused(SageError):
    """The ledger said no. Nothing was charged."""


class BudgetExceeded(Refused):
    """A point of the asked slices would exceed the stream's policy or a quota."""


class GrantRefused(Refused):
    """The grant is forged, used, released or expired."""


class MechanismSpent(SageError):
    """A one-shot mechanism (AboveThreshold) already gave its answer."""


class InsecureNoise(SageError):
    """A noise source that is not cryptographic was offered outside a test, or the sampler failed its self-test."""


class JournalUnavailable(SageError):
    """The durable book cannot be written now (locked, disk full, closed). Nothing was granted; asking again is safe."""


class JournalDamaged(SageError):
    """The durable book does not add up. The ledger stops rather than guess."""
