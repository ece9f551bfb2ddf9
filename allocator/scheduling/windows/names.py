"""The policies for windows of blocks, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allocator.scheduling.windows.fcfs import FirstComeWindows
from allocator.scheduling.windows.replay import WindowPolicy
from allocator.scheduling.windows.rolling import RollingWindows
from allocator.scheduling.windows.unlocking import FairShareWindows, PackingWindows

__all__ = ["DEFAULT", "POLICIES"]

POLICIES: Mapping[str, Callable[[], WindowPolicy]] = {
    "fcfs": FirstComeWindows,
    "dpf": FairShareWindows,
    "dpack": PackingWindows,
    "rolling": RollingWindows,
}
DEFAULT = "rolling"
