"""The policies for windows of blocks, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allocator.scheduling.windows.fcfs import FirstCome
from allocator.scheduling.windows.replay import WindowPolicy
from allocator.scheduling.windows.rolling import Rolling
from allocator.scheduling.windows.unlocking import FairShare, Packing

__all__ = ["DEFAULT", "POLICIES"]

POLICIES: Mapping[str, Callable[[], WindowPolicy]] = {
    "fcfs": FirstCome,
    "dpf": FairShare,
    "dpack": Packing,
    "rolling": Rolling,
}
DEFAULT = "rolling"
