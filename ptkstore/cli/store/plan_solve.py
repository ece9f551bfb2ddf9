"""``sage plan solve``: a plan for a problem in a file, with no store and no service."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ptkstore.cli.output import Table, show, write_text
from ptkstore.cli.session import Invocation, pass_session, shared_options
from ptkstore.cli.store.json_file import read_json

if TYPE_CHECKING:
    from allocator.plan import Plan
    from allocator.problem import Problem

__all__ = ["solve"]

_METHODS = ("strip", "shelf", "fig4")
_SOLVERS = ("cbc", "highs", "gurobi")
# Rows of the tables for people; --json has them all.
_ROWS = 40


@click.command("solve")
@click.option(
    "--input",
    "source",
    required=True,
    metavar="FILE",
    help="The problem, as JSON; `-` reads stdin.",
)
@click.option(
    "--method",
    type=click.Choice(_METHODS),
    default="strip",
    show_default=True,
    help="The form of the plan.",
)
@click.option(
    "--solver",
    type=click.Choice(_SOLVERS),
    default="cbc",
    show_default=True,
    help="Whom the method fig4 asks.",
)
@click.option(
    "--time-limit",
    type=float,
    metavar="S",
    help="Seconds. [default: as the size of the problem deserves]",
)
@click.option("--explain", is_flag=True, help="Also say why the gap is what it is.")
@click.option("--svg", "picture", metavar="FILE", help="Also write a picture of the plan.")
@click.option(
    "--no-seconds",
    is_flag=True,
    help="Leave the time taken at 0, so that equal plans are equal bytes.",
)
@shared_options
@pass_session
def solve(
    session: Invocation,
    source: str,
    method: str,
    solver: str,
    time_limit: float | None,
    explain: bool,
    picture: str | None,
    no_seconds: bool,
) -> None:
    """Find the plan that holds the fewest samples.

    Works by itself: no store, no service. The file has the capacity, the most samples that may be
    held, and for every PTK its options: what each demands and how many samples it needs. The answer
    is checked before it is printed. Exit code 1 when there is no plan.

    \b
    Examples:
      sage plan solve --input problem.json
      sage plan solve --input problem.json --method shelf --time-limit 10 --json
      sage plan solve --input problem.json --svg plan.svg
    """
    import dataclasses

    from allocator.problem import Problem
    from allocator.solving.solve import solve as solve_problem

    problem = Problem.from_json(read_json(source))
    plan = solve_problem(
        problem, method=method, solver=solver, time_limit_seconds=time_limit, clock=time.monotonic
    )
    if no_seconds:
        plan = dataclasses.replace(plan, seconds=0.0)
    if picture is not None:
        from ptkstore.drawing.plan_picture import of_plan
        from ptkstore.drawing.plan_svg import document

        write_text(picture, document(of_plan(problem, plan)))
    body, parts = plan.as_json(), _parts(problem, plan)
    if explain:
        from allocator.solving.gap import gap_explained

        told = gap_explained(problem, plan)
        body["gap_explained"] = None if told is None else told.as_json()
        parts += [] if told is None else [told.text]
    show(session, body, *parts)
    if plan.total_samples is None:
        click.get_current_context().exit(1)


def _parts(problem: Problem, plan: Plan) -> list[Table | str]:
    if plan.total_samples is None:
        told = plan.explanation
        changes = [f"  or: {change.text}" for change in told.changes] if told else []
        return [f"{plan.status}: {told.text if told else ''}", *changes]
    parts: list[Table | str] = [
        f"{plan.status}: {plan.total_samples} samples in {len(plan.partitions)} partitions; no plan of this form holds "
        f"fewer than {plan.lower_bound} (gap {100 * (plan.gap or 0.0):.2f}%); {plan.solver}, {plan.seconds:g} s"
    ]
    rows = [
        (
            k,
            partition.samples,
            partition.demand,
            f"{100 * partition.demand / max(1, problem.capacity):.1f}%",
            len(partition.members),
        )
        for k, partition in enumerate(plan.partitions[:_ROWS])
    ]
    parts.append(Table(("partition", "samples", "demand", "used", "members"), rows))
    lines = [
        (
            assignment.id,
            assignment.level,
            assignment.demand,
            assignment.samples,
            _places(assignment.partitions),
        )
        for assignment in plan.assignments[:_ROWS]
    ]
    parts.append(Table(("ptk", "level", "demand", "samples", "partitions"), lines))
    if max(len(plan.partitions), len(plan.assignments)) > _ROWS:
        parts.append(
            f"the first {_ROWS} of {len(plan.partitions)} partitions and {len(plan.assignments)} PTKs; --json has all"
        )
    return parts


def _places(places: tuple[int, ...]) -> str:
    """Partition numbers with runs joined: 0-3, 7."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    return ", ".join(texts[:6]) + (", ..." if len(texts) > 6 else "")
