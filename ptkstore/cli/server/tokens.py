"""``sage token``: who may use the server of this store. Works beside a running server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptklib.errors import InvalidInput
from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, moment, show
from ptkstore.cli.server.config import settings_file
from ptkstore.cli.session import STORE_VARIABLE, Invocation, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.engine.access.beside import Metadata
    from ptkstore.engine.access.tokens import TokenRow

__all__ = ["metadata_of", "token"]

_DAY_MS = 86_400_000


@click.group(cls=LazyGroup)
@shared_options
def token() -> None:
    """Tokens: credentials for `sage serve`, with roles and limits.

    \b
    Examples:
      sage token create depot --role producer --stream rides
      sage token list
    """


@token.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    help="reader, producer, developer or operator. Repeatable.",
)
@click.option(
    "--stream", "streams", multiple=True, metavar="STREAM", help="For this stream only. Repeatable."
)
@click.option("--ptk", "ptks", multiple=True, metavar="PTK", help="For this PTK only. Repeatable.")
@click.option(
    "--days", type=click.FloatRange(min=0, min_open=True), help="Expires after so many days."
)
@shared_options
@pass_session
def create(
    session: Invocation,
    name: str,
    roles: tuple[str, ...],
    streams: tuple[str, ...],
    ptks: tuple[str, ...],
    days: float | None,
) -> None:
    """Make a token and show it, this once.

    The store keeps a hash of it. Names are never used again: the audit log speaks of them.

    \b
    Example:
      sage token create depot --role producer --stream rides --days 90
    """
    from ptkstore.engine.access.tokens import make_token

    now_ms = int(time.time() * 1000)
    expires_ms = None if days is None else now_ms + int(days * _DAY_MS)
    with metadata_of(session) as metadata:
        text, row = make_token(
            metadata,
            name,
            roles=roles,
            streams=streams,
            ptks=ptks,
            expires_ms=expires_ms,
            now_ms=now_ms,
        )
    show(session, {"token": text, **_body(row)}, text)


@token.command("list")
@shared_options
@pass_session
def list_tokens(session: Invocation) -> None:
    """List all tokens, without their secrets.

    \b
    Example:
      sage token list --json
    """
    from ptkstore.engine.access.tokens import list_tokens

    with metadata_of(session) as metadata:
        rows = list_tokens(metadata)
    now_ms = int(time.time() * 1000)
    table = Table(
        ("token", "roles", "streams", "ptks", "expires", "alive"),
        [
            (
                row.name,
                ", ".join(row.roles),
                ", ".join(row.streams) or "all",
                ", ".join(row.ptks) or "all",
                moment(row.expires_ms),
                "yes" if row.alive(now_ms) else "no",
            )
            for row in rows
        ],
    )
    show(session, [_body(row) for row in rows], table, "" if rows else "no tokens yet")


@token.command()
@click.argument("name", metavar="NAME")
@shared_options
@pass_session
def revoke(session: Invocation, name: str) -> None:
    """End a token for good.

    A running server notices within two seconds.

    \b
    Example:
      sage token revoke depot
    """
    from ptkstore.engine.access.tokens import revoke_token

    with metadata_of(session) as metadata:
        row = revoke_token(metadata, name, now_ms=int(time.time() * 1000))
    show(session, _body(row), f"revoked {name}")


@contextmanager
def metadata_of(session: Invocation) -> Iterator[Metadata]:
    """The metadata of the store, beside a server that may be running."""
    from ptkstore.engine.access.beside import has_metadata, open_beside

    path: Path = session.path
    file = settings_file(session)
    url = None
    if file is not None:
        from ptkstore.settings import Settings

        url = Settings.read(file).metadata.url
    if url is None and not has_metadata(path):
        raise InvalidInput(
            "STORE_MISSING",
            f"there is no store in {path}: `sage serve` makes one, `--store PATH` or {STORE_VARIABLE} names another",
            store=str(path),
        )
    with open_beside(path, None if url is None else url.get_secret_value()) as metadata:
        yield metadata


def _body(row: TokenRow) -> dict[str, object]:
    return {
        "name": row.name,
        "roles": row.roles,
        "streams": row.streams,
        "ptks": row.ptks,
        "created_ms": row.created_ms,
        "expires_ms": row.expires_ms,
        "revoked_ms": row.revoked_ms,
    }
