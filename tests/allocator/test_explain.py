"""Explanations are true: the change they name gives a plan, and slightly less does not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from allocator.plan import Change
from allocator.problem import Option, Problem, PtkOptions
from allocator.single.explain import explain
from allocator.single.solve import solve
from ptklib.privacy.amounts import NANO, show_units
from tests.allocator.instances import brute_force, problems, taxi


def without(problem: Problem, name: str | None) -> Problem:
    return replace(problem, ptks=tuple(ptk for ptk in problem.ptks if ptk.id != name))


def with_option(problem: Problem, name: str | None, demand: int) -> Problem:
    """The PTK's target loosened: one more option, of this demand and as many samples as may be
    held.
    """
    extra = Option("looser", demand, problem.n_max or 1)
    return replace(
        problem,
        ptks=tuple(
            PtkOptions(p.id, (*p.options, extra)) if p.id == name else p for p in problem.ptks
        ),
    )


def check(problem: Problem, change: Change) -> None:
    value = change.value if isinstance(change.value, int) else 0
    if change.kind == "capacity":
        enough, less = replace(problem, capacity=value), replace(problem, capacity=value - 1)
    elif change.kind == "n_max":
        enough, less = (
            replace(problem, n_max=value),
            replace(problem, n_max=max(problem.n_max or 0, value - 1)),
        )
    elif change.kind == "option":
        enough, less = (
            with_option(problem, change.ptk, value),
            with_option(problem, change.ptk, value + 1),
        )
    else:
        assert change.kind == "remove"
        enough, less = without(problem, change.ptk), problem
    assert brute_force(enough) is not None
    assert brute_force(less) is None


@settings(max_examples=400, deadline=None)
@given(problems())
def test_every_change_is_enough_and_slightly_less_is_not(problem: Problem) -> None:
    told = explain(problem)
    assert (told is None) == (brute_force(problem) is not None)
    if told is None:
        return
    assert told.text.endswith(".")
    for change in told.changes:
        assert change.text.endswith(".")
        check(problem, change)


@settings(max_examples=400, deadline=None)
@given(problems())
def test_no_change_that_would_help_is_left_out(problem: Problem) -> None:
    told = explain(problem)
    if told is None:
        return
    named = {(one.kind, one.ptk) for one in told.changes}
    assert (("capacity", None) in named) == (
        brute_force(replace(problem, capacity=1000)) is not None
    )
    assert (("n_max", None) in named) == (brute_force(replace(problem, n_max=None)) is not None)
    for ptk in problem.ptks:
        helps = brute_force(without(problem, ptk.id)) is not None
        assert (("remove", ptk.id) in named) == (("option", ptk.id) in named) == helps


def test_the_sentences_read_well() -> None:
    plan = solve(taxi(capacity=9 * 10**8), show=lambda units: f"{show_units(units, NANO)} epsilon")
    assert plan.explanation is not None
    assert plan.explanation.text == (
        "Even at their cheapest, the 13 PTKs need 1 epsilon together, and the capacity is 0.9 "
        "epsilon."
    )
    texts = [one.text for one in plan.explanation.changes]
    assert texts[0] == "Raise the capacity by 0.1 epsilon to 1 epsilon."
    assert "Remove taxi-12." in texts
    assert "Loosen the target of taxi-12 until it needs at most 0.4 epsilon." in texts
    tight = explain(replace(taxi(), n_max=300_000))
    assert tight is not None
    assert tight.text == (
        "The target of taxi-03, taxi-04 is not reachable at any profiled level within 300000 "
        "samples."
    )
    assert [one.text for one in tight.changes] == [
        "Allow 357009 samples to be held instead of 300000."
    ]
