"""Who is in a batch: each record by itself, at the rate that is priced."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ptklib.models.sgd.members import (
    KEY_BYTES,
    PoissonBatches,
    TaggedBatches,
    new_key,
    tags_of,
)
from ptklib.testing.noise import SeededSource, planted_noise

SURE = 1e-6


def drawn(records: int, rate: Fraction, steps: int, seed: int = 1) -> NDArray[np.bool_]:
    """Members by step and record."""
    with planted_noise():
        batches = PoissonBatches(records, rate, SeededSource(seed))
        made = np.zeros((steps, records), dtype=bool)
        for row in made:
            members = batches.batch()
            assert np.all(np.diff(members) > 0)
            row[members] = True
    return made


@pytest.mark.parametrize("rate", ["1/1000", "1/50", "1/5", "1/2", "9/10", "99/100"])
def test_every_record_is_in_a_batch_at_the_rate(rate: str) -> None:
    """In all, by record, by step, and not 10% more or less."""
    q, records, steps = float(Fraction(rate)), 200, 4000
    made = drawn(records, Fraction(rate), steps)
    total = int(made.sum())
    assert SURE < stats.binom.cdf(total, records * steps, q) < 1 - SURE
    for wrong in (0.9 * q, min(1 - (1 - q) * 0.9, 1.1 * q)):
        assert not SURE < stats.binom.cdf(total, records * steps, wrong) < 1 - SURE or q < 0.002
    for axis, trials in ((0, steps), (1, records)):
        p_values = stats.binom.cdf(made.sum(axis=axis), trials, q)
        low, high = SURE / made.shape[1 - axis], 1 - SURE / made.shape[1 - axis]
        assert np.all(p_values >= low)
        assert np.all(stats.binom.cdf(made.sum(axis=axis) - 1, trials, q) <= high)


def test_members_are_independent_of_neighbours_and_of_steps() -> None:
    q, made = 0.3, drawn(100, Fraction(3, 10), 8000)
    pairs = {
        "next record": (made[:, 1:] & made[:, :-1]),
        "next step": (made[1:] & made[:-1]),
        "last and first of the next": (made[1:, 0] & made[:-1, -1]),
    }
    for both in pairs.values():
        assert SURE < stats.binom.cdf(int(both.sum()), both.size, q * q) < 1 - SURE


def test_a_rate_of_one_takes_all_and_no_records_make_empty_batches() -> None:
    assert drawn(5, Fraction(1), 3).all()
    with planted_noise():
        empty = PoissonBatches(0, Fraction(1, 2), SeededSource(1))
        assert len(empty.batch()) == 0


def test_numbers_drawn_ahead_do_not_pile_up() -> None:
    """What is kept is at most a few batches or one draw."""
    with planted_noise():
        batches = PoissonBatches(1000, Fraction(1, 100), SeededSource(1))
        for _ in range(500):
            batches.batch()
            assert len(batches._ahead) <= 2 * (1 << 10)


def dealt(rows: NDArray[np.float32], batches: int, keys: tuple[bytes, bytes]) -> NDArray[np.intp]:
    """The batch of each record."""
    labels = (rows[:, 0] > 0).astype(np.float32)
    made = TaggedBatches(tags_of(rows, labels, keys[0]), keys[1], batches)
    places = np.full(len(rows), -1)
    for place in range(batches):
        members = made.batch(place)
        assert np.all(places[members] == -1)
        places[members] = place
    assert np.all(places >= 0)
    return places


@pytest.fixture(name="rows")
def _rows() -> NDArray[np.float32]:
    return np.random.default_rng(1).integers(-2000, 2000, (3000, 6)).astype(np.float32)


def test_a_record_is_in_its_batch_whoever_else_is_there(rows: NDArray[np.float32]) -> None:
    """Added, removed, elsewhere: no other record moves. Batches cut by place would move."""
    keys = (bytes(range(KEY_BYTES)), bytes(KEY_BYTES))
    places = dealt(rows, 7, keys)
    assert np.array_equal(dealt(rows[1:], 7, keys), places[1:])
    order = np.random.default_rng(2).permutation(len(rows))
    assert np.array_equal(dealt(rows[order], 7, keys), places[order])
    doubled = dealt(np.concatenate([rows, rows[:5]]), 7, keys)
    assert np.array_equal(doubled[:5], doubled[-5:])


def test_batches_by_tag_are_about_equal_and_change_with_the_key(rows: NDArray[np.float32]) -> None:
    seen = []
    for epoch in range(20):
        places = dealt(rows, 7, (b"1" * KEY_BYTES, bytes([epoch]) * KEY_BYTES))
        seen.append(places)
        counts = np.bincount(places, minlength=7)
        assert stats.chisquare(counts).pvalue > SURE
    agree = np.mean([np.mean(a == b) for a, b in itertools.pairwise(seen)])
    assert agree == pytest.approx(1 / 7, abs=0.02)


def test_the_label_is_part_of_the_tag(rows: NDArray[np.float32]) -> None:
    key = b"2" * KEY_BYTES
    zeros, ones = (np.full(len(rows), value, np.float32) for value in (0, 1))
    assert not np.any(tags_of(rows, zeros, key) == tags_of(rows, ones, key))
    assert len(set(tags_of(rows, zeros, key).tolist())) == len(rows)


def test_keys_are_fresh() -> None:
    assert len({new_key(None) for _ in range(100)}) == 100
    assert len(new_key(None)) == KEY_BYTES
