"""The error that states of best effort tell: of closed forms before they are trained, from public
numbers; of all others by a test, as far as `estimating` gives it one.

*Closed forms.* At the epsilon and the samples of its plan, what is read of a state stays within the
error of its closed form with 95%: the profile of a target, read backwards (`profiler.inverting`). A
state that continues earlier ones is an average of them, weighted by records; it tells the largest of their
errors, as a state with a target keeps the target that each of them keeps. One of 1 or more is told
as 1: losses are at most that.

Nothing here reads data, and nothing costs privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from profiler.inverting import CONFIDENCE, closed_form_error, has_closed_form
from ptklib.validators.interval import LossRange
from ptkstore.api.over import Over
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import StateError
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import ptk_of, records_per_unit
from ptkstore.engine.profiles.constants import known_constant
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.metadata.database.store import Transaction

__all__ = ["CLOSED_FORM", "TEST", "estimated", "told_error", "with_errors"]

CLOSED_FORM, TEST = "closed form", "test"


def with_errors(parts: Parts, spec: StreamSpec, assigned: Sequence[Assigned]) -> list[Assigned]:
    """The PTKs of a plan, with the errors that follow from public numbers."""
    units = records_per_unit(spec)
    with parts.metadata.read() as tx:
        return [_with_error(tx, planned, units) for planned in assigned]


def estimated(
    parts: Parts, spec: StreamSpec, state: Assigned, measured: LossRange
) -> dict[str, Any]:
    """What a test told of the mean loss of a state, beside the loss of the best constant where that
    is known.
    """
    told = {
        "source": TEST,
        "at_most": measured.high,
        "at_least": measured.low,
        "confidence": CONFIDENCE,
    }
    if measured.estimate is not None:
        told["estimate"] = measured.estimate
    with parts.metadata.read() as tx:
        constant = known_constant(tx, spec.name, state.kind, state.config)
    return told if constant is None else told | {"constant": constant}


def told_error(error: Mapping[str, Any] | None) -> str:
    """The error of a state in words; empty for none."""
    return "" if error is None else StateError(**error).text


def _with_error(tx: Transaction, planned: Assigned, units: int) -> Assigned:
    ptk = ptk_of(planned.kind, planned.config)
    if planned.target is not None or not has_closed_form(
        ptk, planned.epsilon, planned.delta, units
    ):
        return planned
    largest = max(
        _error(planned, planned.epsilon, planned.samples, units),
        *_earlier(tx, planned, units),
        0.0,
    )
    error = {"source": CLOSED_FORM, "at_most": largest, "confidence": CONFIDENCE}
    return replace(planned, error=error)


def _earlier(tx: Transaction, planned: Assigned, units: int) -> list[float]:
    """The errors of the states that the new one is put together with."""
    if planned.previous is None:
        return []
    if Over.of(planned.over).word != "rolling":
        manifest = tx.states.last([planned.ptk])[planned.ptk].manifest
        error, target = manifest.get("error"), manifest["target"]
        return [error["at_most"] if error is not None else 1.0 if target is None else target]
    windows = {window for window, _ in planned.parts}
    # One version for each part, the newest of all.
    rows = tx.states.list(planned.ptk, after=planned.version - 2 - len(windows))
    return [
        _error(planned, row.manifest["epsilon"], row.manifest["samples"] or 0, units)
        for row in rows
        if str(row.window) in windows
    ]


def _error(planned: Assigned, epsilon: str, samples: int, units: int) -> float:
    """That of one training of this PTK."""
    ptk = ptk_of(planned.kind, planned.config)
    error = closed_form_error(ptk, epsilon, samples, planned.delta, units)
    return 1.0 if error is None else float(error)
