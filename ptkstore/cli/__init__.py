"""``sage``, the command line: a thin skin over `ptkstore.Store`.

The treaty ----------
* The payload goes to stdout, everything else to stderr; ``--json`` makes the payload one JSON
  document and nothing else.
* An error is one line ``message [REASON]`` on stderr, or under ``--json`` one object with reason,
  message and details. The exit code is 2 where the request was wrong (InvalidInput), 1 where it was
  refused or failed, 130 when interrupted. No tracebacks.
* Asking for help loads nothing heavy: commands are imported when they are named, the store when a
  command runs.
"""

from __future__ import annotations

import click

from ptkstore.cli.groups import SageGroup
from ptkstore.cli.session import print_version, shared_options

__all__ = ["main"]


@click.group(
    cls=SageGroup,
    lazy={
        "init": "ptkstore.cli.project.commands:init",
        "apply": "ptkstore.cli.project.commands:apply",
        "plan": "ptkstore.cli.store.plan:plan",
        "run": "ptkstore.cli.project.commands:run",
        "stream": "ptkstore.cli.store.stream:stream",
        "ptk": "ptkstore.cli.store.ptk:ptk",
        "featurize": "ptkstore.cli.store.featurize:featurize",
        "budget": "ptkstore.cli.store.budget:budget",
        "events": "ptkstore.cli.store.events:events",
        "schedule": "ptkstore.cli.store.schedule:schedule",
        "research": "ptkstore.cli.store.profile:research",
        "serve": "ptkstore.cli.server.serve:serve",
        "token": "ptkstore.cli.server.tokens:token",
        "audit-log": "ptkstore.cli.server.audit_log:audit_log",
        "health": "ptkstore.cli.server.health:health",
        "ui": "ptkstore.cli.server.ui:ui",
        "backup": "ptkstore.cli.server.backup:backup",
        "restore": "ptkstore.cli.server.backup:restore",
        "doctor": "ptkstore.cli.project.commands:doctor",
        "audit": "ptkstore.cli.store.audit:audit",
        "version": "ptkstore.cli.project.commands:version",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version and exit.",
)
@shared_options
def main() -> None:
    """Sage shares differentially private feature models (PTKs), never data.

    \b
    A first store, from nothing to features:
      sage init -t taxi taxi && cd taxi
      python make_rides.py
      sage apply
      sage stream push rides rides.parquet
      sage run --until 2026-03-04
      sage featurize trips.csv --ptk hour-speed -o features.csv

    A store is a directory: --store, else the variable SAGE_STORE, else the current one.
    """
