"""Slices: blocks x a range of tags. The unit that charges are laid on and grants open.

A tag is 64 uniform random bits of a record (or of its user); a `TagRange` is a half-open range
``[start, stop)`` of them. Reasons: TAGS_INVALID, SLICE_EMPTY, SLICE_DUPLICATE_BLOCK, NAME_INVALID.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact

__all__ = ["MAX_NAME", "TAG_SPACE", "WHOLE", "Slice", "TagRange", "check_name", "names_of"]

TAG_SPACE = 2**64
MAX_NAME = 200


def check_name(value: object, what: str) -> str:
    """Names of streams, blocks, contexts and keys: printable, not empty, of bounded length."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise InvalidInput(
            "NAME_INVALID",
            f"{what} must be 1 to {MAX_NAME} printable characters, got {value!r:.60}",
        )
    return value


def names_of(values: Iterable[str], what: str) -> tuple[str, ...]:
    """Several names. A single text is refused: its letters are hardly what was meant."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(
            "NAME_INVALID", f"{what} must be a list of names, got {type(values).__name__}"
        )
    return tuple(values)


@dataclass(frozen=True, order=True)
class TagRange:
    """The tags ``start <= tag < stop``."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        """Refuse what is not a range of tags."""
        for bound in (self.start, self.stop):
            if not isinstance(bound, int) or isinstance(bound, bool):
                raise InvalidInput(
                    "TAGS_INVALID", f"tag bounds must be integers, got {type(bound).__name__}"
                )
        if not 0 <= self.start < self.stop <= TAG_SPACE:
            raise InvalidInput(
                "TAGS_INVALID", f"tags must satisfy 0 <= start < stop <= 2**64, got {self}"
            )

    @classmethod
    def of_shares(cls, start: Number, stop: Number) -> TagRange:
        """The tags from share ``start`` to share ``stop`` of the line: ``of_shares(0, '0.1')`` is
        the first tenth.

        Equal shares give equal bounds, so neighbouring ranges made this way never overlap and leave
        no gap.
        """
        return cls(_bound(exact(start, name="start")), _bound(exact(stop, name="stop")))

    @property
    def share(self) -> Fraction:
        """The expected share of a block's records inside this range."""
        return Fraction(self.stop - self.start, TAG_SPACE)

    def overlaps(self, other: TagRange) -> bool:
        """True when some tag lies in both."""
        return self.start < other.stop and other.start < self.stop


def _bound(share: Fraction) -> int:
    return share.numerator * TAG_SPACE // share.denominator


WHOLE = TagRange(0, TAG_SPACE)


@dataclass(frozen=True)
class Slice:
    """Some blocks of one stream, and the tags of their records that are meant."""

    blocks: tuple[str, ...]
    tags: TagRange = WHOLE

    def __post_init__(self) -> None:
        """Refuse empty slices and a block named twice."""
        object.__setattr__(self, "blocks", names_of(self.blocks, "blocks"))
        if not self.blocks:
            raise InvalidInput("SLICE_EMPTY", "a slice must name at least one block")
        if not isinstance(self.tags, TagRange):
            raise InvalidInput(
                "TAGS_INVALID", f"tags must be a TagRange, got {type(self.tags).__name__}"
            )
        if len(set(self.blocks)) != len(self.blocks):
            raise InvalidInput("SLICE_DUPLICATE_BLOCK", "a slice must name each block once")
