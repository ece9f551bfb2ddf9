"""``sage plan``: what the plan would be now, and what it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, show, window_begins, write_bytes, write_text
from ptkstore.cli.session import Session, opened, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.client import Store
    from ptkstore.streams.spec import StreamSpec
    from ptkstore.views import PlanView

__all__ = ["plan"]

_STREAM = click.option("--stream", metavar="STREAM", help="This stream only. [default: all]")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    lazy={"solve": "ptkstore.cli.plan_solve:solve", "what-if": "ptkstore.cli.what_if:what_if"},
)
@_STREAM
@shared_options
@pass_session
@click.pass_context
def plan(context: click.Context, session: Session, stream: str | None) -> None:
    """Show what the plan for a fresh window would be.

    Gives each PTK's epsilon and samples. Touches nothing: no data is read, no budget is spent. Where there is no
    plan, says why and what would make one.

    \b
    Examples:
      sage plan
      sage plan --stream rides --json
      sage plan show
      sage plan what-if --stream rides --drop zone-fare
      sage plan solve --input problem.json
    """
    context.meta[__name__] = stream
    if context.invoked_subcommand is None:
        with opened(session) as store:
            plans = [store.plan_now(one.name) for one in _specs(store, stream)]
            lengths = {one.name: one.window_seconds for one in store.streams()}
        _show(session, plans, lengths, "no streams yet: declare one in sage.yaml and `sage apply`")


@plan.command("show")
@_STREAM
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the plan's picture there too; needs --stream where there are several streams.",
)
@click.option(
    "--png",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="The same picture as PNG, twice as large; needs the extra `png`.",
)
@shared_options
@pass_session
@click.pass_context
def show_newest(context: click.Context, session: Session, stream: str | None, svg: str | None, png: str | None) -> None:
    """Show the newest plan that was made in a window.

    \b
    Examples:
      sage plan show --stream rides
      sage plan show --stream rides --svg plan.svg
      sage plan show --stream rides --png plan.png
    """
    stream = stream or context.meta.get(__name__)
    with opened(session) as store:
        specs = _specs(store, stream)
        found = [store.plan(one.name) for one in specs]
        if svg is not None or png is not None:
            if len(specs) != 1:
                raise click.UsageError("--svg and --png draw one plan: say which with --stream.")
            _draw(store.plan_picture(specs[0].name), svg, png)
        lengths = {one.name: one.window_seconds for one in store.streams()}
    _show(
        session,
        [one for one in found if one is not None],
        lengths,
        "no plan was made yet: it is made when a window runs",
    )


def _draw(picture: str | None, svg: str | None, png: str | None) -> None:
    if picture is None:
        return
    if svg is not None:
        write_text(svg, picture)
    if png is not None:
        from ptkstore.png import png_of

        write_bytes(png, png_of(picture))


def _specs(store: Store, stream: str | None) -> list[StreamSpec]:
    return store.streams() if stream is None else [store.stream(stream)]


def _show(session: Session, plans: Sequence[PlanView], lengths: Mapping[str, int], nothing: str) -> None:
    from ptkstore.cli.plan_drawing import draw_plan

    parts: list[Table | str] = []
    for one in plans:
        available = "" if one.available_samples is None else f" of {one.available_samples} available"
        total = "" if one.total_samples is None else f", {one.total_samples} samples{available}"
        window = window_begins(one.window, lengths[one.stream]) if one.window >= 0 else "a fresh window"
        gap = "" if not one.gap else f", at most {100 * one.gap:.2f}% above the least possible"
        cut = f", {len(one.partitions)} partitions" if len(one.partitions) > 1 else ""
        parts.append(f"{one.stream}, {window}: {one.status}{total}{cut}{gap}")
        rows = [
            (line.ptk, line.epsilon, line.samples, line.target, ", ".join(str(place + 1) for place in line.partitions))
            for line in one.lines
        ]
        parts.append(Table(("ptk", "epsilon", "samples", "target", "partitions"), rows))
        parts.append(draw_plan(one))
        if one.left_out:
            left_out = [(line.ptk, line.reason, line.text) for line in one.left_out]
            parts.append(Table(("left out", "reason", "why"), left_out))
        parts.append(one.explanation)
        parts += [f"  or: {change}" for change in one.changes]
        if one.recommended_samples is not None and one.recommended_window_seconds is not None:
            parts.append(
                f"recommended: {one.recommended_samples} samples, a window of {one.recommended_window_seconds} seconds"
            )
    show(session, list(plans), *parts, "" if plans else nothing)
