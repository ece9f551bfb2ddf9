"""``sage budget``: what a stream promises, what is left, where it went."""

from __future__ import annotations

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, moment, show, window_begins
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

__all__ = ["budget"]


@click.group(cls=LazyGroup)
@shared_options
def budget() -> None:
    """Privacy budgets of streams.

    \b
    Examples:
      sage budget show rides
      sage budget history rides
    """


@budget.command("show")
@click.argument("stream", metavar="STREAM")
@shared_options
@pass_session
def show_budget(session: Invocation, stream: str) -> None:
    """Show what a stream promises and what is left.

    Lists its blocks with what is left of each, and the raw data that is held now. Sizes are the
    blocks' published DP counts.

    \b
    Example:
      sage budget show rides
    """
    with opened(session) as store:
        view = store.budget(stream)
        seconds = store.stream(stream).window_seconds
    exposed = view.exposure
    held = "no raw data is held"
    if exposed.blocks:
        span = f"{moment(exposed.oldest_ms)} to {moment(exposed.newest_ms)}"
        held = f"raw data may be held from {span} (blocks: {exposed.blocks}, counted records~: {exposed.dp_records})"
    rows = [
        (
            block.name,
            window_begins(block.window, seconds),
            block.status,
            block.dp_records,
            block.left,
            block.retired,
        )
        for block in view.blocks
    ]
    show(
        session,
        view,
        f"{view.stream}: epsilon {view.epsilon}, delta {view.delta} for every {view.unit}, {view.composition} composition",
        held,
        Table(("block", "window", "status", "records~", "left", "retired"), rows),
    )


@budget.command()
@click.argument("stream", metavar="STREAM")
@shared_options
@pass_session
def history(session: Invocation, stream: str) -> None:
    """Show what every window of a stream spent on which PTK.

    \b
    Example:
      sage budget history rides --json
    """
    with opened(session) as store:
        cycles = store.cycles(stream)
        seconds = store.stream(stream).window_seconds
    rows = [
        (
            window_begins(cycle.window, seconds),
            cycle.status,
            cycle.plan_status,
            cycle.dp_records,
            line.ptk,
            line.outcome,
            line.epsilon,
            line.samples,
        )
        for cycle in cycles
        for line in cycle.trained
    ]
    show(
        session,
        cycles,
        Table(
            ("window", "cycle", "plan", "records~", "ptk", "outcome", "epsilon", "samples"), rows
        ),
        "" if rows else "nothing was trained yet",
    )
