"""``sage audit``: the empirical audit of the mechanisms, the kinds of PTK and the PTKs of a store,
on invented data.

Exit code 1 where a bound exceeds its claim, or where something could not be audited. Reads the
public part of a store only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptkstore.cli.output import Table, show, write_text
from ptkstore.cli.progress import progress
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

if TYPE_CHECKING:
    from ptklib.auditing.report import AuditReport
    from ptklib.auditing.subject import Subject

__all__ = ["audit"]


@click.command()
@click.argument("name", metavar="[PTK]", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Everything that comes with Sage, and all PTKs of the store.",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1000),
    help="Runs of each side. [default: enough to show half the noise]",
)
@click.option(
    "--budget-seconds",
    type=click.FloatRange(min=1),
    help="Stop sampling after about so long, all together.",
)
@click.option(
    "--confidence", type=float, default=0.999999, show_default=True, help="Of all tests together."
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as a page, too.",
)
@shared_options
@pass_session
def audit(
    session: Invocation,
    name: str | None,
    everything: bool,
    runs: int | None,
    budget_seconds: float | None,
    confidence: float,
    html: Path | None,
) -> None:
    """Try to catch a mechanism that is less private than it claims.

    Runs mechanisms, kinds of PTK and the store's own configurations many times on worst-case
    neighbouring inputs, and shows a lower bound on epsilon beside each claim. Data is invented: no
    stream is read and nothing is charged. Exits with 1 where a bound exceeds its claim.

    \b
    Examples:
      sage audit hour-speed
      sage audit --all --html audit.html
      sage audit --all --budget-seconds 60 --json
    """
    if (name is None) != everything:
        raise click.UsageError("name a PTK of the store, or give --all")
    report = _audited(session, name, runs, budget_seconds, confidence)
    if html is not None:
        from ptklib.auditing.page import page

        write_text(str(html), page(report))
    rows = [
        (
            finding.name,
            _claim(finding.claim.epsilon, finding.claim.delta),
            round(finding.bound, 3),
            f"{finding.share:.0%}",
            finding.verdict,
            finding.runs,
        )
        for finding in report.findings
    ]
    problems = "\n".join(
        f"{finding.name}: {finding.problem}" for finding in report.findings if finding.problem
    )
    columns = ("subject", "claimed epsilon", "lower bound", "share", "verdict", "runs")
    sure = f"confidence {report.confidence:.6g} for all {report.tests} tests together, in {report.seconds:.0f} s"
    show(session, report, Table(columns, rows), problems, sure, report.verdict)
    if not report.passed:
        raise SystemExit(1)


def _audited(
    session: Invocation,
    name: str | None,
    runs: int | None,
    budget_seconds: float | None,
    confidence: float,
) -> AuditReport:
    import time

    from ptklib.auditing.report import AuditReport
    from ptklib.auditing.running import audit as run

    begun = time.monotonic()
    with progress("looking for the worst pairs") as say:
        subjects, scope = _subjects(session, name)
        audit_findings = run(
            subjects,
            confidence=confidence,
            runs=runs,
            budget_seconds=budget_seconds,
            clock=time.monotonic,
            progress=say,
        )
    return AuditReport(audit_findings, confidence, scope, _versions(), time.monotonic() - begun)


def _subjects(session: Invocation, name: str | None) -> tuple[list[Subject], str]:
    from ptkstore.api.references import is_address
    from ptkstore.engine.safekeeping.auditing import count_subject, shipped_subjects, stored_subject

    if name is not None:
        with opened(session) as store:
            view = store.ptk(name)
            spec = store.stream(view.stream)
        return [
            stored_subject(view, spec),
            count_subject(spec),
        ], f"PTK {name} of stream {spec.name}"
    subjects, scope = shipped_subjects(), "everything that comes with Sage"
    if is_address(str(session.path)) or (session.path / "meta.db").exists():
        with opened(session) as store:
            specs = {stream.name: stream for stream in store.streams()}
            views = [ptk for ptk in store.ptks() if ptk.stream in specs]
        subjects += [count_subject(spec) for spec in specs.values()]
        subjects += [stored_subject(view, specs[view.stream]) for view in views]
        scope += f", and {len(views)} PTKs of {len(specs)} streams in {session.path}"
    return subjects, scope


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    named = {package: version(package) for package in ("numpy", "scipy", "pyarrow")}
    return {
        "sage": version("ptkstore"),
        "python": platform.python_version(),
        **named,
        "platform": platform.platform(),
    }


def _claim(epsilon: float, delta: float) -> str:
    return f"{epsilon:.4g}" + (f" (delta {delta:g})" if delta else "")
