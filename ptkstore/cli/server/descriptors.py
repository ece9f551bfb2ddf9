"""File descriptors for a process with many connections: each takes one, and so does every file that
is written.
"""

from __future__ import annotations

import resource

__all__ = ["allow_many_files"]

# More than a server of ours ever needs; some systems have no upper limit at all.
_MOST = 1 << 16


def allow_many_files() -> int:
    """Raise this process's limit of open files to what the system allows it, at most 65,536; the
    limit there is now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _MOST if hard == unlimited else min(_MOST, hard)
    if soft != unlimited and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
