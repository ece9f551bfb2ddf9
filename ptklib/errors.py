"""One tree of errors for the whole project.

Every error says what was asked, what is allowed, what was found and what to do, and carries a
stable UPPER_SNAKE ``reason`` that programs may rely on (messages may change, reasons do not).
``details`` holds the same facts as data; it contains public or differentially private values only,
never anything read from a stream.

::

    SageError
    ├── InvalidInput         the caller's argument is wrong; nothing happened      (also a ValueError)
    ├── Refused              the ledger said no; nothing was charged
    │   ├── BudgetExceeded   a point would exceed the stream's policy or a quota
    │   ├── GrantRefused     the grant is forged, used, released or expired
    │   └── BlockRefused     the block is open, expired or unknown
    ├── MechanismSpent       a one-shot mechanism was asked again
    ├── InsecureNoise        a test noise source outside a test, or a sampler that failed its self-test
    ├── JournalUnavailable   the durable book cannot be written now; nothing was granted
    ├── JournalDamaged       the durable book does not add up; the ledger stops
    ├── StreamUnavailable    the stream cannot be written now; nothing was acknowledged
    ├── StreamDamaged        a file of the stream is not what was written
    ├── MetadataUnavailable  the database cannot be used now
    │   └── MetadataConflict the database took the transaction back as a whole
    ├── MetadataDamaged      the database is not ours, or is newer than we are
    ├── LakeUnavailable      the lake cannot be used now
    ├── StateMissing         there is no such state in the lake
    ├── StateDamaged         the bytes of a state are not those of its digest
    ├── BusUnavailable       the bus cannot take messages now; the outbox keeps them
    ├── LeadLost             another server leads, or nobody does; nothing happened
    ├── PlanContended        others changed the same PTKs again and again; nothing happened
    ├── AccessDenied         the caller is not known, or may not do this
    ├── LimitExceeded        too much at once; later it may work
    └── ServerUnavailable    the server cannot be reached or does not answer in time

The parts that raise them name them again: ``from ptkstore.metadata import MetadataUnavailable``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "AccessDenied",
    "BlockRefused",
    "BudgetExceeded",
    "BusUnavailable",
    "GrantRefused",
    "InsecureNoise",
    "InvalidInput",
    "JournalDamaged",
    "JournalUnavailable",
    "LakeUnavailable",
    "LeadLost",
    "LimitExceeded",
    "MechanismSpent",
    "MetadataConflict",
    "MetadataDamaged",
    "MetadataUnavailable",
    "PlanContended",
    "Refused",
    "SageError",
    "ServerUnavailable",
    "StateDamaged",
    "StateMissing",
    "StreamDamaged",
    "StreamUnavailable",
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


def _rebuild(
    kind: type[SageError], reason: str, message: str, details: dict[str, object]
) -> SageError:
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
    """A noise source that is not cryptographic was offered outside a test, or the sampler failed
    its self-test.
    """


class JournalUnavailable(SageError):
    """The durable book cannot be written now (locked, disk full, closed).

    Nothing was granted; asking again is safe.
    """


class JournalDamaged(SageError):
    """The durable book does not add up. The ledger stops rather than guess."""


class BlockRefused(Refused):
    """The block is still open, expired, or unknown."""


class StreamUnavailable(SageError):
    """The stream cannot be written now (disk full, closed, in use elsewhere).

    Nothing was acknowledged.
    """


class StreamDamaged(SageError):
    """A file of the stream is not what was written."""


class MetadataUnavailable(SageError):
    """The database cannot be used now (locked, full, unreachable, closed).

    Writes are idempotent: asking again is safe.
    """


class MetadataConflict(MetadataUnavailable):
    """Somebody wrote past our lock, and the database took this transaction back as a whole.

    `Metadata.transact` tries again.
    """


class MetadataDamaged(SageError):
    """The database is not a metadata store of ours, or was written by a newer release.

    Nothing was changed.
    """


class LakeUnavailable(SageError):
    """The lake cannot be used now (disk full, no permission, unreachable). Asking again is safe."""


class StateMissing(SageError):
    """There is no state with that digest in the lake."""


class StateDamaged(SageError):
    """The bytes in the lake are not those the digest stands for. They are never returned."""


class BusUnavailable(SageError):
    """The bus cannot take messages now (closed, unreachable). The outbox keeps them."""


class LeadLost(SageError):
    """Another server leads, or nobody does at the moment.

    Nothing happened; asking again is safe.
    """


class PlanContended(SageError):
    """The PTKs of a stream were changed by others again and again while this was decided. Nothing
    happened; asking again is safe.
    """


class AccessDenied(SageError):
    """The caller is not known, or may not do this."""


class LimitExceeded(SageError):
    """Too much at once. Nothing happened; later it may work."""


class ServerUnavailable(SageError):
    """The server cannot be reached or does not answer in time. Asking again is safe."""
