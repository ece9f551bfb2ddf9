"""``sage schedule solve``: who gets which block, for an instance in a file; no store, no service."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, show
from ptkstore.cli.session import Invocation, pass_session, shared_options
from ptkstore.cli.store.json_file import read_json

if TYPE_CHECKING:
    from allocator.scheduling.answer import ScheduleAnswer

__all__ = ["schedule", "solve"]

# Rows of the table for people; --json has them all.
_ROWS = 40


@click.group("schedule", cls=LazyGroup, lazy={"solve": "ptkstore.cli.store.schedule:solve"})
@shared_options
def schedule() -> None:
    """Decide who gets which block of a growing stream.

    \b
    Examples:
      sage schedule solve --input instance.json
      sage schedule solve --input instance.json --policy optimal --time-limit 10 --json
    """


@click.command("solve")
@click.option(
    "--input",
    "source",
    required=True,
    metavar="FILE",
    help="The instance, as JSON; `-` reads stdin.",
)
@click.option(
    "--policy",
    metavar="NAME",
    default="default",
    show_default=True,
    help="Who decides; `optimal` alone may look ahead.",
)
@click.option(
    "--time-limit",
    type=float,
    metavar="S",
    help="Seconds for the optimum and the bound. [default: 60]",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="For policies that choose at random."
)
@shared_options
@pass_session
def solve(
    session: Invocation, source: str, policy: str, time_limit: float | None, seed: int
) -> None:
    """Who gets which block in an instance, by a policy.

    Says how far from the optimum that stays. Works by itself: no store, no service. Single blocks:
    blocks with budgets, queries in order of
    arrival, and what each block is worth to each query. Windows: blocks with capacities and tasks
    that need every block of a window. The bound is certified: no assignment at all is worth more.

    \b
    Examples:
      sage schedule solve --input instance.json
      sage schedule solve --input instance.json --policy optimal --time-limit 10 --json
      sage schedule solve --input - --policy phi --json < instance.json
    """
    from allocator.scheduling.solve import read
    from allocator.scheduling.solve import solve as solve_problem

    problem = read(read_json(source))
    with _quiet():
        answer = solve_problem(
            problem,
            policy=policy,
            clock=time.monotonic,
            time_limit_seconds=time_limit,
            seed=abs(seed),
        )
    show(session, answer.as_json(), *_parts(answer))


@contextmanager
def _quiet() -> Iterator[None]:
    """HiGHS prints to the file of stdout, past Python, whatever it is asked: that goes to stderr."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError):
        yield
        return
    sys.stdout.flush()
    kept = os.dup(number)
    os.dup2(sys.stderr.fileno(), number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def _parts(answer: ScheduleAnswer) -> list[Table | str]:
    parts: list[Table | str] = [
        f"{answer.policy}: value {answer.value}; nothing can be worth more than {answer.upper_bound} (gap "
        f"{100 * answer.gap:.2f}%); {len(answer.assignment)} grants, {answer.seconds:.3g} s, "
        f"{1000 * answer.seconds_per_decision:.3g} ms per decision"
    ]
    rows = [item if isinstance(item, tuple) else (item,) for item in answer.assignment[:_ROWS]]
    if rows:
        parts.append(Table(("block", "query") if len(rows[0]) == 2 else ("task",), rows))
    if len(answer.assignment) > _ROWS:
        parts.append(f"the first {_ROWS} of {len(answer.assignment)} grants; --json has all")
    return parts
