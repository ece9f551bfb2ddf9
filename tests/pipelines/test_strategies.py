"""Strategies as functions of what they are told: the same situation, the same answer."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ptklib.pipelines.aggressive import Aggressive
from ptklib.pipelines.attempts import (
    LOOK,
    RETRIED,
    SEEN,
    TEST,
    NextAttempt,
    Offered,
    OfferedBlock,
    Situation,
    Tried,
    Wait,
)
from ptklib.pipelines.conserve import Conserve
from ptklib.pipelines.planned import PlanAhead
from ptklib.validators.interval import LossRange
from ptklib.validators.power import samples_needed

LIMIT = Fraction(1, 2)


def situation(
    *tried: Tried, blocks: tuple[tuple[int, str], ...] = ((50_000, "0.5"),), target: str = "0.1"
) -> Situation:
    offered = tuple(
        OfferedBlock(f"b{place}", records, Fraction(left))
        for place, (records, left) in enumerate(blocks)
    )
    return Situation(
        target=Fraction(target),
        eta=Fraction(1, 40),
        limit=LIMIT,
        tests=Fraction(1, 5),
        records_per_unit=1,
        tried=tried,
        offer=Offered(offered),
    )


def retried(epsilon: str, records: int) -> Tried:
    return Tried(TEST, Fraction(epsilon), records, RETRIED)


def look(epsilon: str, loss: float, width: float = 0.01, records: int = 50_000) -> Tried:
    seen = LossRange(loss - width / 2, loss + width / 2, loss)
    return Tried(LOOK, Fraction(epsilon), records, SEEN, seen)


@pytest.mark.parametrize(
    ("tried", "blocks", "answer"),
    [
        ((), ((100, "0.5"),), NextAttempt(LIMIT / 64)),
        ((), (), None),
        ((), ((0, "0.5"),), None),
        # Twice the budget while there is that much on as many records ...
        ((retried("0.1", 100),), ((100, "0.4"),), NextAttempt(Fraction(1, 5))),
        ((retried("0.1", 100),), ((60, "0.2"), (60, "0.25")), NextAttempt(Fraction(1, 5))),
        # ... then twice the records, at the same budget or less.
        ((retried("0.3", 100),), ((100, "0.2"), (200, "0.5")), NextAttempt(Fraction(3, 10))),
        ((retried("0.3", 100),), ((100, "0.2"), (150, "0.5")), None),
        ((retried("0.3", 100),), ((200, "0.2"), (150, "0.5")), NextAttempt(Fraction(1, 5))),
        ((retried("0.3", 100),), ((100, "0.2"),), None),
    ],
)
def test_conserve(
    tried: tuple[Tried, ...], blocks: tuple[tuple[int, str], ...], answer: NextAttempt | None
) -> None:
    step = Conserve().next(situation(*tried, blocks=blocks))
    if answer is None:
        assert isinstance(step, Wait)
    else:
        assert step == answer


def test_aggressive_takes_what_is_most_at_once() -> None:
    wide = ((10_000, "0.1"), (1_000, "0.5"))
    assert Aggressive().next(situation(blocks=wide)) == NextAttempt(Fraction(1, 10))
    deep = ((10_000, "0.1"), (9_000, "0.5"))
    assert Aggressive().next(situation(blocks=deep)) == NextAttempt(LIMIT)
    assert isinstance(Aggressive().next(situation(blocks=((10, "0"),))), Wait)


def test_planned_looks_twice_then_takes_the_least_budget_that_should_do() -> None:
    strategy = PlanAhead()
    first = strategy.next(situation())
    assert first == NextAttempt(LIMIT / 64, LOOK)
    second = strategy.next(situation(look("0.0078125", 0.2)))
    assert second == NextAttempt(LIMIT / 16, LOOK)
    # loss = 0.05 + 0.15 (epsilon/first): 0.05 + 0.0375 at the second look
    looks = (look("0.0078125", 0.2), look("0.03125", 0.0875))
    step = strategy.next(situation(*looks))
    assert isinstance(step, NextAttempt)
    assert step.purpose == TEST

    def does(epsilon: Fraction) -> bool:
        loss = 0.05 + 1.15 * 0.15 * 0.0078125 / float(epsilon)
        needed = samples_needed(
            target="0.1", epsilon=epsilon, eta="0.025", loss=Fraction(loss).limit_denominator(10**9)
        )
        return needed is not None and needed <= 10_000

    assert does(step.epsilon)
    assert not does(step.epsilon * Fraction(7, 8))
    # What the curve promised did not hold: twice the budget from there on.
    after = strategy.next(situation(*looks, Tried(TEST, step.epsilon, 50_000, RETRIED)))
    assert after == NextAttempt(2 * step.epsilon)


def test_planned_looks_again_where_a_look_told_nothing() -> None:
    vague = look("0.0078125", 0.2, width=0.9)
    assert PlanAhead().next(situation(vague)) == NextAttempt(LIMIT / 16, LOOK)
    told = look("0.03125", 0.2)
    assert PlanAhead().next(situation(vague, told)) == NextAttempt(LIMIT / 4, LOOK)


def test_planned_says_what_it_would_take() -> None:
    # 0.08 + 0.05 times the budget of the first look: near enough, with more records to test on.
    near = [look(epsilon, loss, 0.001, 2_000) for epsilon, loss in (("0.1", 0.13), ("0.2", 0.105))]
    step = PlanAhead().next(situation(*near, blocks=((2_000, "0.2"),)))
    assert isinstance(step, Wait)
    assert step.records is not None
    assert step.records > 2_000
    # With twice the records it looks again, before it believes the old looks for ever.
    assert PlanAhead().next(situation(*near, blocks=((4_000, "0.5"),))) == NextAttempt(
        Fraction(1, 5), LOOK
    )
    # What the intervals leave open is looked at more closely.
    vague = [
        look(epsilon, loss, 0.08, 20_000) for epsilon, loss in (("0.05", 0.13), ("0.1", 0.125))
    ]
    assert PlanAhead().next(situation(*vague, blocks=((20_000, "1"),))) == NextAttempt(
        Fraction("0.4"), LOOK
    )
    # No budget brings it below 0.2.
    far = (look("0.1", 0.3), look("0.2", 0.25))
    step = PlanAhead().next(situation(*far))
    assert isinstance(step, Wait)
    assert step.records is None
    assert "0.2" in step.reason


@pytest.mark.parametrize("strategy", [Aggressive(), Conserve(), PlanAhead()])
def test_no_strategy_asks_for_more_than_some_block_has_left(
    strategy: Aggressive | Conserve | PlanAhead,
) -> None:
    for left in ("0.001", "0.02", "0.3", "0.5"):
        for tried in ((), (retried("0.01", 1000),), (look("0.01", 0.2), look("0.04", 0.1))):
            asked = situation(*tried, blocks=((2_000, left), (500, "0.0005")))
            step = strategy.next(asked)
            if isinstance(step, NextAttempt):
                assert asked.offer.records(step.epsilon) > 0
                assert step == strategy.next(asked)
