"""``sage audit-log``: move the oldest part of a server's audit log to files, and check the whole of
it.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, show
from ptkstore.cli.server.tokens import metadata_of
from ptkstore.cli.session import Invocation, pass_session, shared_options

__all__ = ["audit_log"]

_DAY_MS = 86_400_000
_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the files are. [default: audit in the store]",
)


@click.group(cls=LazyGroup)
@shared_options
def audit_log() -> None:
    """The log of who asked a server for what.

    \b
    Examples:
      sage audit-log rotate --keep-days 90
      sage audit-log verify
    """


@audit_log.command()
@click.option(
    "--keep-days",
    type=click.FloatRange(min=0),
    default=90.0,
    show_default=True,
    help="Entries of so many days stay in the log.",
)
@_FOLDER
@shared_options
@pass_session
def rotate(session: Invocation, keep_days: float, folder: Path | None) -> None:
    """Move the oldest entries to files.

    The log only grows, and nobody may delete from it: what is old is moved, and its chain of
    digests goes on. A file is durable before its entries leave the log; keep all of them, here or
    elsewhere. A server may be running.

    \b
    Example:
      sage audit-log rotate --keep-days 30
    """
    from ptkstore.engine.history import audit_segments

    now_ms = int(time.time() * 1000)
    with metadata_of(session) as metadata:
        made = audit_segments.rotate(
            metadata,
            folder or session.path / audit_segments.FOLDER,
            before_ms=now_ms - int(keep_days * _DAY_MS),
            now_ms=now_ms,
        )
    table = Table(
        ("file", "entries", "sha256"),
        [(segment.file, segment.entries, segment.file_sha256) for segment in made],
    )
    show(session, made, table, "" if made else f"no entry is older than {keep_days:g} days")


@audit_log.command()
@_FOLDER
@shared_options
@pass_session
def verify(session: Invocation, folder: Path | None) -> None:
    """Check every entry, in the files and in the log.

    Every entry seals the one before. The exit code is 1 when one is not what was written.

    \b
    Example:
      sage audit-log verify --folder /archive/audit
    """
    from ptkstore.engine.history import audit_segments

    with metadata_of(session) as metadata:
        verified_audit = audit_segments.verify(
            metadata, folder or session.path / audit_segments.FOLDER
        )
    words = (
        f"{verified_audit.moved} entries in {verified_audit.segments} files and "
        f"{verified_audit.entries} in the log: the chain is whole"
    )
    show(session, verified_audit, words)
