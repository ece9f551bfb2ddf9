"""The policies for single blocks, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allocator.scheduling.online.protocol import BlockPolicy
from allocator.scheduling.policies.dpack import PackingPolicy
from allocator.scheduling.policies.dpf import FairSharePolicy
from allocator.scheduling.policies.fcfs import FirstComePolicy
from allocator.scheduling.policies.forecast import ForecastPolicy
from allocator.scheduling.policies.guarded import GuardedPolicy
from allocator.scheduling.policies.learned import LearnedPolicy
from allocator.scheduling.policies.partial import PartialPolicy
from allocator.scheduling.policies.phi import PhiPolicy
from allocator.scheduling.policies.random import RandomPolicy
from allocator.scheduling.policies.streaming import StreamingPolicy
from allocator.scheduling.policies.threshold import ThresholdPolicy
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["DEFAULT", "POLICIES", "Maker"]

Maker = Callable[[Outlook, int], BlockPolicy]

POLICIES: Mapping[str, Maker] = {
    "fcfs": FirstComePolicy,
    "random": RandomPolicy,
    "streaming": StreamingPolicy,
    "threshold": ThresholdPolicy,
    "partial": PartialPolicy,
    "phi": PhiPolicy,
    "learned": LearnedPolicy,
    "guarded": GuardedPolicy,
    "dpf": FairSharePolicy,
    "dpack": PackingPolicy,
    "forecast": ForecastPolicy,
}
DEFAULT = "forecast"
