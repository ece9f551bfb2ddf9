"""Pieces: disjoint stretches of the profile slice, and the charges that are laid on them.

The profile slice of a stream is a range of tags; a piece is the part ``[start, stop)`` of it, in
exact fractions. Pieces of one profile never overlap, so they hold different records whatever the
data is, and what runs on one costs the others nothing (parallel composition). Several charges may
lie on one piece; they add up there. A piece may be cut into disjoint parts, for several tasks that
share one charge: each point lies in one part, so what the charge says is what ran there.

Reason: PIECE_INVALID.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import Cost

__all__ = ["Piece", "PieceCost", "check_disjoint", "parts_of", "price_at"]


@dataclass(frozen=True)
class Piece:
    """A stretch of the profile slice, and how many records it is planned to hold.

    The real number is random and private.
    """

    name: str
    start: Fraction
    stop: Fraction
    planned_records: int

    def __post_init__(self) -> None:
        """Refuse what is no stretch of the slice."""
        if not 0 <= self.start < self.stop <= 1:
            raise InvalidInput(
                "PIECE_INVALID", f"piece {self.name!r} must have 0 <= start < stop <= 1"
            )

    @property
    def share(self) -> Fraction:
        """Of the profile slice."""
        return self.stop - self.start


@dataclass(frozen=True)
class PieceCost:
    """What one step of a profile costs at every point of one piece.

    ``name`` is unique in a profile.
    """

    name: str
    piece: Piece
    cost: Cost


def check_disjoint(pieces: Iterable[Piece]) -> None:
    """Refuse pieces that share a point (PIECE_INVALID)."""
    ordered = sorted(pieces, key=lambda piece: piece.start)
    for piece, other in pairwise(ordered):
        if other.start < piece.stop:
            raise InvalidInput(
                "PIECE_INVALID", f"pieces {piece.name!r} and {other.name!r} must not overlap"
            )


def parts_of(piece: Piece, count: int) -> tuple[Piece, ...]:
    """A piece in ``count`` parts of the same width, side by side."""
    ends = [piece.start + piece.share * k / count for k in range(count + 1)]
    records = piece.planned_records // count
    return tuple(
        Piece(f"{piece.name}/{k + 1}", *two, records) for k, two in enumerate(pairwise(ends))
    )


def price_at(charges: Iterable[PieceCost]) -> dict[Piece, Cost]:
    """What charges cost at the points of each piece, added up."""
    costs: dict[Piece, Cost] = {}
    for charge in charges:
        costs[charge.piece] = (
            costs[charge.piece] + charge.cost if charge.piece in costs else charge.cost
        )
    return costs
