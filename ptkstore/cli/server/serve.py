"""``sage serve``: the store behind gRPC, until it is told to stop."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import click

from ptkstore.cli.output import show
from ptkstore.cli.server.config import config_option, settings_file
from ptkstore.cli.server.descriptors import allow_many_files
from ptkstore.cli.server.memory import keep_freed_memory
from ptkstore.cli.session import Invocation, pass_session, shared_options
from ptkstore.extras import package_missing

__all__ = ["serve"]


@click.command()
@config_option()
@click.option(
    "--address", metavar="HOST:PORT", help="Where to listen, before what the settings say."
)
@shared_options
@pass_session
def serve(session: Invocation, config: Path | None, address: str | None) -> None:
    """Serve the store over gRPC until SIGTERM or Ctrl-C.

    Without settings it listens on 127.0.0.1:7070 for this machine only; any other address needs TLS
    and credentials. Stopping lets calls and the window under way finish; a second signal ends it at
    once.

    \b
    Examples:
      sage serve
      sage serve --config sage.yaml --store taxi
    """
    try:
        from ptkstore.engine.leadership.watchdog import Watchdog
        from ptkstore.server import Server, configure_logs, open_store
        from ptkstore.settings import Settings
    except ModuleNotFoundError as missing:
        raise package_missing(missing.name, "server") from None

    settings = Settings.read(settings_file(session, config))
    if address is not None:
        server = {**settings.server.model_dump(), "address": address}
        settings = Settings.checked({**settings.model_dump(), "server": server}, "--address")
    settings.require_protection()
    over = _told_to_stop()
    configure_logs()
    # Many threads, each with little to do: one that computes must not keep the others waiting for
    # Python's usual 5 ms.
    sys.setswitchinterval(0.0001)
    keep_freed_memory()
    allow_many_files()
    watchdog = Watchdog(settings.server.hang_seconds) if settings.server.hang_seconds else None
    with (
        open_store(session.path, settings) as store,
        Server(store, settings, watchdog=watchdog) as running,
    ):
        who = "without credentials" if settings.anonymous else "for those with credentials"
        body = {
            "address": running.address,
            "store": str(session.path),
            "anonymous": settings.anonymous,
        }
        text = f"serving {session.path} on {running.address}, {who}"
        if settings.shared:
            leader = running.leader
            body |= {"leads": running.leads, "leader": leader}
            text += "; leads" if running.leads else f"; {leader or 'nobody'} leads"
        show(session, body, text)
        sys.stdout.flush()
        # What is loaded by now stays: looking through it again and again would hold up calls for
        # milliseconds.
        gc.collect()
        gc.freeze()
        over.wait()


def _told_to_stop() -> threading.Event:
    """Set by the first signal; the second one does what signals do."""
    over = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return over
