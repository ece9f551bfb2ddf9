"""``sage plan what-if``: the plan after some changes, beside the plan as it is.

Reasons: CHANGE_INVALID, PTK_UNDECLARED.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptklib.errors import InvalidInput
from ptkstore.cli.output import Table, show
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options
from ptkstore.cli.store.plan import gain_told

if TYPE_CHECKING:
    from ptkstore.api.changes import AddedPtk
    from ptkstore.api.views import PlanView

__all__ = ["what_if"]


@click.command("what-if")
@click.option("--stream", required=True, metavar="STREAM", help="The stream to plan for.")
@click.option(
    "--drop", multiple=True, metavar="PTK", help="Leave this PTK out. May be given again."
)
@click.option(
    "--retarget", multiple=True, metavar="PTK=TARGET", help="Give this PTK another target."
)
@click.option(
    "--add",
    multiple=True,
    metavar="PTK",
    help="Add this PTK, which the file declares and the store lacks.",
)
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path),
    help="Where it is declared. [default: sage.yaml]",
)
@click.option("--epsilon", metavar="E", help="Look at another epsilon of the stream.")
@click.option("--delta", metavar="D", help="Look at another delta.")
@click.option(
    "--composition",
    metavar="NAME",
    help="Look at another composition: pure, basic, renyi or gaussian.",
)
@click.option(
    "--n-max",
    type=click.IntRange(min=1),
    metavar="N",
    help="Look at another limit of samples to hold.",
)
@click.option(
    "--use",
    type=click.Choice(["minimum", "surplus"]),
    help="Look at the stream using its windows so.",
)
@shared_options
@pass_session
def what_if(
    session: Invocation,
    stream: str,
    drop: tuple[str, ...],
    retarget: tuple[str, ...],
    add: tuple[str, ...],
    file: Path | None,
    epsilon: str | None,
    delta: str | None,
    composition: str | None,
    n_max: int | None,
    use: str | None,
) -> None:
    """Show the plan as it would be after some changes.

    Beside it, the plan as it is. Where the stream uses the surplus, each PTK's epsilon and samples are
    followed by what it would be given of the rest of the window. Nothing is written, no data is read, no budget is spent.

    \b
    Examples:
      sage plan what-if --stream rides --drop zone-fare
      sage plan what-if --stream rides --retarget hour-speed=0.03 --epsilon 2
      sage plan what-if --stream rides --add route-duration -f sage.yaml
      sage plan what-if --stream rides --use surplus
    """
    from ptkstore.api.changes import Changes
    from ptkstore.cli.project.declaration import declared_in

    changes = Changes(
        add=tuple(_declared(name, stream, declared_in(session, file)) for name in add),
        remove=drop,
        retarget=dict(_retarget(text) for text in retarget),
        epsilon=epsilon,
        delta=delta,
        composition=composition,
        n_max=n_max,
        use={} if use is None else {stream: use},
    )
    with opened(session) as store:
        answer = store.what_if(stream, changes)
    named = sorted({line.ptk for view in (answer.current, answer.proposed) for line in view.lines})
    rows = [(name, *_cells(answer.current, name), *_cells(answer.proposed, name)) for name in named]
    show(
        session,
        answer,
        f"now: {_total(answer.current)}",
        f"then: {_total(answer.proposed)}",
        Table(("ptk", "epsilon", "samples", "epsilon then", "samples then"), rows),
        answer.proposed.explanation,
        *(f"  or: {remedy.text}" for remedy in answer.proposed.remedies),
        f"not profiled yet, left out: {', '.join(answer.unprofiled)}" if answer.unprofiled else "",
    )


def _total(view: PlanView) -> str:
    if view.total_samples is None:
        return view.status
    told = f"{view.status}, {view.total_samples} samples in {len(view.partitions)} partitions"
    return f"{told}; {gain_told(view)}" if view.surplus else told


def _cells(view: PlanView, name: str) -> tuple[str, str]:
    for line in view.lines:
        if line.ptk == name:
            given = view.given(name)
            if given is None:
                return line.epsilon, str(line.samples)
            return f"{line.epsilon} -> {given.epsilon}", f"{line.samples} -> {given.samples}"
    return "-", "-"


def _retarget(text: str) -> tuple[str, float]:
    name, _, target = text.partition("=")
    try:
        return name, float(target)
    except ValueError:
        raise InvalidInput(
            "CHANGE_INVALID", f"--retarget takes PTK=TARGET, got {text!r:.80}"
        ) from None


def _declared(name: str, stream: str, file: Path) -> AddedPtk:
    from ptkstore.api.changes import AddedPtk
    from ptkstore.cli.project.declaration import Project

    for ptk in Project.read(file).ptks:
        if ptk.name == name and ptk.stream == stream:
            return AddedPtk(
                name=name,
                kind=ptk.kind,
                config=ptk.config,
                target=ptk.target,
                over=ptk.over,
                epsilon=ptk.epsilon,
            )
    raise InvalidInput(
        "PTK_UNDECLARED", f"{file} must declare PTK {name!r} on stream {stream!r} to add it"
    )
