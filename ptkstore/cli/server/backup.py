"""``sage backup`` and ``sage restore``: copies of what must outlive a disk, and the way back that
spends nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptklib.errors import InvalidInput
from ptkstore.cli.output import Table, moment, show
from ptkstore.cli.server.config import config_option, settings_file
from ptkstore.cli.session import STORE_VARIABLE, Invocation, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.engine.parts import Adapters, Parts

__all__ = ["backup", "restore"]


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@config_option()
@shared_options
@pass_session
def backup(session: Invocation, directory: Path, config: Path | None) -> None:
    """Copy what must outlive a disk into DIR.

    Metadata, states and ledger, in an order in which the copy of the ledger is never the oldest; a
    server may be running. Databases that lie elsewhere are copied by their own tools first
    (pg_dump). Raw data is never copied, nor is any key: keep one copy of the ledger's key apart.

    \b
    Example:
      sage backup /backups/2026-03-04
    """
    from ptkstore.engine.safekeeping.backup import make_backup

    adapters = _adapters(session, config)
    if adapters is None or adapters.metadata is None:
        _require_store(session.path)
    with _parts(session.path, adapters) as parts:
        parts.head_guard.require_newest()
        made = make_backup(parts, directory)
    copied = ", ".join((*made.databases, f"{made.states} states"))
    elsewhere = (
        ""
        if len(made.databases) > 1
        else "databases that lie elsewhere are not in it: pg_dump copies them"
    )
    show(session, made, f"copied {copied} to {directory}", elsewhere)


@click.command()
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A backup to put back first, made by `sage backup`.",
)
@click.option(
    "--until",
    metavar="TIME",
    help="Give up what is before TIME; for streams that run ahead of the clock. [default: now]",
)
@config_option()
@shared_options
@pass_session
@click.pass_context
def restore(
    context: click.Context,
    session: Invocation,
    source: Path | None,
    until: str | None,
    config: Path | None,
) -> None:
    """Make a store safe to use after an old copy was put back.

    An old ledger does not know what was spent since it was copied. So everything that arrived
    before now is given up: its blocks are retired, raw data that is left is destroyed, and records
    of that time are taken into no block again. User-level streams end. States and PTKs stay. Stop
    every server first. The exit code is 1 when the store is not sound.

    \b
    Examples:
      sage restore
      sage restore --from /backups/2026-03-04
    """
    from ptkstore.cli.project.commands import moment_of
    from ptkstore.engine.safekeeping.doctor import examine
    from ptkstore.engine.safekeeping.restoring import (
        give_up_past,
        put_back_databases,
        put_back_states,
    )

    now_ms = int(time.time() * 1000)
    until_ms = now_ms if until is None else max(now_ms, moment_of(until))
    adapters = _adapters(session, config)
    if source is not None:
        put_back_databases(source, session.path)
    if adapters is None or adapters.metadata is None:
        _require_store(session.path)
    with _parts(session.path, adapters) as parts:
        if source is not None:
            put_back_states(source, parts)
        streams = give_up_past(parts, until_ms)
        findings = examine(parts)
    show(
        session,
        {"streams": streams, "findings": findings},
        Table(
            ("stream", "blocks retired", "windows lost", "goes on from"),
            [
                (
                    stream.stream,
                    stream.blocks_retired,
                    stream.windows_lost,
                    "ended" if stream.goes_on_ms is None else moment(stream.goes_on_ms),
                )
                for stream in streams
            ],
        ),
        Table(
            ("level", "what", "detail"),
            [(finding.level, finding.what, finding.detail) for finding in findings],
        ),
    )
    if any(finding.level == "ERROR" for finding in findings):
        context.exit(1)


def _adapters(session: Invocation, config: Path | None) -> Adapters | None:
    """What the settings put elsewhere; None without settings."""

    file = settings_file(session, config)
    if file is None:
        return None
    from ptkstore.server import adapters_of
    from ptkstore.settings import Settings

    return adapters_of(session.path, Settings.read(file))


@contextmanager
def _parts(path: Path, adapters: Adapters | None) -> Iterator[Parts]:
    """The parts of the store. No check of the ledger's age: that is what a restore is for."""
    from ptkstore.engine.parts import Parts

    parts = Parts.open(path, workers=0, adapters=adapters)
    try:
        yield parts
    finally:
        parts.close()


def _require_store(path: Path) -> None:
    if not (path / "meta.db").exists():
        raise InvalidInput(
            "STORE_MISSING",
            f"there is no store in {path}: `--store PATH` or {STORE_VARIABLE} names another",
            store=str(path),
        )
