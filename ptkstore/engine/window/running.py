"""Run windows: what is due is sealed, interrupted windows are finished, complete ones are run, one
at a time. Reasons: STREAM_UNKNOWN, CLOCK_IMPLAUSIBLE, and those of the cycle.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ptkstore import tracing
from ptkstore.api.views import CycleView
from ptkstore.engine.budgets.charges import index_charges
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import AnswerEffort
from ptkstore.engine.plans.refining import refine
from ptkstore.engine.window.counting import arrived_until, seal_due
from ptkstore.engine.window.cycle import Cycle

__all__ = ["Progress", "due_windows", "run_due", "run_window", "unheard"]

Progress = Callable[[str], None]
# For each answer that was not settled when it was given, before windows are run. A server works on
# them longer, between times.
_REFINED = AnswerEffort(1e10, 10.0, final=True, clock=time.thread_time)


def unheard(_text: str) -> None:
    """Progress that nobody asked for."""


def run_due(
    parts: Parts, stream: str | None, *, until_ms: int | None, progress: Progress = unheard
) -> list[CycleView]:
    """Seal what is due, finish interrupted cycles, and run every complete window of a stream, or of
    all; one report each.
    """
    names = [parts.specs.named(stream).name] if stream is not None else sorted(parts.specs)
    for name in names:
        refine(parts, name, work=_REFINED)
    due = ((name, window) for name in names for window in due_windows(parts, name, until_ms))
    with parts.cycling:
        return [_run(parts, name, window, progress) for name, window in due]


def due_windows(parts: Parts, stream: str, until_ms: int | None) -> list[int]:
    """Seal what is due, and name the windows that are complete and not done, oldest first.

    ``until_ms`` says that all data up to there has arrived; without it the clock does.
    """
    spec = parts.specs.named(stream)
    return seal_due(parts, stream, arrived_until(parts, spec, until_ms))


def run_window(
    parts: Parts, stream: str, window: int, *, progress: Progress = unheard
) -> CycleView:
    """Run or finish one window that is due; one that is done changes nothing."""
    name = parts.specs.named(stream).name
    with parts.cycling:
        return _run(parts, name, window, progress)


def _run(parts: Parts, stream: str, window: int, progress: Progress) -> CycleView:
    with tracing.window(parts.observers, stream, window):
        view = Cycle(parts, stream, window, progress).run()
    # Now, and not when somebody waits for a page.
    index_charges(parts)
    return view
