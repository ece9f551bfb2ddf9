"""The report of an audit: what was run, on what, with which confidence, and what was found; for
people and for programs.

Everything in it is public: mechanisms, configurations, invented records, bounds. `Report.as_json`
is stable: keys are added, never renamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ptklib.auditing.running import EXCEEDS, FAILED, WEAK, AuditFinding

__all__ = ["METHOD", "RANDOMNESS", "AuditReport"]

METHOD = (
    "Every subject was run many times on two neighbouring inputs. On a quarter of the runs the "
    "event was chosen that tells the "
    "inputs apart best: a threshold of the log-likelihood ratio of everything that was released, a "
    "remainder of the released "
    "numbers modulo 2, 3, 4, 5, 8, 10 or 16, a single value or a set of values. On the other runs "
    "its probability was bounded "
    "on both inputs (Clopper-Pearson), which gives a lower bound on epsilon at the delta of the "
    "claim. Each view of a subject "
    "is one test, and the confidence is that of all tests together (Bonferroni): if every claim "
    "holds, some bound exceeds its "
    "claim with probability of at most one minus the confidence. A bound below the claim proves "
    "nothing; how near it comes "
    "says how strong the audit was."
)
RANDOMNESS = (
    "Noise: the system's cryptographic source (AES-256 in counter mode, keyed by the operating "
    "system), as in production; runs "
    "are not repeatable. Records: invented from public configurations with a fixed seed. No "
    "stream, block, key or "
    "grant was used."
)


@dataclass(frozen=True)
class AuditReport:
    """Findings, and what they rest on.

    ``versions`` names the code; ``scope`` says what was asked for.
    """

    findings: Sequence[AuditFinding]
    confidence: float
    scope: str
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def tests(self) -> int:
        """How many tests share the confidence."""
        return sum(finding.tests for finding in self.findings)

    @property
    def passed(self) -> bool:
        """True where no bound exceeds its claim and nothing failed."""
        return not self.of(EXCEEDS) and not self.of(FAILED)

    @property
    def verdict(self) -> str:
        """In one sentence."""
        wrong, failed, weak = (self.of(verdict) for verdict in (EXCEEDS, FAILED, WEAK))
        if wrong:
            return (
                f"{len(wrong)} of {len(self.findings)} claims are contradicted: "
                f"{', '.join(finding.name for finding in wrong)}"
            )
        if failed:
            return (
                f"{len(failed)} of {len(self.findings)} could not be audited: "
                f"{', '.join(finding.name for finding in failed)}"
            )
        told = f"no claim is contradicted, of {len(self.findings)}"
        return (
            f"{told}; weak (more runs would say more): "
            f"{', '.join(finding.name for finding in weak)}"
            if weak
            else told
        )

    def of(self, verdict: str) -> list[AuditFinding]:
        """The findings with this verdict."""
        return [finding for finding in self.findings if finding.verdict == verdict]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "scope": self.scope,
            "confidence": self.confidence,
            "tests": self.tests,
            "confidence_per_test": 1 - (1 - self.confidence) / max(1, self.tests),
            "seconds": round(self.seconds, 1),
            "versions": dict(self.versions),
            "method": METHOD,
            "randomness": RANDOMNESS,
            "findings": [_finding(finding) for finding in self.findings],
        }


def _finding(audit_finding: AuditFinding) -> dict[str, Any]:
    return {
        "name": audit_finding.name,
        "group": audit_finding.group,
        "claim": {"epsilon": audit_finding.claim.epsilon, "delta": audit_finding.claim.delta},
        "lower_bound": audit_finding.bound,
        "share_of_claim": audit_finding.share,
        "verdict": audit_finding.verdict,
        "event": audit_finding.event,
        "pair": audit_finding.pair,
        "runs_per_side": audit_finding.runs,
        "tests": audit_finding.tests,
        "problem": audit_finding.problem,
        "about": dict(audit_finding.about),
    }
