"""The loss map against the naive way: an array with one loss per cell of a small line of tags."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ptklib.ledger.loss_map import LossMap
from ptklib.ledger.slices import TAG_SPACE, WHOLE, TagRange

CELLS = 16
BOUNDS = [TAG_SPACE * k // CELLS for k in range(CELLS + 1)]

ranges = st.tuples(st.integers(0, CELLS - 1), st.integers(1, CELLS)).filter(
    lambda pair: pair[0] < pair[1]
)
charges = st.lists(st.tuples(ranges, st.tuples(st.integers(0, 3), st.integers(0, 2))), max_size=12)


def tags(pair: tuple[int, int]) -> TagRange:
    return TagRange(BOUNDS[pair[0]], BOUNDS[pair[1]])


def expand(loss: LossMap) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    cells = np.zeros((CELLS, 2), dtype=np.int64)
    for one, row in loss.segments():
        cells[BOUNDS.index(one.start) : BOUNDS.index(one.stop)] = row
    return cells


@given(charges)
def test_it_is_the_sum_of_what_covers_each_tag(
    laid: list[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    loss = LossMap.empty(2)
    cells = np.zeros((CELLS, 2), dtype=np.int64)
    for pair, demand in laid:
        loss.add(tags(pair), np.array(demand))
        cells[pair[0] : pair[1]] += demand
        assert (expand(loss) == cells).all()
        assert (loss.peak() == cells.max(axis=0)).all()


@given(charges, ranges)
def test_within_gives_exactly_the_losses_that_meet_the_range(
    laid: list[tuple[tuple[int, int], tuple[int, int]]], asked: tuple[int, int]
) -> None:
    loss = LossMap.empty(2)
    cells = np.zeros((CELLS, 2), dtype=np.int64)
    for pair, demand in laid:
        loss.add(tags(pair), np.array(demand))
        cells[pair[0] : pair[1]] += demand
    met = {tuple(row) for row in loss.within(tags(asked)).tolist()}
    assert met == {tuple(row) for row in cells[asked[0] : asked[1]].tolist()}


@given(charges, st.randoms(use_true_random=False))
def test_it_depends_on_the_charges_not_on_their_order(
    laid: list[tuple[tuple[int, int], tuple[int, int]]], random: object
) -> None:
    shuffled = list(laid)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    maps = []
    for order in (laid, shuffled):
        loss = LossMap.empty(2)
        for pair, demand in order:
            loss.add(tags(pair), np.array(demand))
        maps.append(loss.segments())
    assert maps[0] == maps[1]


@given(charges, ranges)
def test_taking_a_charge_back_restores_it_bit_for_bit(
    laid: list[tuple[tuple[int, int], tuple[int, int]]], last: tuple[int, int]
) -> None:
    loss = LossMap.empty(2)
    for pair, demand in laid:
        loss.add(tags(pair), np.array(demand))
    before = (list(loss.starts), loss.rows.tobytes())
    loss.add(tags(last), np.array([7, 1]))
    loss.take_back(tags(last), np.array([7, 1]))
    assert (loss.starts, loss.rows.tobytes()) == before


def test_neighbours_that_become_equal_are_one_segment() -> None:
    loss = LossMap.empty(1)
    loss.add(TagRange(0, 100), np.array([5]))
    loss.add(TagRange(100, TAG_SPACE), np.array([5]))
    assert loss.segments() == [(WHOLE, (5,))]


@given(charges, st.data())
def test_the_ceiling_is_never_below_a_loss(
    laid: list[tuple[tuple[int, int], tuple[int, int]]], data: st.DataObject
) -> None:
    loss = LossMap.empty(2)
    kept = []
    for pair, demand in laid:
        loss.add(tags(pair), np.array(demand))
        kept.append((pair, demand))
        assert (loss.ceiling >= loss.peak()).all()
        if data.draw(st.booleans()):
            back, amount = kept.pop(data.draw(st.integers(0, len(kept) - 1)))
            loss.take_back(tags(back), np.array(amount))
            assert (loss.ceiling >= loss.peak()).all()
        if data.draw(st.booleans()):
            loss.tighten()
            assert (loss.ceiling == loss.peak()).all()
