"""The report as one page of HTML: readable without a network, a script or another file, on screen
and on paper.
"""

from __future__ import annotations

from html import escape

from ptklib.auditing.report import METHOD, RANDOMNESS, AuditReport
from ptklib.auditing.running import EXCEEDS, FAILED, AuditFinding

__all__ = ["page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { padding: .7rem 1rem; border-left: .4rem solid #1a7f37; background: #eef8f0; }
.verdict.bad { border-color: #b3261e; background: #fdefee; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
border-bottom: 1px solid #d0d7de; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.bad td { background: #fdefee; } .small { font-size: .85rem; color: #57606a; overflow-wrap: anywhere; }
.bar { background: #eaeef2; height: .6rem; width: 9rem; position: relative; } .bar span { display: block; height: 100%;
background: #0969da; } .bad .bar span { background: #b3261e; } dt { font-weight: 600; } dd { margin: 0 0 .5rem 0; }
@media print { body { margin: 0; } }
"""


def page(report: AuditReport, *, title: str = "Empirical privacy audit") -> str:
    """A whole document."""
    groups = list(dict.fromkeys(finding.group for finding in report.findings))
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict{"" if report.passed else " bad"}">{escape(report.verdict.capitalize())}.</p>',
        _facts(report),
        *(
            _group(name, [finding for finding in report.findings if finding.group == name])
            for name in groups
        ),
        f"<h2>Method</h2><p>{escape(METHOD)}</p><p>{escape(RANDOMNESS)}</p>",
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'
    )


def _facts(report: AuditReport) -> str:
    facts = {
        "Scope": report.scope,
        "Confidence": f"{report.confidence:.6g} for all {report.tests} tests together",
        "Time": f"{report.seconds:.0f} s",
        "Versions": ", ".join(f"{name} {version}" for name, version in report.versions.items()),
    }
    return (
        "<dl>"
        + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
        + "</dl>"
    )


def _group(name: str, findings: list[AuditFinding]) -> str:
    heads = ("subject", "claim", "lower bound", "share", "verdict", "runs a side", "pair and event")
    rows = "".join(_row(finding) for finding in findings)
    return f"<h2>{escape(name.capitalize())}</h2><table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>"


def _row(audit_finding: AuditFinding) -> str:
    bad = ' class="bad"' if audit_finding.verdict in (EXCEEDS, FAILED) else ""
    claim = f"{audit_finding.claim.epsilon:.4g}" + (
        f", delta {audit_finding.claim.delta:g}" if audit_finding.claim.delta else ""
    )
    width = min(100, round(100 * audit_finding.share))
    about = "".join(
        f"{escape(name)}: {escape(text)}. " for name, text in audit_finding.about.items()
    )
    told = audit_finding.problem or f"Pair: {audit_finding.pair}. Event: {audit_finding.event}."
    return (
        f"<tr{bad}><td>{escape(audit_finding.name)}</td><td class=number>{claim}</td><td "
        f"class=number>{audit_finding.bound:.4g}</td>"
        f'<td><div class=bar><span style="width:{width}%"></span></div><span class=small>{audit_finding.share:.0%}</span></td>'
        f"<td>{audit_finding.verdict}</td><td class=number>{audit_finding.runs}</td><td "
        f"class=small>{about}{escape(told)}</td></tr>"
    )
