"""Metrics of what windows publish: versions, windows, those that fell short, and the age of the
newest version.
"""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.rpc.background.window_metrics import WindowMetrics
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec


def scraped(store: Store) -> dict[str, float]:
    registry = CollectorRegistry()
    parts = store.parts
    registry.register(WindowMetrics(parts.metadata, parts.specs, parts.public_ms))
    lines = generate_latest(registry).decode().splitlines()
    found = (re.fullmatch(r"(sage_\w+\{.*\}) (\S+)", line) for line in lines)
    return {one[1]: float(one[2]) for one in found if one}


def test_what_windows_publish_is_told_and_a_short_one_counts(tmp_path: Path) -> None:
    now = [FIRST_MS / 1000]
    with Store(tmp_path, workers=0, clock=lambda: now[0]) as store:
        store.create_stream(spec(policy=Policy(epsilon=1, delta=0)))
        for name, statistic, target in (("large", "mean", 0.05), ("small", "count", 0.02)):
            store.register(
                name, stream="rides", kind="statistics", config=config(statistic), target=target
            )
        assert scraped(store) == {
            'sage_states_published_total{stream="rides"}': 0,
            'sage_states_not_shown_total{stream="rides"}': 0,
            'sage_windows_total{stream="rides"}': 0,
            'sage_short_windows_total{stream="rides"}': 0,
        }
        for number, rows in enumerate((1500, 9000)):
            now[0] += 3600
            store.push("rides", day(number, rows), seq=number)
            store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
        now[0] += 90.5
        assert scraped(store) == {
            'sage_states_published_total{stream="rides"}': 3,
            'sage_states_not_shown_total{stream="rides"}': 0,
            'sage_windows_total{stream="rides"}': 2,
            'sage_short_windows_total{stream="rides"}': 1,
            'sage_state_age_minutes{ptk="large",stream="rides"}': 2,
            'sage_state_age_minutes{ptk="small",stream="rides"}': 2,
        }
        store.deregister("large")
        assert 'sage_state_age_minutes{ptk="large",stream="rides"}' not in scraped(store)


def test_a_scrape_does_not_fail_for_want_of_the_metadata(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        store.create_stream(spec())
        assert scraped(store)
    assert scraped(store) == {}
