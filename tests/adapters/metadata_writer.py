"""A process that writes: ``python -m tests.adapters.metadata_writer URL NAME COUNT``. Says each
number once it is durable.

Every transaction adds one event and one plan with the same number, so that a half transaction
shows.
"""

from __future__ import annotations

import sys

from ptkstore.metadata import Metadata


def write(metadata: Metadata, name: str, number: int) -> None:
    with metadata.write_results("known") as tx:
        tx.events.add("written", name, number)
        tx.plans.put("s", number, {"by": name}, "test")


def written(metadata: Metadata) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """The numbers each name wrote, by the events and by the plans."""
    events: dict[str, list[int]] = {}
    plans: dict[str, list[int]] = {}
    with metadata.read() as tx:
        for event in tx.events.after(0):
            events.setdefault(event.subject, []).append(event.body)
        for plan in tx.plans.list("s"):
            plans.setdefault(plan.body["by"], []).append(plan.window)
    return events, plans


def main() -> None:
    url, name, count = sys.argv[1:]
    with Metadata.open(url) as metadata:
        for number in range(int(count)):
            write(metadata, name, number)
            print(number, flush=True)


if __name__ == "__main__":
    main()
