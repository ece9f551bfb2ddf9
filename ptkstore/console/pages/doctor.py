"""Doctor: examine the store, and say what to do about each finding. Reason: VALUE_INVALID."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.responses import Response

from ptklib.errors import InvalidInput
from ptkstore.api.views import Finding
from ptkstore.console.page.faults import fault_of
from ptkstore.console.page.page import Page, Visit

__all__ = ["PAGES", "FindingLine", "advice_for"]

# Findings stay on the page until something is changed, or for so long.
_KEPT_SECONDS = 3600.0
_KEY = "doctor"
_MOST_CANARIES = 50
_SHORTEST_CANARY = 4
_ADVICE = {
    "ledger": "Stop the server and take no more charges: the book of charges is not what was written, so that the promise "
    "cannot be vouched for. Restore the newest backup (sage restore) and keep the damaged directory to look into.",
    "writing": "Make room on the disk of the store, or raise the server's limit of open files. It goes on by itself within "
    "seconds: no restart is needed, and producers may send again what was not acknowledged.",
    "lake": "Put the named files back from a backup of the lake. A state is known by the digest of its bytes, so that a "
    "right copy is easy to tell from a wrong one. Its PTK trains a new one in the next window all the same.",
    "exposure": "Raw records that should be gone can still be read. Delete the files and keys that are named, find out who "
    "put them back (a copy of an old directory, usually), and look at the backups too.",
    "windows": "The data of that window is gone, and the versions that are missing stay missing. Do what is suggested before "
    "the next window closes: send more records, loosen targets, or see in the log of the server why a training failed.",
    "holding": "Raw records are held for longer than the stream's window. Run the windows that are complete (page Operations, "
    "or sage run). Where the watermark is ahead of the clock, somebody declared a wrong time or the clock was wrong: put the "
    "clock right, and let the producers wait.",
    "cycles": "Run the windows that are complete (page Operations, or sage run): they go on where they stopped. A window "
    "that is being worked on right now is listed here as well, and needs nothing.",
    "outbox": "Subscribers hear of these when a server runs: start one (sage serve), or see under Deliveries who does not "
    "answer.",
    "canaries": "A value of a stream lies in the clear in the files that are named. Close the store to others, keep these "
    "files as evidence, and find what wrote them: nothing in a store but its encrypted blocks may hold records.",
}


@dataclass(frozen=True)
class FindingLine:
    """A finding, and what to do about it; empty for a good one."""

    finding: Finding
    advice: str


def advice_for(finding: Finding) -> str:
    """What to do."""
    if finding.level == "OK":
        return ""
    kind = "holding" if finding.what.endswith(" by the clock") else finding.what.split(" ")[0]
    return _ADVICE.get(kind, "Look at the log of the server.")


def doctor(visit: Visit) -> Response:
    """The page, with what was found last."""
    return _page(visit)


def examine(visit: Visit) -> Response:
    """Do it, and go to the page."""
    try:
        canaries = _canaries(visit.form.get("canaries", ""))
    except InvalidInput as error:
        return _page(visit, error)
    findings = visit.store.doctor(canaries)
    visit.session.remember(_KEY, _KEPT_SECONDS, lambda: (round(time.time() * 1000), findings))
    return visit.go("doctor")


def _canaries(text: str) -> list[str]:
    """Texts, one on each line. They may be raw values, so that no error repeats them."""
    canaries = [line.strip() for line in text.splitlines() if line.strip()]
    if len(canaries) > _MOST_CANARIES or any(len(canary) < _SHORTEST_CANARY for canary in canaries):
        raise InvalidInput(
            "VALUE_INVALID",
            f"at most {_MOST_CANARIES} texts, each of at least {_SHORTEST_CANARY} characters",
        )
    return canaries


def _page(visit: Visit, error: InvalidInput | None = None) -> Response:
    known: tuple[int, list[Finding]] | None = visit.session.remember(
        _KEY, _KEPT_SECONDS, lambda: None
    )
    at_ms, findings = known if known is not None else (None, None)
    return visit.render(
        "doctor.html",
        status=400 if error is not None else 200,
        findings=None
        if findings is None
        else [FindingLine(finding, advice_for(finding)) for finding in _sorted(findings)],
        bad=sum(finding.level != "OK" for finding in findings or ()),
        at_ms=at_ms,
        wrong=fault_of(error) if error is not None else None,
    )


def _sorted(findings: list[Finding]) -> list[Finding]:
    """What needs somebody first."""
    return sorted(findings, key=lambda finding: ("ERROR", "WARNING", "OK").index(finding.level))


PAGES = (
    Page(path="doctor", view=doctor, role="operator", under="operations"),
    Page(path="examine", view=examine, role="operator", method="POST", under="operations"),
)
