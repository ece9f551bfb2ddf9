"""Solve an instance with a policy, or with foresight; bound the answer either way.

Policies see the instance as it comes: queries or tasks in order, blocks when they arrive. Only
`optimal` looks ahead. The bound is on what foresight could have reached, whatever the policy.

Reasons: SCHEDULE_POLICY, SCHEDULE_LIMIT.
"""

from __future__ import annotations

import math
from statistics import median

from allocator.effort import Clock, Effort
from allocator.scheduling.answer import ScheduleAnswer
from allocator.scheduling.offline.optimum import bounded, optimum
from allocator.scheduling.online.replay import replay
from allocator.scheduling.policies.names import DEFAULT, POLICIES
from allocator.scheduling.problem.singles import Singles
from allocator.scheduling.windows import names
from allocator.scheduling.windows import optimum as windows
from allocator.scheduling.windows.problem import Windows
from allocator.scheduling.windows.replay import replay as replay_windows
from ptklib.errors import InvalidInput

__all__ = ["ALL_POLICIES", "MOST_SECONDS", "read", "solve"]

OPTIMAL = "optimal"
_DEFAULT = "default"
ALL_POLICIES = (_DEFAULT, *sorted({*POLICIES, *names.POLICIES, OPTIMAL}))
MOST_SECONDS = 86_400.0
# Seconds for the optimum, and for a bound, where none are asked for: as much as nearly all sizes need.
_SECONDS = 60.0
_STEPS = 1e18


def read(body: object) -> Singles | Windows:
    """The instance in a JSON form: windows where it has tasks."""
    if isinstance(body, dict) and "tasks" in body:
        return Windows.from_json(body)
    return Singles.from_json(body)


def solve(
    problem: Singles | Windows,
    *,
    policy: str | None = None,
    clock: Clock,
    time_limit_seconds: float | None = None,
    seed: int = 0,
) -> ScheduleAnswer:
    """The answer. ``time_limit_seconds`` is for the optimum and the bound; the decisions of a
    policy take the time they take.
    """
    limit = _limit(time_limit_seconds)
    name = _named(problem, policy)
    begun = clock()
    if isinstance(problem, Windows):
        return _windows(problem, name, clock, begun, limit)
    return _singles(problem, name, clock, begun, limit, seed)


def _singles(
    problem: Singles, name: str, clock: Clock, begun: float, limit: float, seed: int
) -> ScheduleAnswer:
    requests = max(1, len(problem.query_ids))
    most = 0
    if name == OPTIMAL:
        best, most = optimum(problem, Effort.clocked(_STEPS, clock, limit))
        pairs: tuple[tuple[int, int], ...] = tuple(best.pairs())
        each = (clock() - begun) / requests
    else:
        done = replay(problem, POLICIES[name](problem.outlook, seed), clock=clock)
        pairs, each = done.pairs, median(done.seconds) if done.seconds else 0.0
    value = sum(int(problem.significance[block, query]) for block, query in pairs)
    if name != OPTIMAL:
        left = max(1.0, limit - (clock() - begun))
        most = bounded(problem, Effort.clocked(_STEPS, clock, left), reached=value)
    return ScheduleAnswer(
        policy=name,
        value=value,
        upper_bound=max(most, value) if name == OPTIMAL else most,
        assignment=tuple(
            (problem.block_ids[block], problem.query_ids[query]) for block, query in pairs
        ),
        seconds=clock() - begun,
        seconds_per_decision=each,
    )


def _windows(
    problem: Windows, name: str, clock: Clock, begun: float, limit: float
) -> ScheduleAnswer:
    if name == OPTIMAL:
        granted, most = windows.optimum(problem, Effort.clocked(_STEPS, clock, limit))
        each = (clock() - begun) / max(1, len(problem.task_ids))
    else:
        granted, seconds = replay_windows(problem, names.POLICIES[name](), clock=clock)
        each = median(seconds) if seconds else 0.0
        left = max(1.0, limit - (clock() - begun))
        most = windows.bounded(problem, Effort.clocked(_STEPS, clock, left))
    return ScheduleAnswer(
        policy=name,
        value=sum(problem.value[list(granted)].tolist()),
        upper_bound=most,
        assignment=tuple(problem.task_ids[task] for task in granted),
        seconds=clock() - begun,
        seconds_per_decision=each,
    )


def _limit(seconds: float | None) -> float:
    if seconds is None:
        return _SECONDS
    if not (math.isfinite(seconds) and 0 < seconds <= MOST_SECONDS):
        raise InvalidInput(
            "SCHEDULE_LIMIT",
            f"the time limit must be above 0 and at most {MOST_SECONDS:g} seconds, got {seconds:g}",
        )
    return seconds


def _named(problem: Singles | Windows, policy: str | None) -> str:
    known = names.POLICIES if isinstance(problem, Windows) else POLICIES
    default = names.DEFAULT if isinstance(problem, Windows) else DEFAULT
    if policy in (None, _DEFAULT):
        return default
    if policy == OPTIMAL or policy in known:
        return policy
    form = "windows of blocks" if isinstance(problem, Windows) else "single blocks"
    raise InvalidInput(
        "SCHEDULE_POLICY",
        f"the policy for {form} must be one of {', '.join([_DEFAULT, *sorted(known), OPTIMAL])}, got {policy!r:.60}",
    )
