"""``sage plan``: what the plan would be now, and what it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, show, window_begins, write_bytes, write_text
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.api.store import Store
    from ptkstore.api.stream_spec import StreamSpec
    from ptkstore.api.views import PlanView

__all__ = ["gain_told", "plan"]

_STREAM = click.option("--stream", metavar="STREAM", help="This stream only. [default: all]")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    lazy={
        "solve": "ptkstore.cli.store.plan_solve:solve",
        "what-if": "ptkstore.cli.store.what_if:what_if",
    },
)
@_STREAM
@shared_options
@pass_session
@click.pass_context
def plan(context: click.Context, session: Invocation, stream: str | None) -> None:
    """Show what the plan for a fresh window would be.

    Gives each PTK's epsilon and samples, and what it is given of the rest of the window where the
    stream uses the surplus (expected losses are shares of the target). Touches nothing: no data is read, no budget is spent.
    Where there is no plan, says why and what would make one.

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
            plans = [store.plan_now(spec.name) for spec in _specs(store, stream)]
            lengths = {stream.name: stream.window_seconds for stream in store.streams()}
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
def show_newest(
    context: click.Context,
    session: Invocation,
    stream: str | None,
    svg: str | None,
    png: str | None,
) -> None:
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
        plans = [store.plan(spec.name) for spec in specs]
        if svg is not None or png is not None:
            if len(specs) != 1:
                raise click.UsageError("--svg and --png draw one plan: say which with --stream.")
            _draw(store.plan_picture(specs[0].name), svg, png)
        lengths = {stream.name: stream.window_seconds for stream in store.streams()}
    _show(
        session,
        [plan_view for plan_view in plans if plan_view is not None],
        lengths,
        "no plan was made yet: it is made when a window runs",
    )


def gain_told(plan_view: PlanView) -> str:
    """What a plan gives beyond the fewest samples, and what that is expected to gain."""
    gain = plan_view.expected_gain
    if gain is None:
        return f"{plan_view.surplus_samples} samples used"
    return f"{plan_view.surplus_samples} samples used, expected loss {gain[1] / gain[0]:.2f}x that of the minimum"


def _draw(picture: str | None, svg: str | None, png: str | None) -> None:
    if picture is None:
        return
    if svg is not None:
        write_text(svg, picture)
    if png is not None:
        from ptkstore.drawing.png import png_of

        write_bytes(png, png_of(picture))


def _specs(store: Store, stream: str | None) -> list[StreamSpec]:
    return store.streams() if stream is None else [store.stream(stream)]


def _show(
    session: Invocation, plans: Sequence[PlanView], lengths: Mapping[str, int], nothing: str
) -> None:
    from ptkstore.drawing.plan_text import draw_plan

    parts: list[Table | str] = []
    for plan_view in plans:
        available = (
            ""
            if plan_view.available_samples is None
            else f" of {plan_view.available_samples} available"
        )
        total = (
            ""
            if plan_view.total_samples is None
            else f", {plan_view.total_samples} samples{available}"
        )
        window = (
            window_begins(plan_view.window, lengths[plan_view.stream])
            if plan_view.window >= 0
            else "a fresh window"
        )
        gap = (
            ""
            if not plan_view.gap
            else f", at most {100 * plan_view.gap:.2f}% above the least possible"
        )
        cut = f", {len(plan_view.partitions)} partitions" if len(plan_view.partitions) > 1 else ""
        parts.append(f"{plan_view.stream}, {window}: {plan_view.status}{total}{cut}{gap}")
        rows = [
            (
                line.ptk,
                line.epsilon,
                line.samples,
                "best effort" if line.target is None else line.target,
                ", ".join(str(place + 1) for place in line.partitions),
            )
            for line in plan_view.lines
        ]
        parts.append(Table(("ptk", "epsilon", "samples", "target", "partitions"), rows))
        parts.append(draw_plan(plan_view))
        if plan_view.surplus:
            parts.append(f"with the surplus of the window: {gain_told(plan_view)}")
            aimed = {line.ptk for line in plan_view.lines if line.target is not None}
            given = [
                (
                    line.ptk,
                    line.epsilon,
                    line.samples,
                    *(
                        f"{loss:.2f}" if line.ptk in aimed else "-"
                        for loss in (line.expected_minimum, line.expected)
                    ),
                )
                for line in plan_view.surplus
            ]
            heads = ("ptk", "epsilon used", "samples used", "expected before", "expected")
            parts.append(Table(heads, given))
        if plan_view.left_out:
            left_out = [(line.ptk, line.reason, line.text) for line in plan_view.left_out]
            parts.append(Table(("left out", "reason", "why"), left_out))
        parts.append(plan_view.explanation)
        parts += [f"  or: {remedy.text}" for remedy in plan_view.remedies]
        if (
            plan_view.recommended_samples is not None
            and plan_view.recommended_window_seconds is not None
        ):
            parts.append(
                f"recommended: {plan_view.recommended_samples} samples, "
                f"a window of {plan_view.recommended_window_seconds} seconds"
            )
    show(session, list(plans), *parts, "" if plans else nothing)
