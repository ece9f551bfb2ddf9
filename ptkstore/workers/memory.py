"""The memory of worker processes: how much one may take for its work, and the limit that holds it
to that.

``memory_bytes`` is what a worker may take beyond what it holds when it is idle. The engine sets
memory aside from planned numbers before it opens anything (`ptkstore.engine.room.memory`) and asks
of a worker only what fits; the limit is for PTKs that hold more than they declared: such a one
fails by itself and takes no other process with it.

The system counts memory that a process has asked for (RLIMIT_DATA), not what it has touched. So a
worker allocates with the plain allocator, in one arena, and computes in one thread: there is one
worker for each core.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["ENVIRONMENT", "default_bytes", "hold_to"]

# Allocators that reserve gigabytes ahead, and buffers for every core, would be counted as memory in
# use.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
# Of a process that is idle; and the least that is worth trying to work with.
_IDLE_BYTES, _LEAST_BYTES = 256 << 20, 256 << 20
_CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def default_bytes(workers: int) -> int:
    """Three quarters of the memory of the machine, or of its container, in equal parts for the
    workers and the engine.
    """
    whole = min([_physical_bytes(), *(_limit_in(Path(file)) for file in _CGROUP_FILES)])
    return max(_LEAST_BYTES, whole * 3 // 4 // (workers + 1) - _IDLE_BYTES)


def hold_to(memory_bytes: int) -> None:
    """Limit this process to so much more memory than it has now.

    Where the system cannot (not Linux), do nothing.
    """
    held = _data_bytes()
    if held is None:
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = held + memory_bytes
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data_bytes() -> int | None:
    """What the system counts against RLIMIT_DATA."""
    if not sys.platform.startswith("linux"):
        return None
    with open("/proc/self/status", encoding="ascii") as lines:
        data_line = next((line for line in lines if line.startswith("VmData:")), None)
    return None if data_line is None else int(data_line.split()[1]) * 1024


def _physical_bytes() -> int:
    return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


def _limit_in(path: Path) -> int:
    """The limit that a file of a control group tells, or more than any machine has."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return sys.maxsize
    return int(text) if text.isdigit() else sys.maxsize
