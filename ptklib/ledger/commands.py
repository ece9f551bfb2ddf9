"""What can be asked of the ledger. Values only, checked at construction; times come in as
arguments, never from a clock.

Reasons: NAME_INVALID, COMMAND_INVALID, and those of slices and costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice, check_name, names_of
from ptklib.privacy.amounts import Number, exact
from ptklib.privacy.costs import Cost

__all__ = [
    "MAX_BLOCKS",
    "MAX_CONTEXTS",
    "MAX_RESERVES",
    "MAX_SLICES",
    "AddBlocks",
    "Command",
    "CreateStream",
    "Expire",
    "Release",
    "Reserve",
    "ReserveAll",
    "Retire",
    "SetQuota",
    "Spend",
]

MAX_BLOCKS = 100_000
MAX_CONTEXTS = 8
MAX_RESERVES = 10_000
MAX_SLICES = 1_000


@dataclass(frozen=True)
class CreateStream:
    """Open a stream with its promise. The promise never changes."""

    stream: str
    policy: Policy

    def __post_init__(self) -> None:
        """Check the name."""
        check_name(self.stream, "stream")
        _require(isinstance(self.policy, Policy), "policy must be a Policy")


@dataclass(frozen=True)
class AddBlocks:
    """Add blocks, in order, with no loss yet."""

    stream: str
    blocks: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check the names."""
        object.__setattr__(self, "blocks", names_of(self.blocks, "blocks"))
        check_name(self.stream, "stream")
        for block in self.blocks:
            check_name(block, "block")
        _require(
            0 < len(self.blocks) <= MAX_BLOCKS,
            f"blocks must be 1 to {MAX_BLOCKS}, got {len(self.blocks)}",
        )


@dataclass(frozen=True)
class SetQuota:
    """Let a context (a team, a door, a geography) use at most a share of the capacity at every
    point.
    """

    stream: str
    context: str
    share: Number

    def __post_init__(self) -> None:
        """Make the share exact."""
        check_name(self.stream, "stream")
        check_name(self.context, "context")
        object.__setattr__(self, "share", exact(self.share, name="share"))
        _require(
            0 < Fraction(self.share) <= 1, f"share must be above 0 and at most 1, got {self.share}"
        )


@dataclass(frozen=True, kw_only=True)
class Reserve:
    """Lay ``cost`` on every point of ``slices``, which must not overlap; the work has not started.

    ``contexts`` name whose quotas it counts against. ``key`` makes the request idempotent: asked
    again with the same key while RESERVED it is the same charge. From ``expires_at_ms`` on it can
    no longer be spent. With ``spend_at_ms`` the work starts at once: the charge is SPENT from the
    beginning.
    """

    stream: str
    slices: tuple[Slice, ...]
    cost: Cost
    expires_at_ms: int
    contexts: tuple[str, ...] = ()
    key: str | None = None
    spend_at_ms: int | None = None

    def __post_init__(self) -> None:
        """Check shapes and limits; what is known only to the state is checked by `decide`."""
        if type(self.slices) is not tuple:
            object.__setattr__(self, "slices", tuple(self.slices))
        check_name(self.stream, "stream")
        if self.contexts:
            object.__setattr__(
                self, "contexts", tuple(sorted(set(names_of(self.contexts, "contexts"))))
            )
            for context in self.contexts:
                check_name(context, "context")
            _require(len(self.contexts) <= MAX_CONTEXTS, f"contexts must be at most {MAX_CONTEXTS}")
        if self.key is not None:
            check_name(self.key, "key")
        _require(
            0 < len(self.slices) <= MAX_SLICES,
            f"slices must be 1 to {MAX_SLICES}, got {len(self.slices)}",
        )
        blocks = 0
        for slice_ in self.slices:
            _require(isinstance(slice_, Slice), "slices must be Slice values")
            blocks += len(slice_.blocks)
        _require(
            blocks <= MAX_BLOCKS, f"slices must name at most {MAX_BLOCKS} blocks, got {blocks}"
        )
        _require(isinstance(self.cost, Cost), "cost must be a Cost")
        _require_time(self.expires_at_ms, "expires_at_ms")
        if self.spend_at_ms is not None:
            _require_time(self.spend_at_ms, "spend_at_ms")
            _require(
                self.spend_at_ms < self.expires_at_ms, "spend_at_ms must be before expires_at_ms"
            )


@dataclass(frozen=True)
class ReserveAll:
    """Several reservations, all or none; each gets its own charge and grant."""

    requests: tuple[Reserve, ...]

    def __post_init__(self) -> None:
        """Check shape and limit."""
        object.__setattr__(self, "requests", tuple(self.requests))
        _require(0 < len(self.requests) <= MAX_RESERVES, f"requests must be 1 to {MAX_RESERVES}")
        _require(
            all(isinstance(request, Reserve) for request in self.requests),
            "requests must be Reserve values",
        )
        _require(
            all(request.spend_at_ms is None for request in self.requests),
            "requests of a batch are reserved, not spent",
        )


@dataclass(frozen=True)
class Spend:
    """The work on a charge starts now. There is no way back."""

    charge: int
    at_ms: int

    def __post_init__(self) -> None:
        """Check types."""
        _require_time(self.at_ms, "at_ms")
        _require(_is_charge(self.charge), "charge must be a charge number")


@dataclass(frozen=True)
class Release:
    """The work on a charge never started and never will: give the loss back."""

    charge: int

    def __post_init__(self) -> None:
        """Check types."""
        _require(_is_charge(self.charge), "charge must be a charge number")


@dataclass(frozen=True)
class Expire:
    """Release every reservation whose time is over."""

    at_ms: int

    def __post_init__(self) -> None:
        """Check types."""
        _require_time(self.at_ms, "at_ms")


@dataclass(frozen=True)
class Retire:
    """Close blocks for good: nothing is ever charged to them again. ``why`` is shown to people."""

    stream: str
    blocks: tuple[str, ...]
    why: str

    def __post_init__(self) -> None:
        """Check names."""
        object.__setattr__(self, "blocks", names_of(self.blocks, "blocks"))
        check_name(self.stream, "stream")
        check_name(self.why, "why")
        _require(
            0 < len(self.blocks) <= MAX_BLOCKS,
            f"blocks must be 1 to {MAX_BLOCKS}, got {len(self.blocks)}",
        )
        _require(len(set(self.blocks)) == len(self.blocks), "blocks must be named once each")


Command = (
    CreateStream | AddBlocks | SetQuota | Reserve | ReserveAll | Spend | Release | Expire | Retire
)


def _is_charge(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _require_time(value: object, name: str) -> None:
    _require(
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53,
        f"{name} must be milliseconds",
    )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvalidInput("COMMAND_INVALID", message)
