"""Who trains where not all can: the rule against every set there is, and that nobody starves."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.admission.coordinates import PtkOffers
from allocator.admission.largest_set import EXACT, HasPlan, largest_set
from allocator.admission.settling import settle_many
from allocator.admission.short_window import carried_by
from allocator.admission.single import settle
from ptklib.privacy.costs import Cost
from ptklib.privacy.filters import make_filter
from tests.allocator.test_currency import CASES, offers, pure


def by_brute_force(
    turns: Sequence[str], overdue: Collection[str], has_plan: HasPlan
) -> tuple[str, ...]:
    """Every set, judged by the rule as it is written."""
    fitting = [name for name in turns if has_plan((name,))]
    waiting = [name for name in fitting if name in overdue]
    best: tuple[int, tuple[bool, ...]] = (0, ())
    members: tuple[str, ...] = ()
    for inside in product((True, False), repeat=len(fitting)):
        some = tuple(name for name, one in zip(fitting, inside, strict=True) if one)
        if not some or (waiting and waiting[0] not in some):
            continue
        # Tuples of truth compare as line 4 of the rule says.
        key = (len(some), inside)
        if key > best and has_plan(some):
            best, members = key, some
    return members


def knapsack(sizes: dict[str, int], room: int) -> HasPlan:
    return lambda names: sum(sizes[name] for name in names) <= room


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=EXACT),
    st.integers(0, 30),
    st.sets(st.integers(0, EXACT - 1)),
    st.lists(st.sets(st.integers(0, EXACT - 1), min_size=2, max_size=3), max_size=3),
)
def test_the_set_of_the_rule_is_found_among_all_sets(
    sizes: list[int], room: int, overdue: set[int], enemies: list[set[int]]
) -> None:
    turns = [f"p{(5 * place + 2) % 17}" for place in range(len(sizes))]
    named = dict(zip(turns, sizes, strict=True))
    late = {turns[place] for place in overdue if place < len(turns)}
    apart = [{turns[place] for place in some if place < len(turns)} for some in enemies]

    def has_plan(names: Sequence[str]) -> bool:
        """Together small enough, and none of those all together that do not go together."""
        return knapsack(named, room)(names) and not any(
            len(some) > 1 and some <= set(names) for some in apart
        )

    found = largest_set(turns, late, has_plan, sizes=named)
    assert found.members == by_brute_force(turns, late, has_plan)
    assert found.alone == tuple(name for name in turns if named[name] <= room)
    assert found.proven


@pytest.mark.parametrize(("composition", "delta", "cost"), CASES)
def test_windows_of_every_size_carry_the_largest_set_that_has_a_plan(
    composition: str, delta: object, cost: Callable[[str, int], Cost]
) -> None:
    privacy_filter = make_filter(composition, 1, delta)  # type: ignore[arg-type]
    ptks = offers(privacy_filter, cost, seed=3, ptks=5)
    loss = (0,) * privacy_filter.width
    named = {ptk.id: ptk for ptk in ptks}
    usual = settle_many(privacy_filter, loss, ptks, seconds=1.0, remedy=False).plan.total_samples
    assert usual is not None
    for percent in (1, 5, 10, 20, 35, 50, 70, 85, 100):
        room = usual * percent // 100

        @cache
        def has_plan(names: tuple[str, ...], room: int = room) -> bool:
            some = [named[name] for name in names]
            if room < 1:
                return False
            if settle(privacy_filter, loss, some, n_max=room).plan.total_samples is not None:
                return True
            return (
                settle_many(
                    privacy_filter, loss, some, n_max=room, seconds=1.0, remedy=False
                ).plan.total_samples
                is not None
            )

        late = {ptks[-1].id}
        found = carried_by(privacy_filter, loss, ptks, n_max=room, overdue=late)
        assert sorted(found.members) == sorted(
            by_brute_force([ptk.id for ptk in ptks], late, has_plan)
        )
        assert found.settled.plan.total_samples is None or found.settled.plan.total_samples <= room
        assert {one.id for one in found.left_out} == set(named) - set(found.members)
        for one in found.left_out:
            assert one.reason == ("OTHERS_FIRST" if has_plan((one.id,)) else "WINDOW_TOO_SMALL"), (
                one
            )
        assert (len(found.members) == len(ptks)) == (percent == 100)


def simulated(sizes: dict[str, int], rooms: Sequence[int]) -> list[tuple[str, ...]]:
    """Windows one after the other, with the line kept as a store keeps it: left out first, then in
    order of registration.
    """
    since: dict[str, int] = {}
    found = []
    for window, room in enumerate(rooms):
        turns = sorted(
            sizes, key=lambda name: (since.get(name, len(rooms)), list(sizes).index(name))
        )
        members = largest_set(turns, set(since), knapsack(sizes, room), sizes=sizes).members
        found.append(members)
        since = {name: since.get(name, window) for name in sizes if name not in members}
    return found


@pytest.mark.parametrize("seed", range(40))
def test_whoever_fits_alone_trains_in_one_of_as_many_windows_of_its_size_as_there_are_ptks(
    seed: int,
) -> None:
    rng = random.Random(seed)
    count = rng.choice((3, 6, 8, 14))
    sizes = {f"p{place}": rng.randint(1, 20) for place in range(count)}
    # Windows from the usual size down to almost nothing, small ones most of the time.
    rooms = [
        max(1, sum(sizes.values()) * rng.choice((1, 2, 5, 10, 15, 30, 60, 100)) // 100)
        for _ in range(60)
    ]
    trained = simulated(sizes, rooms)
    for name, size in sizes.items():
        idle = 0
        for room, members in zip(rooms, trained, strict=True):
            if size <= room:
                idle = 0 if name in members else idle + 1
                assert idle <= count, (name, rooms)


def test_most_members_alone_would_leave_a_large_ptk_out_for_ever() -> None:
    """The rule without its second line: this is what that line is for."""
    sizes = {"large": 2, "one": 1, "two": 1}
    always = [
        largest_set(list(sizes), (), knapsack(sizes, 2), sizes=sizes).members for _ in range(5)
    ]
    assert always == [("one", "two")] * 5
    assert simulated(sizes, [2] * 4) == [("one", "two"), ("large",), ("one", "two"), ("large",)]


@pytest.mark.parametrize("seed", range(5))
def test_of_many_ptks_the_most_train_the_overdue_one_among_them_with_few_looks(seed: int) -> None:
    rng = random.Random(seed)
    sizes = {f"p{place}": rng.randint(1, 1000) for place in range(200)}
    turns = rng.sample(list(sizes), 200)
    room = sum(sizes.values()) * (1, 10, 40, 80, 99)[seed] // 100
    late = set(rng.sample(turns, 20))
    asked = []

    def has_plan(names: Sequence[str]) -> bool:
        asked.append(len(names))
        return knapsack(sizes, room)(names)

    found = largest_set(turns, late, has_plan, sizes=sizes, looks=250)
    head = next(name for name in turns if name in late and sizes[name] <= room)
    assert head in found.members
    left, most = room - sizes[head], 1
    for size in sorted(size for name, size in sizes.items() if name != head):
        left -= size
        most += left >= 0
    assert len(found.members) == most
    assert sum(sizes[name] for name in found.members) <= room
    assert all(
        sum(sizes[one] for one in (*found.members, name)) > room
        for name in turns
        if name not in found.members
    )
    assert len(asked) <= 200 + 250


def test_when_the_looks_are_used_up_the_set_still_has_a_plan() -> None:
    sizes = {f"p{place}": 1 + place % 7 for place in range(30)}
    for looks in range(12):
        found = largest_set(list(sizes), ["p20"], knapsack(sizes, 40), sizes=sizes, looks=looks)
        assert "p20" in found.members
        assert sum(sizes[name] for name in found.members) <= 40
        assert not found.proven


def test_each_reason_to_be_left_out() -> None:
    privacy_filter = make_filter("pure", 1, 0)
    small, large, other = offers(privacy_filter, pure, 1, ptks=3)
    none = PtkOffers("none", ())
    least = settle(privacy_filter, (0, 0), [large]).plan.total_samples
    assert least is not None
    found = carried_by(privacy_filter, (0, 0), [none, large], n_max=least - 1)
    assert {one.id: one.reason for one in found.left_out} == {
        "none": "TARGET_UNREACHABLE",
        large.id: "WINDOW_TOO_SMALL",
    }
    assert (
        f"needs {least} samples at least, and the window has {least - 1}" in found.left_out[1].text
    )
    assert found.settled.plan.status == "INFEASIBLE"
    spent = carried_by(privacy_filter, (10**9 - 1, 0), [small, other], n_max=10**9)
    assert {one.reason for one in spent.left_out} == {"BUDGET_TOO_SMALL"}
    nothing_there = carried_by(privacy_filter, (0, 0), [small], n_max=0)
    assert [one.reason for one in nothing_there.left_out] == ["WINDOW_TOO_SMALL"]
