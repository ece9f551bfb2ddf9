from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from ptklib.errors import InvalidInput
from ptklib.ledger.slices import TAG_SPACE, WHOLE, Slice, TagRange


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 0), (5, 4), (-1, 3), (0, TAG_SPACE + 1), (0.0, 1.0), (False, True), ("0", "1"), (None, 1)],
)
def test_what_is_not_a_range_of_tags_is_refused(start: object, stop: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        TagRange(start, stop)  # type: ignore[arg-type]
    assert refusal.value.reason == "TAGS_INVALID"


def test_neighbouring_shares_meet_without_gap_or_overlap() -> None:
    thirds = [TagRange.of_shares(Fraction(k, 3), Fraction(k + 1, 3)) for k in range(3)]
    assert thirds[0].start == 0
    assert thirds[2].stop == TAG_SPACE
    for before, after in pairwise(thirds):
        assert before.stop == after.start
        assert not before.overlaps(after)
    assert sum(one.share for one in thirds) == 1
    assert TagRange.of_shares(0, "0.1").overlaps(TagRange.of_shares("0.05", 1))
    assert TagRange.of_shares(0, 1) == WHOLE


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ((), "SLICE_EMPTY"),
        (("a", "a"), "SLICE_DUPLICATE_BLOCK"),
        (("a", "b", "a"), "SLICE_DUPLICATE_BLOCK"),
    ],
)
def test_slices_name_blocks_once(blocks: tuple[str, ...], reason: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Slice(blocks)
    assert refusal.value.reason == reason
