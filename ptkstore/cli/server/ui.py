"""``sage ui``: the operator's console in a browser.

Reasons: CONSOLE_UNPROTECTED, SERVER_ADDRESS_TAKEN, PACKAGE_MISSING.
"""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ptklib.errors import InvalidInput
from ptkstore.api.references import is_address
from ptkstore.cli.output import show
from ptkstore.cli.session import (
    CA_VARIABLE,
    TOKEN_VARIABLE,
    Invocation,
    opened,
    pass_session,
    shared_options,
)
from ptkstore.extras import package_missing

if TYPE_CHECKING:
    from ptkstore.console import Source

__all__ = ["ui"]


@click.command()
@click.option(
    "--server",
    metavar="HOST:PORT",
    help="Look at the store of this server; the same as --store HOST:PORT.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    default="127.0.0.1:7071",
    show_default=True,
    help="Where the console listens.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy with TLS is in front: believe its X-Forwarded headers.",
)
@click.option(
    "--root-path",
    metavar="PREFIX",
    default="",
    help="A prefix that the proxy leaves in the path, like /sage.",
)
@click.option("--no-open", is_flag=True, help="Print the link only; open no browser.")
@shared_options
@pass_session
def ui(
    session: Invocation,
    server: str | None,
    address: str,
    behind_proxy: bool,
    root_path: str,
    no_open: bool,
) -> None:
    """Open the operator's console in a browser.

    Of a store in a directory, for this machine alone. Of a server, for everybody who signs in with
    a token; the link opens it with the token in SAGE_TOKEN. A link works once: when it was used a
    fresh one is printed. Ends with Ctrl-C.

    \b
    Examples:
      sage ui
      sage ui --server sage.example:7070 --address 127.0.0.1:8080 --no-open
    """
    host, port = _host_port(address)
    try:
        from ptkstore.console.app import make_app
        from ptkstore.console.serving import Serving, bound
        from ptkstore.console.sessions.sessions import OneTimeKeys
        from ptkstore.console.sessions.settings import (
            LOOPBACK_HOSTS,
            ConsoleSettings,
            require_protection,
        )
    except ModuleNotFoundError as missing:
        raise package_missing(missing.name, "console") from None

    if server is not None:
        session.store = server
    remote = is_address(str(session.path)) and not session.path.exists()
    if server is not None and not remote:
        raise InvalidInput("ADDRESS_INVALID", f"--server must be host:port, got {server!r:.80}")
    require_protection(host, directory=not remote, behind_proxy=behind_proxy)
    settings = ConsoleSettings(
        hosts=() if behind_proxy else (*LOOPBACK_HOSTS, host.lower()),
        root_path=root_path,
        trust_proxy=behind_proxy,
    )
    keys = OneTimeKeys()
    with _source(session, remote) as source:
        listening = bound(host, port)
        shown = f"http://{host}:{listening.getsockname()[1]}{root_path}/"

        def fresh_link() -> str:
            return f"{shown}open?key={keys.make()}"

        def say_next() -> None:
            click.echo(f"to open it once more: {fresh_link()}", err=True)

        serving = Serving(make_app(source, settings, keys=keys, key_used=say_next), listening)
        url = fresh_link()
        show(
            session,
            {"url": url, "address": f"{host}:{serving.port}"},
            f"the console of {source.place}: {url}",
        )
        sys.stdout.flush()
        if not no_open:
            _open_browser(url)
        try:
            serving.run()
        except KeyboardInterrupt:
            # How it is meant to end.
            return


@contextmanager
def _source(session: Invocation, remote: bool) -> Iterator[Source]:
    from ptkstore.console.sessions.sources import DirectorySource, ServerSource

    if remote:
        token = os.environ.get(TOKEN_VARIABLE)
        yield ServerSource(str(session.path), token=token, ca_file=os.environ.get(CA_VARIABLE))
        return
    with opened(session) as store:
        yield DirectorySource(store, str(session.path.resolve()))


def _open_browser(url: str) -> None:
    """The socket listens already: the page comes as soon as the console runs."""
    opener: Callable[[str], bool] = webbrowser.open
    try:
        opener(url)
    except (OSError, webbrowser.Error):
        click.echo("no browser could be opened: use the link", err=True)


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not (port == "0" or is_address(address)):
        raise InvalidInput("ADDRESS_INVALID", f"--address must be host:port, got {address!r:.80}")
    return host, int(port)
