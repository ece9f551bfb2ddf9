"""``sage init``, ``apply``, ``run``, ``doctor`` and ``version``: a project from its first file to
its health.

Reason: TIME_INVALID.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptkstore.api.moments import EXAMPLES, millis_of
from ptkstore.cli.output import Table, rejection, show, window_begins
from ptkstore.cli.progress import progress
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.api.views import CycleView

__all__ = ["apply", "doctor", "init", "moment_of", "run", "version"]


@click.command()
@click.argument(
    "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), metavar="[DIR]"
)
@click.option("-t", "--template", default="taxi", show_default=True, help="The template to copy.")
@click.option("--from", "file", metavar="FILE", help="Instead: a draft from a file of records.")
@click.option("--time", "time_column", default="", metavar="COLUMN", help="When a record happened.")
@click.option(
    "--bounds",
    multiple=True,
    metavar="COLUMN=LOW:HIGH",
    help="With --from: public bounds of a column. Repeatable.",
)
@click.option(
    "--domain",
    "domains",
    multiple=True,
    metavar="COLUMN=A,B,C",
    help="With --from: the public values of a column. Repeatable.",
)
@shared_options
@pass_session
def init(
    session: Invocation,
    directory: Path,
    template: str,
    file: str | None,
    time_column: str,
    bounds: tuple[str, ...],
    domains: tuple[str, ...],
) -> None:
    """Write a first project into DIR.

    DIR is the current directory when left out. Refuses to overwrite a file. The project is
    sage.yaml, which declares streams and PTKs, and a generator of data to try it with; or, with
    --from, a stream and two PTKs for the records of a file (see `sage stream infer`).

    \b
    Examples:
      sage init -t taxi taxi
      sage init --from visits.parquet --bounds minutes=0:240
    """
    from ptkstore.cli.project.templates import begin, begin_with

    if file is None:
        written = begin(template, directory)
        enter = "" if directory == Path() else f"cd {directory} && "
        show(
            session,
            {"template": template, "files": [str(path) for path in written]},
            *(f"wrote {path}" for path in written),
            f"next: {enter}sage apply",
        )
        return
    from ptkstore.cli.project.asking import drafted
    from ptkstore.cli.project.drafting import MARK, looked_at, project_text

    draft = drafted((file,), name="", time_column=time_column, bounds=bounds, domains=domains)
    written = begin_with(project_text(draft, with_ptks=True), directory)
    looked = looked_at(draft)
    enter = "" if directory == Path() else f"cd {directory} && "
    there = Path(file).resolve() if directory != Path() else Path(file)
    show(
        session,
        {"from": file, "files": [str(path) for path in written], "looked_at": looked},
        *(f"wrote {path}" for path in written),
        f"look at the lines marked {MARK} in sage.yaml ({'; '.join(looked)})" if looked else "",
        f"next: {enter}sage apply && sage stream push {draft.name} {there} && "
        f"sage run --until {draft.last_day}",
    )


@click.command()
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path),
    help="The project. [default: sage.yaml here, else in the store]",
)
@shared_options
@pass_session
@click.pass_context
def apply(context: click.Context, session: Invocation, file: Path | None) -> None:
    """Make the store what sage.yaml declares.

    Creates streams, registers and updates PTKs. Applying twice changes nothing. A PTK that does not
    fit beside the others is REJECTED with the reason and the nearest target or epsilon that would do;
    the exit code is 1 when anything was rejected.

    \b
    Examples:
      sage apply
      sage apply -f other.yaml --json
    """
    from ptkstore.cli.project.declaration import Project, declared_in
    from ptkstore.cli.project.reconcile import reconcile, undeclared

    project = Project.read(declared_in(session, file))
    with opened(session, create=True) as store:
        outcomes = reconcile(store, project)
        others = undeclared(store, project)
    show(
        session,
        {"outcomes": outcomes, "undeclared": others},
        Table(
            ("what", "name", "status", "epsilon", "samples"),
            [
                (
                    outcome.what,
                    outcome.name,
                    outcome.status,
                    outcome.planned_epsilon,
                    outcome.planned_samples,
                )
                for outcome in outcomes
            ],
        ),
        *(rejection(outcome) for outcome in outcomes if outcome.status in ("REJECTED", "SKIPPED")),
        f"trains, but is not declared: {', '.join(others)} (`sage ptk retire NAME` ends it)"
        if others
        else "",
    )
    if any(outcome.status == "REJECTED" for outcome in outcomes):
        context.exit(1)


@click.command()
@click.option("--stream", metavar="STREAM", help="This stream only. [default: all]")
@click.option(
    "--until",
    metavar="TIME",
    help="All data before TIME (ISO 8601, UTC) has arrived. [default: the clock]",
)
@shared_options
@pass_session
@click.pass_context
def run(context: click.Context, session: Invocation, stream: str | None, until: str | None) -> None:
    """Run every complete window: plan, train, publish, expire.

    Seals what is due and destroys the raw data of windows that are done. Windows that were
    interrupted are finished first; running again is always safe. A window that does not have enough
    records for all PTKs trains as many as it can. The exit code is 1 when a window published less
    than it should: what, why and what would help is said below the table.

    \b
    Examples:
      sage run
      sage run --stream rides --until 2026-03-04
    """
    until_ms = None if until is None else moment_of(until)
    with opened(session) as store, progress("opening the store") as tell:
        cycles = store.run(stream, until_ms=until_ms, progress=tell)
        lengths = {stream.name: stream.window_seconds for stream in store.streams()}
    begins = [window_begins(cycle.window, lengths[cycle.stream]) for cycle in cycles]
    rows = [
        (
            cycle.stream,
            begin,
            cycle.dp_records,
            line.ptk,
            line.outcome,
            line.version,
            line.epsilon,
            line.samples,
            line.validation,
            line.error,
            line.reason,
        )
        for cycle, begin in zip(cycles, begins, strict=True)
        for line in cycle.trained
    ]
    notes = [
        line for cycle, begin in zip(cycles, begins, strict=True) for line in _notes(cycle, begin)
    ]
    show(
        session,
        cycles,
        Table(
            (
                "stream",
                "window",
                "records~",
                "ptk",
                "outcome",
                "version",
                "epsilon",
                "samples",
                "tested",
                "error",
                "reason",
            ),
            rows,
        ),
        *notes,
        ""
        if cycles
        else "no window is complete yet: push more data, or say how far it has arrived with --until",
    )
    if any(cycle.shortfall for cycle in cycles):
        context.exit(1)


def _notes(cycle: CycleView, begins: str) -> list[str]:
    """What a table of PTKs does not say of a window."""
    where = f"{cycle.stream}, {begins}"
    if not cycle.trained:
        return [f"{where}: no PTK was due"]
    if not cycle.shortfall:
        return []
    plan = f"  the plan is {cycle.plan_status}: sage plan show --stream {cycle.stream}"
    return [
        f"{where}: SHORT. {cycle.shortfall}",
        *(f"  {change}" for change in cycle.changes),
        plan,
    ]


def moment_of(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time, UTC where it names no zone; ``now`` is the
    present.
    """
    if text == "now":
        return int(time.time() * 1000)
    return millis_of(text, examples=f"{EXAMPLES}, or 'now'")


