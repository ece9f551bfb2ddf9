"""The audit of many subjects, with one confidence for all of them together.

Every view of every subject is one test. A claim that holds is contradicted by one of k tests with
probability at most 1 - confidence, all together, when each is held to (1 - confidence) / k
(Bonferroni). A bound in the report has the confidence of the report, then, whatever else is in it.

Runs stop at ``runs``, or at the number that each subject asks for; with ``budget_seconds`` also
when the subject has used its part of the time, counted by the clock that is given. When they stop
does not depend on what they gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptklib.auditing.subject import Claim, OutputView, Subject, joined
from ptklib.errors import InvalidInput, SageError
from ptklib.testing.audit import MIN_COUNT, audit_epsilon

__all__ = ["CONFIDENCE", "EXCEEDS", "FAILED", "HOLDS", "WEAK", "AuditFinding", "audit"]

CONFIDENCE = 0.999999
# The bound contradicts the claim; it does not, and is at least a quarter of it; it does not, and
# says little; no bound.
EXCEEDS, HOLDS, WEAK, FAILED = "EXCEEDS", "HOLDS", "WEAK", "FAILED"
# Runs between two looks at the clock.
_CHUNK = 500
_LEAST = 10 * MIN_COUNT
# Of the runs, to choose an event by: scores are likelihood ratios already, and need a cut only.
_CHOOSING = 0.25

Clock = Callable[[], float]


@dataclass(frozen=True)
class AuditFinding:
    """What one subject gave: the largest lower bound of its views, and the event behind it."""

    name: str
    group: str
    claim: Claim
    pair: str
    bound: float
    event: str
    runs: int
    tests: int
    verdict: str
    problem: str = ""
    about: dict[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The bound as a share of the claim."""
        return self.bound / self.claim.epsilon if self.claim.epsilon else 0.0


def audit(
    subjects: Sequence[Subject],
    *,
    confidence: float = CONFIDENCE,
    runs: int | None = None,
    budget_seconds: float | None = None,
    clock: Clock | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[AuditFinding]:
    """Audit them one after the other.

    A ``budget_seconds`` needs a ``clock``. Reasons: CONFIDENCE_INVALID, RUNS_INVALID.
    """
    if not 0.5 <= confidence < 1:
        raise InvalidInput(
            "CONFIDENCE_INVALID", f"confidence must be in [0.5, 1), got {confidence}"
        )
    if runs is not None and runs < _LEAST:
        raise InvalidInput("RUNS_INVALID", f"runs must be at least {_LEAST}, got {runs}")
    sampled: list[tuple[Subject, list[OutputView], str]] = []
    for place, subject in enumerate(subjects):
        left = None if budget_seconds is None else budget_seconds / len(subjects)
        say = _saying(progress, f"{place + 1} of {len(subjects)}: {subject.name}")
        try:
            sampled.append((subject, _sampled(subject, runs or subject.runs, left, clock, say), ""))
        except SageError as error:
            sampled.append((subject, [], f"{error.message} [{error.reason}]"))
    tests = sum(len(views) for _, views, _ in sampled) or 1
    level = 1 - (1 - confidence) / tests
    return [_found(subject, views, problem, level) for subject, views, problem in sampled]


def _sampled(
    subject: Subject,
    runs: int,
    seconds: float | None,
    clock: Clock | None,
    say: Callable[[int], None],
) -> list[OutputView]:
    begun = clock() if clock is not None else 0.0
    parts: list[Sequence[OutputView]] = []
    done = 0
    while done < runs:
        size = min(_CHUNK, runs - done)
        # All of the first chunk, or there would be nothing to choose an event from.
        parts.append(subject.sample(size))
        done += size
        say(done)
        if (
            seconds is not None
            and clock is not None
            and clock() - begun > seconds
            and done >= _LEAST
        ):
            break
    return joined(parts)


def _found(subject: Subject, views: list[OutputView], problem: str, level: float) -> AuditFinding:
    bound, event, runs = 0.0, "", 0
    for view in views:
        runs = max(runs, len(view.data))
        options = {
            "count": len(view.data),
            "delta": subject.claim.delta,
            "confidence": level,
            "choosing": _CHOOSING,
        }

        def sides(side: int, _: int, view: OutputView = view) -> object:
            return view.neighbour if side else view.data

        audit_result = audit_epsilon(sides, 0, 1, **options)  # type: ignore[arg-type]
        if audit_result.lower_bound >= bound:
            bound, event = audit_result.lower_bound, f"{view.name}: {audit_result.event}"
    return AuditFinding(
        name=subject.name,
        group=subject.group,
        claim=subject.claim,
        pair=subject.pair,
        bound=bound,
        event=event,
        runs=runs,
        tests=len(views),
        verdict=FAILED if problem else _verdict(bound, subject.claim.epsilon),
        problem=problem,
        about=dict(subject.about),
    )


def _verdict(bound: float, claim: float) -> str:
    if bound > claim:
        return EXCEEDS
    return HOLDS if bound >= claim / 4 else WEAK


def _saying(progress: Callable[[str], None] | None, words: str) -> Callable[[int], None]:
    return lambda done: progress(f"auditing {words}, {done} runs") if progress is not None else None
