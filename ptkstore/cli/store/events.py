"""``sage events``: what happened, in order."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import moment, plain, show
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.api.store import Store
    from ptkstore.api.views import EventView

__all__ = ["PAGE", "events"]

PAGE = 500


@click.group(cls=LazyGroup, invoke_without_command=True)
@shared_options
@pass_session
@click.pass_context
def events(context: click.Context, session: Invocation) -> None:
    """Events: registrations, plans, new versions, failures.

    By itself: the newest twenty, as `sage events tail`.

    \b
    Examples:
      sage events
      sage events tail --follow
    """
    if context.invoked_subcommand is None:
        with opened(session) as store:
            newest, _ = _read(store, 20, 0)
        _show(session, newest)


@events.command()
@click.option(
    "-n",
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    help="How many of the newest.",
)
@click.option(
    "--after",
    default=0,
    type=click.IntRange(min=0),
    metavar="ID",
    help="Only events after this one.",
)
@click.option("--follow", is_flag=True, help="Go on with events as they happen, until interrupted.")
@click.option(
    "--interval",
    default=1.0,
    show_default=True,
    type=click.FloatRange(min=0.05),
    help="Seconds between looks.",
)
@shared_options
@pass_session
def tail(session: Invocation, limit: int, after: int, follow: bool, interval: float) -> None:
    """Show the newest events, oldest of them first.

    Under --json one list; with --follow one object per line, as they happen.

    \b
    Examples:
      sage events tail
      sage events tail --follow --json
    """
    with opened(session) as store:
        newest, last = _read(store, limit, after)
        while follow:
            for event in newest:
                click.echo(
                    json.dumps(plain(event), ensure_ascii=False)
                    if session.as_json
                    else _line(event)
                )
            sys.stdout.flush()
            time.sleep(interval)
            newest, last = _read(store, None, last)
    _show(session, newest)


def _show(session: Invocation, newest: Sequence[EventView]) -> None:
    show(session, newest, *(_line(event) for event in newest), "" if newest else "no events yet")


def _read(store: Store, limit: int | None, after: int) -> tuple[Sequence[EventView], int]:
    """The newest ``limit`` events after an id, and the last id."""
    kept: deque[EventView] = deque(maxlen=limit)
    while page := store.events(after, PAGE):
        kept.extend(page)
        after = page[-1].id
    return list(kept), after


def _line(event: EventView) -> str:
    body = json.dumps(plain(event.body), ensure_ascii=False)
    return f"{event.id}  {moment(event.at_ms) or '-'}  {event.kind}  {event.subject}  {body}"