@click.command()
@click.option(
    "--canary",
    "canaries",
    multiple=True,
    metavar="TEXT",
    help="A text that must be nowhere in the store. Repeatable.",
)
@shared_options
@pass_session
@click.pass_context
def doctor(context: click.Context, session: Invocation, canaries: tuple[str, ...]) -> None:
    """Check the health of the store.

    Looks at the book of charges, keys, files and versions. With --canary, also look for a text in
    every file of the store: raw data is encrypted, so a value that was pushed must not be found.
    The exit code is 1 when anything is an ERROR.

    \b
    Examples:
      sage doctor
      sage doctor --canary "Jane Doe"
    """
    with opened(session) as store:
        findings = store.doctor(canaries)
    show(
        session,
        findings,
        Table(
            ("level", "what", "detail"),
            [(finding.level, finding.what, finding.detail) for finding in findings],
        ),
    )
    if any(finding.level == "ERROR" for finding in findings):
        context.exit(1)


@click.command()
@shared_options
@pass_session
def version(session: Invocation) -> None:
    """Print the versions of Sage and Python.

    \b
    Example:
      sage version --json
    """
    import platform
    from importlib.metadata import version as version_of

    versions = {"sage": version_of("ptkstore"), "python": platform.python_version()}
    show(session, versions, f"sage {versions['sage']} (Python {versions['python']})")
