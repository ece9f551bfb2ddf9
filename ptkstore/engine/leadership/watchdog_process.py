"""What a watchdog does, in a process of its own: ``python -I -S watchdog_process.py PID SECONDS``,
with signs of life of its parent ``PID`` on standard input.

It imports next to nothing, so that it starts at once and stays small. See `watchdog` for why it is
there.
"""

from __future__ import annotations

import os
import select
import signal
import sys

__all__: list[str] = []

_TOLD = '{"event": "killed: it stood still as the leader", "level": "error", "pid": %d, "seconds": %g}\n'


def main() -> None:
    """Wait for signs of life, and end who gives none."""
    pid, seconds = int(sys.argv[1]), float(sys.argv[2])
    # After such a signal the leader finishes its work, and is guarded meanwhile.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        readable, _, _ = select.select([0], [], [], seconds)
        if readable and os.read(0, 4096):
            continue
        # At the end of its input the leader has ended by itself or leads no more.
        if not readable and os.getppid() == pid:
            os.write(2, (_TOLD % (pid, seconds)).encode())
            os.kill(pid, signal.SIGKILL)
        return


if __name__ == "__main__":
    main()
