"""What every command shares: ``--store`` and ``--json``, before or after the command's name, and
the opened store.

Reason: STORE_MISSING.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ptklib.errors import InvalidInput
from ptkstore.api.references import is_address

if TYPE_CHECKING:
    from ptkstore.api.store import Store

__all__ = [
    "CA_VARIABLE",
    "STORE_VARIABLE",
    "TOKEN_VARIABLE",
    "Invocation",
    "opened",
    "pass_session",
    "print_version",
    "shared_options",
]

STORE_VARIABLE = "SAGE_STORE"
# For a store that is the address of a server.
TOKEN_VARIABLE = "SAGE_TOKEN"  # noqa: S105
CA_VARIABLE = "SAGE_CA_FILE"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class Invocation:
    """The shared options of one call of ``sage``."""

    store: str | None = None
    as_json: bool = False

    @property
    def path(self) -> Path:
        """The directory of the store."""
        return Path(self.store or os.environ.get(STORE_VARIABLE) or ".")


pass_session = click.make_pass_decorator(Invocation, ensure=True)


def shared_options(command: Function) -> Function:
    """Add ``--store`` and ``--json``. Given twice, the one nearer to the arguments counts."""

    def keep_store(context: click.Context, _: click.Parameter, value: str | None) -> None:
        session = context.ensure_object(Invocation)
        session.store = value if value is not None else session.store

    def keep_json(context: click.Context, _: click.Parameter, value: bool) -> None:
        session = context.ensure_object(Invocation)
        session.as_json = value or session.as_json

    store = click.option(
        "--store",
        metavar="PATH",
        expose_value=False,
        callback=keep_store,
        help=f"The store's directory, or host:port of a server. [default: ${STORE_VARIABLE}, else the current one]",
    )
    as_json = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=keep_json,
        help="Print pure JSON on stdout.",
    )
    return as_json(store(command))


def print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """``sage --version``: the first line of ``sage version``, and the end."""
    if asked and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"sage {version('ptkstore')}")
        context.exit()


@contextmanager
def opened(session: Invocation, *, create: bool = False) -> Iterator[Store]:
    """The store of this command; only commands that may begin one pass ``create``, so that a typo
    leaves no files behind.
    """
    import ptkstore

    if is_address(str(session.path)) and not session.path.exists():
        with ptkstore.open(
            str(session.path),
            token=os.environ.get(TOKEN_VARIABLE),
            ca_file=os.environ.get(CA_VARIABLE),
        ) as remote:
            yield remote
        return
    path = session.path
    if not create and not (path / "meta.db").exists():
        raise InvalidInput(
            "STORE_MISSING",
            f"there is no store in {path}: `sage apply` makes one, `--store PATH` or {STORE_VARIABLE} names another",
            store=str(path),
        )
    with ptkstore.open(path) as store:
        yield store
