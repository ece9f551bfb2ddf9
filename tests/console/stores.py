"""A store with two windows behind it, one stream that is quiet, and PTKs of every fate."""

from __future__ import annotations

from ptkstore import Store
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec

__all__ = ["MARKUP", "lively"]

# What would do something if anything were not escaped.
MARKUP = "<script>alert(1)</script>"

_GROUPS = {
    "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
    "clusters": 2,
}


def lively(store: Store) -> None:
    store.create_stream(spec(n_max=20_000))
    store.create_stream(spec(name="quiet"))
    for name, statistic, target in (
        ("hour-speed", "mean", 0.15),
        ("hour-counts", "count", 0.12),
        ("hour-spread", "mean", 0.22),
        ("hour-fast", "mean", 0.3),
        ("leaving", "count", 0.25),
    ):
        store.register(
            name, stream="rides", kind="statistics", config=config(statistic), target=target
        )
    store.push("rides", day(0, 6000))
    store.run("rides", until_ms=FIRST_MS + DAY_MS)
    store.update_target("hour-fast", 0.2)
    store.deregister("leaving")
    store.register("joining", stream="rides", kind="statistics", config=config(), target=0.18)
    store.push("rides", day(1, 6000))
    store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    store.register("too-sharp", stream="rides", kind="statistics", config=config(), target=0.0001)
    store.register("groups", stream="rides", kind="clusters", config=_GROUPS, target=0.5)
    store.push("rides", day(2, 3000))
    with store.parts.metadata.write() as tx:
        ptk = tx.ptks.named("hour-speed").id
        for port, status in ((7401, "DEAD"), (7402, "LATE")):
            one = tx.subscriptions.add(ptk, f"127.0.0.1:{port}")
            tx.notifications.set_mark(one.id, 2)
            tx.notifications.put(
                one.id, 2, attempts=9, status=status, reason="UNAVAILABLE", due_ms=4_000_000_000_000
            )
