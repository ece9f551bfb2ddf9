"""`check_ptk`: does a PTK keep the contract of `ptklib.ptk`? For authors of PTKs; ours pass it too.

::

    def test_my_ptk() -> None:
        check_ptk(MyPtk(column="speed", lower=0, upper=120))

Checks are chosen by the tags of the PTK (`list_checks`). All of them run (the audits only if the
others hold), and `PtkCheckFailed` lists every one that did not hold, by name, with what was
expected and what was found. Call it inside a pytest test: one check (the noise comes from the given
source) needs planted noise and is skipped elsewhere, with the reason in the report.

Checks may be left out by name (``leave_out``), say the audits while you work on the loss. The
report has a line for each of them, and nothing is checked by it.

Data is invented by the PTK (`Ptk.example`) unless some is given; it must be public, for reports
quote it. Passing is no proof of privacy: it means that none of the usual mistakes was found.

Reasons: DATA_NEEDED (no data, and the PTK invents none), DATA_TOO_SMALL, CHECK_UNKNOWN (a name in
``leave_out`` is no check that applies).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from ptklib.errors import InvalidInput
from ptklib.ptk import Batches, Ptk, batches_of
from ptklib.testing.ptk_cases import Case, Check, CheckFailed, CheckSkipped
from ptklib.testing.ptk_contract_checks import CONTRACT_CHECKS
from ptklib.testing.ptk_privacy_checks import PRIVACY_CHECKS
from ptklib.testing.ptk_record_checks import RECORD_CHECKS

__all__ = [
    "MIN_ROWS",
    "CheckOutcome",
    "CheckReport",
    "PtkCheckFailed",
    "check_ptk",
    "list_checks",
    "run_checks",
]

MIN_ROWS = 60
_EXAMPLE_ROWS = 400
_LATER = "it trains thousands of times: first repair what failed"
_LEFT_OUT = "left out as asked"


@dataclass(frozen=True)
class CheckOutcome:
    """What one check found: nothing wrong, a problem, or a reason why it could not run."""

    name: str
    problem: str | None = None
    skipped: str | None = None

    def __str__(self) -> str:
        """One line."""
        if self.problem is not None:
            return f"FAILED  {self.name}: {self.problem}"
        return (
            f"skipped {self.name}: {self.skipped}"
            if self.skipped is not None
            else f"passed  {self.name}"
        )


@dataclass(frozen=True)
class CheckReport:
    """The outcome of every check that applies to the PTK."""

    kind: str
    outcomes: tuple[CheckOutcome, ...]

    @property
    def failed(self) -> tuple[CheckOutcome, ...]:
        """Those that found a problem."""
        return tuple(outcome for outcome in self.outcomes if outcome.problem is not None)

    def __str__(self) -> str:
        """A line for each check."""
        return "\n".join(
            [
                f"{self.kind}: {len(self.failed)} of {len(self.outcomes)} checks failed",
                *map(str, self.outcomes),
            ]
        )


class PtkCheckFailed(AssertionError):
    """The PTK does not keep the contract; ``report`` has the details."""

    def __init__(self, report: CheckReport) -> None:
        """List the problems."""
        super().__init__(
            f"{report.kind}: {len(report.failed)} of {len(report.outcomes)} checks failed\n"
            + "\n".join(f"  {outcome}" for outcome in report.failed)
        )
        self.report = report


def list_checks(ptk: Ptk) -> tuple[str, ...]:
    """The names of the checks that apply to this PTK, in the order in which they run."""
    return tuple(check.name for check in _chosen(ptk))


def check_ptk(
    ptk: Ptk, *, data: Batches | pa.Table | None = None, leave_out: Collection[str] = ()
) -> CheckReport:
    """Run all checks that apply but those of ``leave_out``; `PtkCheckFailed` if any does not hold.

    Takes some seconds: the audits train often.
    """
    return run_checks(ptk, (), data=data, leave_out=leave_out)


def run_checks(
    ptk: Ptk,
    more: tuple[Check, ...],
    *,
    data: Batches | pa.Table | None = None,
    leave_out: Collection[str] = (),
) -> CheckReport:
    """`check_ptk` with the checks of what is more than a PTK."""
    checks = (*_chosen(ptk), *(check for check in more if check.applies(ptk)))
    known = [check.name for check in checks]
    if unknown := sorted(set(leave_out) - set(known)):
        raise InvalidInput(
            "CHECK_UNKNOWN",
            f"leave_out names {', '.join(unknown)}: the checks of this PTK are {', '.join(known)}",
        )
    if data is None:
        example = ptk.example(_EXAMPLE_ROWS)
        if example is None:
            raise InvalidInput(
                "DATA_NEEDED", "the PTK invents no data (Ptk.example): pass some as data="
            )
        table = pa.Table.from_batches([example])
    else:
        table = pa.Table.from_batches(list(batches_of(data)))
    if table.num_rows < MIN_ROWS:
        raise InvalidInput(
            "DATA_TOO_SMALL", f"data must have at least {MIN_ROWS} records, got {table.num_rows}"
        )
    case = Case(ptk, table)
    outcomes: list[CheckOutcome] = []
    for check in sorted(checks, key=lambda chosen: chosen.slow):
        wrong = any(outcome.problem is not None for outcome in outcomes)
        if check.name in leave_out:
            outcomes.append(CheckOutcome(check.name, skipped=_LEFT_OUT))
        elif check.slow and wrong:
            outcomes.append(CheckOutcome(check.name, skipped=_LATER))
        else:
            outcomes.append(_outcome(check, case))
    report = CheckReport(ptk.kind, tuple(outcomes))
    if report.failed:
        raise PtkCheckFailed(report)
    return report


def _chosen(ptk: Ptk) -> tuple[Check, ...]:
    return tuple(
        check for check in (*CONTRACT_CHECKS, *RECORD_CHECKS, *PRIVACY_CHECKS) if check.applies(ptk)
    )


def _outcome(check: Check, case: Case) -> CheckOutcome:
    try:
        check.run(case)
    except CheckFailed as problem:
        return CheckOutcome(check.name, problem=str(problem))
    except CheckSkipped as reason:
        return CheckOutcome(check.name, skipped=str(reason))
    except Exception as error:
        # A PTK under check may raise anything; the other checks still have something to say.
        return CheckOutcome(check.name, problem=f"raised {type(error).__name__}: {error}")
    return CheckOutcome(check.name)
