"""Pieces are disjoint, and the worst case is known and priced before anything runs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from benchmarks._profiler.ptks import ClosedMean, Mean
from profiler.fitting import fitted_schedule
from profiler.levels import privacy_levels
from profiler.measuring import schedule as scheduling
from profiler.measuring.pieces import Piece, check_disjoint, parts_of, price_at
from profiler.measuring.retraining import LEAST_STATES, MOST_STATES
from profiler.measuring.schedule import READINGS, LevelSchedule, schedule
from profiler.measuring.terms import FLOOR, STATES, Prices, ProfileTerms
from profiler.sizing import largest_planned, least_records, needed_records
from ptklib.errors import InvalidInput

LEVELS = ("0.1", "0.3", "1")


def test_every_training_has_a_piece_of_its_own_and_looks_share_one() -> None:
    plan = schedule(Mean(), ProfileTerms.of("0.1", 1, n_max=512), LEVELS, 400_000)
    pieces = {charge.piece for charge in plan.charges}
    check_disjoint(pieces)
    assert max(one.stop for one in pieces) <= 1
    for level in plan.levels:
        assert [one.size for one in level.trains] == list(level.sizes)
        assert len(level.looks) == len(level.sizes).bit_length() + 1, "halving, and one more"
        assert {charge.piece for charge in level.looks + level.readings} == {level.validation}
        for size in level.trains:
            parts = [part or charge.piece for charge, part in size.parts()]
            check_disjoint(parts)
            assert {part.planned_records for part in parts} == {size.size}
            assert len(parts) == size.states == MOST_STATES
    names = [charge.name for charge in plan.charges]
    assert len(names) == len(set(names))


def test_a_small_slice_has_fewer_states_of_large_sizes_and_a_coarser_test() -> None:
    terms = ProfileTerms.of("0.1", 1, n_max=4096)
    plans = [schedule(Mean(), terms, ["1"], records).levels[0] for records in (6_000, 40_000)]
    for level, records in zip(plans, (6_000, 40_000), strict=True):
        assert level.validation is not None
        states = [one.states for one in level.trains]
        assert states == sorted(states, reverse=True)
        assert min(states) >= LEAST_STATES
        planned = {charge.piece: charge.piece.planned_records for charge in level.charges}
        assert level.needed_records == sum(planned.values()) <= records
        assert level.test.records == level.validation.planned_records
    assert len(plans[0].sizes) < len(plans[1].sizes)
    assert plans[0].test.margin > plans[1].test.margin


def test_no_training_is_smaller_than_makes_sense() -> None:
    terms = ProfileTerms.of("0.1", 1)
    assert terms.sizes(Fraction(1))[0] == FLOOR
    assert terms.sizes(Fraction(1, 100))[0] == 1024, "the noise of epsilon 0.01"


def test_a_small_slice_measures_fewer_levels_and_the_highest_has_half() -> None:
    terms = ProfileTerms.of("0.1", 1, n_max=4096)
    levels = privacy_levels(1)
    counts = []
    for records in (15_000, 40_000, 10**6):
        plan = fitted_schedule(Mean(), terms, levels, records, 4)
        counts.append(len(plan.levels))
        assert plan.levels[-1].level == levels[-1]
        widths = [
            sum(piece.share for piece in {charge.piece for charge in one.charges})
            for one in plan.levels
        ]
        assert widths[-1] <= (1 if len(widths) == 1 else Fraction(1, 2))
        check_disjoint({charge.piece for charge in plan.charges})
    assert counts[0] == 1 < counts[1] <= counts[2] == 4
    assert len(fitted_schedule(Mean(), terms, levels, 15_000, 4).levels[-1].sizes) >= 5


def test_many_states_are_read_where_they_are_cheap_on_one_piece_and_one_charge() -> None:
    plan = schedule(Mean(), ProfileTerms.of("0.1", 1, n_max=8192), ["0.1", "1"], 10**7)
    for level in plan.levels:
        assert level.validation is not None
        assert len(level.readings) == READINGS
        sizes = [one.size for one in level.reads]
        assert sizes[:4] == [level.sizes[0] // 8 * 2**k or 1 for k in range(4)] or sizes[0] == 1
        assert all(other == 2 * one for one, other in pairwise(sizes)), (
            "none is left out in between"
        )
        for one in level.reads:
            piece = one.train.piece
            assert 6 <= one.states <= STATES
            assert (
                piece.planned_records
                == one.size * one.states
                <= level.validation.planned_records / 2
            )
            parts = parts_of(piece, one.states)
            check_disjoint(parts)
            assert (parts[0].start, parts[-1].stop) == (piece.start, piece.stop)
            assert {part.planned_records for part in parts} == {one.size}
            assert one.train.cost == Mean().cost(level.level)


def test_a_slice_without_room_to_read_keeps_its_doublings_and_pays_its_looks_with_all_there_is() -> (
    None
):
    terms = ProfileTerms.of("0.1", 1, n_max=8192)
    bare = schedule(Mean(), replace(terms, states=0), ["1"], 10**7).levels[0]
    whole = schedule(Mean(), terms, ["1"], 10**7).levels[0]
    assert (bare.reads, bare.readings) == ((), ())
    tight = schedule(Mean(), terms, ["1"], bare.needed_records).levels[0]
    assert tight.sizes == bare.sizes
    assert (tight.look, tight.needed_records) == (bare.look, bare.needed_records)
    assert (tight.reads, tight.readings) == ((), ())
    between = schedule(
        Mean(), terms, ["1"], (bare.needed_records + whole.needed_records) // 2
    ).levels[0]
    assert between.sizes == whole.sizes == bare.sizes
    assert between.needed_records < whole.needed_records
    fewer = {one.size: one.states for one in between.reads}
    assert sum(fewer.values()) < sum(one.states for one in whole.reads)


def test_the_worst_case_is_the_sum_of_what_may_run() -> None:
    terms = ProfileTerms.of(
        "0.1", 1, n_max=512, prices=Prices(looks=Fraction(1, 2), lower=Fraction(1, 8))
    )
    plan = schedule(Mean(), terms, LEVELS, 200_000)
    for level in plan.levels:
        at = {piece.name: cost.epsilon(0) for piece, cost in price_at(level.charges).items()}
        assert at.pop(f"level {float(level.level):g}/validation") == pytest.approx(0.5)
        for name, epsilon in at.items():
            tested = name.startswith(f"level {float(level.level):g}/train-") and name.endswith("-1")
            tested = tested and "-more-" not in name
            assert epsilon == pytest.approx(float(level.level) + (0.125 if tested else 0))
    assert set(plan.worst_case) == {charge.piece for charge in plan.charges}


def test_a_small_slice_has_fewer_doublings_and_a_tiny_one_none() -> None:
    terms = ProfileTerms.of("0.1", 1, n_max=1 << 20)
    sizes = [
        len(schedule(Mean(), terms, ["1"], records).levels[0].sizes)
        for records in (20_000, 100_000, 10**7)
    ]
    assert 0 < sizes[0] < sizes[1] < sizes[2]
    empty = schedule(Mean(), terms, ["1"], 100)
    assert empty.charges == ()
    assert empty.levels[0].needed_records > 100


def test_the_target_itself_is_what_is_promised() -> None:
    assert ProfileTerms.of("0.1", 1).promised == Fraction(1, 10)


def test_levels_laid_over_each_other_are_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the layout would charge two levels once for the same records: it is looked for at
    the end.
    """
    lay = scheduling._level

    def anew(*asked: Any) -> tuple[LevelSchedule, Fraction]:
        return lay(*asked)[0], Fraction(0)

    assert schedule(Mean(), ProfileTerms.of("0.1", 1), LEVELS, 10**7).charges
    monkeypatch.setattr(scheduling, "_level", anew)
    with pytest.raises(InvalidInput) as error:
        schedule(Mean(), ProfileTerms.of("0.1", 1), LEVELS, 10**7)
    assert error.value.reason == "PIECE_INVALID"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ProfileTerms.of("0", 1),
        lambda: ProfileTerms.of("1", 1),
        lambda: Prices(looks=Fraction(0), lower=Fraction(1)),
        lambda: schedule(Mean(), ProfileTerms.of("0.1", 1), [], 1000),
        lambda: schedule(Mean(), ProfileTerms.of("0.1", 1), ["0.3", "0.1"], 1000),
        lambda: Piece("x", Fraction(1, 2), Fraction(1, 2), 5),
        lambda: check_disjoint(
            [Piece("x", Fraction(0), Fraction(1), 5), Piece("y", Fraction(1, 2), Fraction(1), 5)]
        ),
    ],
)
def test_what_cannot_be_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        wrong()  # type: ignore[operator]


def test_the_records_of_a_profile_are_told_before_any_data() -> None:
    terms = ProfileTerms.of("0.1", 1, n_max=1024)
    assert needed_records(ClosedMean(variance=0.01), terms, LEVELS) == 0, "it has a closed form"
    # What is asked for is enough: the largest plan is within reach, and hardly with less.
    needed = needed_records(Mean(), terms, LEVELS)
    reach = [
        largest_planned(schedule(Mean(), terms, LEVELS[-1:], records))
        for records in (needed, needed * 9 // 10)
    ]
    assert reach[1] < 1024 <= reach[0]
    least = least_records(Mean(), terms, LEVELS)
    assert least < needed
    assert schedule(Mean(), terms, LEVELS[-1:], least).levels[0].sizes
    assert not schedule(Mean(), terms, LEVELS[-1:], least - 1).levels[0].sizes
