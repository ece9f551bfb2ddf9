"""A process that writes until it is ended: ``python -m tests.adapters.hanging_writer URL
[inside]``.

With ``inside`` it stops itself in the middle of its first transaction, as a process does that is
swapped out or debugged there.
"""

from __future__ import annotations

import os
import signal
import sys

from ptkstore.metadata import Metadata
from ptkstore.metadata.access.audit import Decision
from ptkstore.metadata.errors import MetadataUnavailable


def main() -> None:
    url, *inside = sys.argv[1:]
    with Metadata.open(url) as metadata:
        print("ready", flush=True)
        number = 0
        while True:
            try:
                with metadata.write() as tx:
                    tx.events.add("written", "hanging", number)
                    tx.audit.add_all([Decision(number, "hanging", "write", "", "ALLOWED")] * 3)
                    if inside:
                        os.kill(os.getpid(), signal.SIGSTOP)
                number += 1
            except MetadataUnavailable as error:
                # Somebody else had the turn meanwhile; the transaction is gone.
                print(error.reason, flush=True)
                if inside:
                    return


if __name__ == "__main__":
    main()
