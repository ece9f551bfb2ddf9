"""``sage ptk``: kinds, list, describe, profile, versions, register, retarget, retire.

Reason: FILE_UNREADABLE.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptklib.errors import InvalidInput
from ptkstore.api.over import ALL
from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, moment, rejection, show, window_begins
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.api.views import Registration

__all__ = ["config_of", "ptk"]


@click.group(
    cls=LazyGroup,
    lazy={
        "kinds": "ptkstore.cli.store.kinds:kinds",
        "profile": "ptkstore.cli.store.profile:profile",
    },
)
@shared_options
def ptk() -> None:
    """PTKs: differentially private feature models.

    \b
    Examples:
      sage ptk kinds
      sage ptk list
      sage ptk describe hour-speed
      sage ptk retarget hour-speed 0.03
    """


@ptk.command("list")
@click.option("--stream", metavar="STREAM", help="Those of this stream only. [default: all]")
@shared_options
@pass_session
def list_ptks(session: Invocation, stream: str | None) -> None:
    """List PTKs with status, target or epsilon, latest version.

    \b
    Example:
      sage ptk list --stream rides
    """
    with opened(session) as store:
        ptks = store.ptks(None if stream is None else store.stream(stream).name)
    rows = [
        (
            ptk_view.name,
            ptk_view.stream,
            ptk_view.kind,
            ptk_view.status,
            ptk_view.asked,
            ptk_view.latest_version,
        )
        for ptk_view in ptks
    ]
    show(
        session,
        ptks,
        Table(("ptk", "stream", "kind", "status", "target", "version"), rows),
        "" if ptks else "no PTKs yet: declare one in sage.yaml and `sage apply`",
    )


@ptk.command()
@click.argument("name")
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the profile into this file.",
)
@shared_options
@pass_session
def describe(session: Invocation, name: str, svg: Path | None) -> None:
    """Show one PTK.

    Status, target, configuration, the columns it reads, the features it gives, and the samples it
    needs at each privacy level.

    \b
    Example:
      sage ptk describe hour-speed
    """
    from ptklib import registry
    from ptkstore.cli.store.profile import draw, drawn

    with opened(session) as store:
        view = store.ptk(name)
        profile = store.profile(name)
    made = registry.make(view.kind, view.config)
    body = {**view.as_json(), "reads": made.feature_columns(), "features": made.feature_names()}
    rows = [
        (key.replace("_", " "), value)
        for key, value in body.items()
        if not isinstance(value, dict | list | tuple)
    ]
    rows += [(key, ", ".join(body[key])) for key in ("reads", "features")]
    if svg is not None:
        draw(profile, svg)
    config = json.dumps(view.config, indent=2, ensure_ascii=False)
    show(
        session,
        {**body, "profile": profile.as_json()},
        Table(("field", "value"), rows),
        config,
        "",
        drawn(profile),
    )


@ptk.command()
@click.argument("name")
@shared_options
@pass_session
def versions(session: Invocation, name: str) -> None:
    """List the trained versions, costs, verdicts, errors.

    \b
    Example:
      sage ptk versions hour-speed --json
    """
    with opened(session) as store:
        states = store.states(name)
        seconds = store.stream(store.ptk(name).stream).window_seconds
    rows = [
        (
            f"v{state.version}",
            window_begins(state.window, seconds),
            state.epsilon,
            state.delta,
            state.samples,
            state.validation or "-",
            state.error.text if state.error is not None else "-",
            moment(state.created_ms),
            state.digest[:12],
        )
        for state in states
    ]
    show(
        session,
        states,
        Table(
            (
                "version",
                "window",
                "epsilon",
                "delta",
                "samples",
                "tested",
                "error",
                "created",
                "digest",
            ),
            rows,
        ),
        "" if states else f"{name} has no version yet: it gets one when a window runs",
    )


@ptk.command()
@click.argument("name")
@click.option("--stream", required=True, metavar="STREAM", help="The stream it trains on.")
@click.option("--kind", required=True, help="An installed kind, such as statistics.")
@click.option("--target", type=float, help="The error to keep, between 0 and 1.")
@click.option(
    "--epsilon",
    metavar="E",
    help="Instead of a target: best effort with this epsilon, whatever error results.",
)
@click.option(
    "--config",
    required=True,
    metavar="JSON|@FILE",
    help="Its configuration, or the file that holds it (JSON or YAML).",
)
@click.option(
    "--train-every",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Train in every n-th window.",
)
@click.option(
    "--over",
    default=ALL,
    show_default=True,
    metavar="CHOICE",
    help="The windows that a state speaks of: all, last, rolling:K (the last K) or decay:F (all, "
    "each counting F of the one after it).",
)
@shared_options
@pass_session
@click.pass_context
def register(
    context: click.Context,
    session: Invocation,
    name: str,
    stream: str,
    kind: str,
    target: float | None,
    epsilon: str | None,
    config: str,
    train_every: int,
    over: str,
) -> None:
    """Register one PTK, with a target or an epsilon.

    A target is the error to keep; an epsilon alone is best effort. sage.yaml and `sage apply` do
    the same for all of them. It is accepted, or REJECTED (exit code 1) with the reason and the
    nearest target or epsilon that would be accepted.

    \b
    Examples:
      sage ptk register weekday-rides --stream rides --kind statistics --target 0.05 \\
        --config '{"keys": [{"kind": "time_part", "column": "pickup_at", "part": "weekday"}],
                   "statistics": ["count"]}'
      sage ptk register fare-zones --stream rides --kind clusters --epsilon 0.3 --config @zones.json
    """
    from ptkstore.cli.project.completing import completed

    body = config_of(config)
    with opened(session) as store:
        body = completed(store.stream(stream), kind, body)
        answer = store.register(
            name,
            stream=stream,
            kind=kind,
            config=body,
            target=target,
            train_every=train_every,
            over=over,
            epsilon=epsilon,
        )
    _show_answer(context, session, answer)


@ptk.command()
@click.argument("name")
@click.argument("target", type=float, required=False)
@click.option("--epsilon", metavar="E", help="Instead of a target: best effort with this epsilon.")
@shared_options
@pass_session
@click.pass_context
def retarget(
    context: click.Context,
    session: Invocation,
    name: str,
    target: float | None,
    epsilon: str | None,
) -> None:
    """Give a PTK another target, or an epsilon instead. If that does not fit it keeps what it had,
    and the exit code is 1.

    \b
    Examples:
      sage ptk retarget hour-speed 0.03
      sage ptk retarget hour-speed --epsilon 0.3
    """
    with opened(session) as store:
        answer = store.update_target(name, target, epsilon=epsilon)
    _show_answer(context, session, answer)


@ptk.command()
@click.argument("name")
@shared_options
@pass_session
def retire(session: Invocation, name: str) -> None:
    """Retire a PTK for good; its versions stay.

    It trains no more.

    \b
    Example:
      sage ptk retire hour-speed
    """
    with opened(session) as store:
        store.deregister(name)
        view = store.ptk(name)
    show(session, view, f"{name} is {view.status}; its versions stay")


def config_of(text: str) -> Any:
    """A configuration as it is given on the command line:

    JSON, or @ and the name of a file with JSON.
    """
    from ptkstore.cli.project.document import Document

    document = (
        Document.read(text[1:]) if text.startswith("@") else Document.parse(text, name="--config")
    )
    if not isinstance(document.body, dict):
        raise InvalidInput("FILE_UNREADABLE", f"{document.name} must have keys and values")
    return document.body


def _show_answer(context: click.Context, session: Invocation, answer: Registration) -> None:
    planned = f"planned with epsilon {answer.planned_epsilon}"
    if answer.planned_samples is not None:
        planned += f" on {answer.planned_samples} samples"
    rejected = answer.status == "REJECTED"
    told = answer.reason if answer.status == "WAITING" else planned
    if answer.status == "ACTIVE" and answer.reason:
        told = f"{planned}; {answer.reason}"
    show(
        session, answer, rejection(answer) if rejected else f"{answer.name} {answer.status}: {told}"
    )
    if rejected:
        context.exit(1)
