"""Metrics of what windows publish, read from the metadata when Prometheus asks.

===============================  ===================================================================
sage_states_published{stream}    versions that are published, over all time
sage_states_not_shown{stream}    those of them that were not shown to keep their target
sage_windows{stream}             windows that ended
sage_short_windows{stream}       those of them that published less than they should (`ptkstore.engine.window.shortfall`)
sage_state_age_minutes           whole minutes since the newest version, by stream and PTK; none before the first
===============================  ===================================================================

Versions, their times (which are public to the minute) and the ends of windows are results: nothing
here depends on records beyond what was charged. With very many PTKs the oldest versions are told.
What cannot be read now is left out: a scrape never fails for want of the metadata, and never holds
anybody up, for it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ptklib.errors import SageError
from ptkstore.engine.specs import Specs
from ptkstore.engine.window.health import published
from ptkstore.metadata import Metadata

__all__ = ["MOST_AGES", "WindowMetrics"]

MOST_AGES = 1000

Family = CounterMetricFamily | GaugeMetricFamily


class WindowMetrics(Collector):
    """Register it with a registry."""

    def __init__(self, metadata: Metadata, specs: Specs, public_ms: Callable[[], int]) -> None:
        """``public_ms`` is the time to the minute."""
        self._metadata = metadata
        self._specs = specs
        self._public_ms = public_ms

    def describe(self) -> list[Family]:
        """The families without values, so that registering reads nothing."""
        return _families()

    def collect(self) -> Iterator[Family]:
        """What is published now."""
        states, hidden, windows, short, ages = families = _families()
        oldest: dict[tuple[str, str], int] = {}
        try:
            streams = published(self._metadata, sorted(self._specs), self._public_ms())
        except SageError:
            return
        for name, (counts, known) in streams.items():
            states.add_metric([name], counts.published)
            hidden.add_metric([name], counts.not_shown)
            windows.add_metric([name], counts.finished)
            short.add_metric([name], counts.short)
            oldest |= {(name, ptk): age for ptk, age in known.items() if age is not None}
        for labels, age in sorted(oldest.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_AGES]:
            ages.add_metric(labels, age)
        yield from families


def _families() -> list[Family]:
    return [
        CounterMetricFamily(
            "sage_states_published", "Versions of PTKs that are published.", labels=["stream"]
        ),
        CounterMetricFamily(
            "sage_states_not_shown",
            "Versions of PTKs that were not shown to keep their target.",
            labels=["stream"],
        ),
        CounterMetricFamily("sage_windows", "Windows that ended.", labels=["stream"]),
        CounterMetricFamily(
            "sage_short_windows", "Windows that published less than they should.", labels=["stream"]
        ),
        GaugeMetricFamily(
            "sage_state_age_minutes",
            "Minutes since the newest version of a PTK.",
            labels=["stream", "ptk"],
        ),
    ]
