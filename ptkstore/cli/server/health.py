"""``sage health``: what probes of containers and clusters run.

Reasons: NOT_SERVING, SERVER_UNAVAILABLE, DEADLINE_PASSED.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from ptklib.errors import SageError
from ptkstore.cli.output import show
from ptkstore.cli.server.config import config_option, settings_file
from ptkstore.cli.session import CA_VARIABLE, Invocation, pass_session, shared_options
from ptkstore.extras import package_missing

__all__ = ["health"]

# As in `ptkstore.server`, which takes the packages of a server.
_LIVE = "live"
_ANY_HOST = ("0.0.0.0", "[::]")  # noqa: S104


@click.command()
@click.argument("address", required=False, metavar="[ADDRESS]")
@config_option("The server's settings.")
@click.option(
    "--live", is_flag=True, help="Ask whether it lives, though it may not be able to write now."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Seconds to wait.",
)
@shared_options
@pass_session
def health(
    session: Invocation, address: str | None, config: Path | None, live: bool, timeout: float
) -> None:
    """Ask a server whether it serves.

    A server that cannot write (disk full, metadata away) does not serve, and lives: restarting it
    would not help. Its log and `sage doctor` say what is wrong.

    Without ADDRESS (host:port), the server of the settings on this machine. Needs no token; over
    TLS the variable SAGE_CA_FILE names the CA. The exit code is 0 when it serves and 1 otherwise.

    \b
    Examples:
      sage health
      sage health sage.example:7070
      sage health --live
    """
    try:
        from ptkstore.client.health import SERVING, serving_status
        from ptkstore.settings import Settings
    except ModuleNotFoundError as missing:
        raise package_missing(missing.name, "server") from None
    if address is None:
        host, _, port = Settings.read(settings_file(session, config)).server.address.rpartition(":")
        address = f"{'localhost' if host in _ANY_HOST else host}:{port}"
    status = serving_status(
        address,
        _LIVE if live else "",
        ca_file=os.environ.get(CA_VARIABLE),
        timeout_seconds=timeout,
    )
    if status != SERVING:
        raise SageError("NOT_SERVING", f"{address} answers, and is {status}", address=address)
    show(session, {"address": address, "status": status}, f"{address} is {status}")
