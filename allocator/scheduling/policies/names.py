"""The policies for single blocks, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allocator.scheduling.online.protocol import Policy
from allocator.scheduling.policies.dpack import Packing
from allocator.scheduling.policies.dpf import FairShare
from allocator.scheduling.policies.fcfs import FirstCome
from allocator.scheduling.policies.forecast import Forecast
from allocator.scheduling.policies.guarded import Guarded
from allocator.scheduling.policies.learned import Learned
from allocator.scheduling.policies.partial import Partial
from allocator.scheduling.policies.phi import Phi
from allocator.scheduling.policies.random import Random
from allocator.scheduling.policies.streaming import Streaming
from allocator.scheduling.policies.threshold import Threshold
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["DEFAULT", "POLICIES", "Maker"]

Maker = Callable[[Outlook, int], Policy]

POLICIES: Mapping[str, Maker] = {
    "fcfs": FirstCome,
    "random": Random,
    "streaming": Streaming,
    "threshold": Threshold,
    "partial": Partial,
    "phi": Phi,
    "learned": Learned,
    "guarded": Guarded,
    "dpf": FairShare,
    "dpack": Packing,
    "forecast": Forecast,
}
DEFAULT = "forecast"
