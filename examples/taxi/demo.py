"""The demo: rides go in week after week, DP states come out, the rides are gone, and a new team is
better off.

Steps: declare the stream and its PTKs (one asks for too much and is refused), push each week in
batches, run the window, look at plan, budget, exposure and versions; at the end let the doctor
search the store for canaries that were planted among the rides, and compare a new team's models
with and without the PTKs. `run` tells whether all promises held.

The rides come from fixed seeds; the noise is real. Everything printed about the stream is DP or
public.
"""

from __future__ import annotations

import hashlib
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from queue import Empty, Queue

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.taxi.city import DAY_MS, FIRST_DAY_MS, City
from examples.taxi.downstream import ARMS, SMALL, Comparison, compare
from examples.taxi.report import Check, Story, WindowSeen, html
from examples.taxi.stream import HELPFUL, STREAM, TOO_AMBITIOUS, WINDOW_DAYS, plant, spec, wanted
from ptklib.privacy.amounts import show
from ptkstore import Store
from ptkstore.api.moments import iso
from ptkstore.api.views import Finding, Registration, StateView

__all__ = ["Clock", "Demo", "Options", "canary", "run"]

_RIDES_SEED = 1
_BATCH_ROWS = 5_000
_REPORT = "taxi.html"
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be chosen.

    ``rows`` is the number of rides in each window; ``seeds`` that of the new team's training sets.
    """

    rows: int = 60_000
    windows: int = 4
    report: Path = Path("artifacts")
    store: Path | None = None
    seeds: int = 20


@dataclass
class Demo:
    """A store, a city, and what was seen so far."""

    store: Store
    clock: Clock
    console: Console
    options: Options
    city: City = field(default_factory=City)
    canaries: list[bytes | str] = field(default_factory=list)
    heard: Queue[StateView] = field(default_factory=Queue)

    def declare(self) -> tuple[Registration, ...]:
        """The stream, then its PTKs one after the other: each is planned together with those before
        it.
        """
        self.store.create_stream(spec(self.options.rows))
        table = _table(
            "Who asks to be trained", "PTK", "asked error", "answer", "ε planned", "rides planned"
        )
        answers = []
        for one in wanted(self.options.rows):
            answer = self.store.register(**one.registration())
            answers.append(answer)
            planned = f"{answer.planned_samples:,}" if answer.planned_samples else ""
            table.add_row(
                one.name, f"{one.target:.1%}", answer.status, answer.planned_epsilon or "", planned
            )
            self.store.subscribe(one.name, self.heard.put)
        self.console.print(table)
        for answer in answers:
            if answer.status == "REJECTED":
                self.console.print(
                    f"[bold]{answer.name}[/bold] is refused: {escape(answer.reason)}"
                )
                if answer.nearest_target is not None:
                    self.console.print(
                        f"  nearest target that would fit: {answer.nearest_target:.1%}"
                    )
        return tuple(answers)

    def live_a_window(self, number: int) -> WindowSeen:
        """A week of rides in, day by day; the last day completes the window and runs its cycle."""
        rides = self._with_canary(number)
        day_of = (rides["pickup_time"].cast(pa.int64()).to_numpy() - self.clock.now_ms) // DAY_MS
        before, cycles = self.store.budget(STREAM), []
        for day in range(WINDOW_DAYS):
            start, stop = np.searchsorted(day_of, [day, day + 1])
            for place, first in enumerate(range(start, stop, _BATCH_ROWS)):
                batch = rides.slice(first, min(_BATCH_ROWS, stop - first))
                seq = (number * WINDOW_DAYS + day) * 1_000 + place
                self.store.push(STREAM, batch, producer="meters", seq=seq)
            before = self.store.budget(STREAM)
            self.clock.now_ms += DAY_MS
            # Seals the day that has ended.
            cycles += self.store.run(STREAM, until_ms=self.clock.now_ms)
        (cycle,) = cycles
        plan = self.store.plan(STREAM)
        assert plan is not None
        seen = WindowSeen(cycle, plan, before, self.store.budget(STREAM))
        self._show(number, seen)
        return seen

    def _with_canary(self, number: int) -> pa.Table:
        """The window's rides, one of which carries a note and a fare that no other ride has."""
        rides = self.city.rides(
            self.options.rows, first_day=number * WINDOW_DAYS, days=WINDOW_DAYS, seed=_RIDES_SEED
        )
        note, fare = canary(number)
        self.canaries += [note, struct.pack("<d", fare)]
        return plant(rides, note=note, fare=fare)

    def _show(self, number: int, seen: WindowSeen) -> None:
        said = f"Window {number + 1}: plan {seen.plan.status}, {seen.plan.total_samples or 0:,} of "
        said += f"{seen.plan.available_samples or 0:,} rides (DP) needed"
        table = _table(said, "PTK", "ε", "rides", "promised error", "outcome", "version")
        lines = {line.ptk: line for line in seen.plan.lines}
        for trained in seen.cycle.trained:
            line = lines.get(trained.ptk)
            samples, promised = (f"{line.samples:,}", f"{line.target:.1%}") if line else ("", "")
            version = "" if trained.version is None else f"v{trained.version}"
            table.add_row(
                trained.ptk, trained.epsilon or "", samples, promised, trained.outcome, version
            )
        self.console.print(table)
        self.console.print(_budget_words(seen, Fraction(self.store.stream(STREAM).count_epsilon)))
        told = self._told(sum(line.outcome == "PUBLISHED" for line in seen.cycle.trained))
        self.console.print(f"  subscribers were told of {told} new states\n")

    def _told(self, published: int) -> int:
        """How many announcements arrive; they come in threads of their own, soon after the
        cycle.
        """
        for number in range(published):
            try:
                self.heard.get(timeout=_PATIENCE_SECONDS)
            except Empty:
                return number
        return published

    def compare(self) -> Comparison:
        """The new team fetches the states by name and tries them on its own rides, which begin
        after the last window.
        """
        states = [self.store.get_state(name) for name in HELPFUL]
        first_day = self.options.windows * WINDOW_DAYS
        found = compare(states, city=self.city, first_day=first_day, seeds=self.options.seeds)
        table = _table(
            f"A new team's error (RMSLE) on {found.test_rides:,} held-out rides of its own, "
            f"{found.seeds} training sets, ± 95%",
            "data",
            "rides",
            *ARMS,
            "gain over no PTK",
        )
        for fraction in found.fractions:
            points = [found.point(arm, fraction) for arm in ARMS]
            mean, half = found.gain(fraction)
            errors = [f"{one.mean:.4f} ± {one.half_width:.4f}" for one in points]
            table.add_row(
                f"{100 * fraction:g}%", f"{points[0].rides:,}", *errors, f"{mean:+.1%} ± {half:.1%}"
            )
        self.console.print(table)
        return found


def run(options: Options, console: Console) -> int:
    """The whole show. 0: every promise held; 1: one did not (the report says which)."""
    started = time.monotonic()
    clock = Clock(FIRST_DAY_MS)
    with _folder(options.store) as path, Store(path, clock=clock) as store:
        demo = Demo(store, clock, console, options)
        registrations = demo.declare()
        windows = tuple(demo.live_a_window(number) for number in range(options.windows))
        findings = tuple(store.doctor(demo.canaries))
        comparison = demo.compare()
    checks = _checks(registrations, windows, findings, comparison, len(demo.canaries))
    story = Story(
        "Sage: what a taxi company learned, without its rides",
        registrations,
        tuple(one.target for one in wanted(options.rows)),
        windows,
        comparison,
        findings,
        checks,
        time.monotonic() - started,
    )
    for check in checks:
        mark = "[green]held  [/]" if check.held else "[bold red]FAILED[/]"
        console.print(f"{mark} {check.what}: {escape(check.detail)}")
    options.report.mkdir(parents=True, exist_ok=True)
    page = options.report / _REPORT
    page.write_text(html(story), encoding="utf-8")
    console.print(f"{story.seconds:.0f} seconds; the report is in {page}", soft_wrap=True)
    return 0 if all(check.held for check in checks) else 1


def canary(number: int) -> tuple[str, float]:
    """A note and a fare for one ride of a window, which are nowhere by chance: the fraction of the
    fare has 52 odd bits.
    """
    digest = hashlib.sha256(f"canary of window {number}".encode()).digest()
    return f"canary-{digest.hex()[:24]}", 64 + 64 * (int.from_bytes(digest[:8]) % 2**52) / 2**52


@dataclass
class Clock:
    """The time of the simulated city."""

    now_ms: int

    def __call__(self) -> float:
        """Seconds since 1970."""
        return self.now_ms / 1000


def _checks(
    registrations: tuple[Registration, ...],
    windows: tuple[WindowSeen, ...],
    findings: tuple[Finding, ...],
    comparison: Comparison,
    canaries: int,
) -> tuple[Check, ...]:
    refused = [one for one in registrations if one.status == "REJECTED"]
    nearest = refused[0].nearest_target if refused else None
    lines = [line for one in windows for line in one.cycle.trained]
    published = sum(line.outcome == "PUBLISHED" for line in lines)
    due = (len(registrations) - 1) * len(windows)
    errors = [one for one in findings if one.level == "ERROR"]
    oldest_ms = windows[-1].after.exposure.oldest_ms
    ended_ms = FIRST_DAY_MS + len(windows) * WINDOW_DAYS * DAY_MS
    small = [one for one in comparison.fractions if one <= SMALL]
    gains = ", ".join(
        "{:+.1%} ± {:.1%} at {:g}%".format(*comparison.gain(one), 100 * one) for one in small
    )
    return (
        Check(
            "only the PTK that asks for too much is refused, and is told what would fit",
            [one.name for one in refused] == [TOO_AMBITIOUS] and nearest is not None,
            f"{', '.join(one.name for one in refused) or 'none'} refused"
            + (f", nearest target {nearest:.1%}" if nearest is not None else ""),
        ),
        Check(
            "every other PTK has a new version after every window",
            published == due,
            f"{published} of {due} published",
        ),
        Check(
            "no raw ride is held after its window",
            oldest_ms is None or oldest_ms >= ended_ms,
            f"nothing before {_day(oldest_ms)} is held",
        ),
        Check(
            f"the doctor finds no error, and none of {canaries} canaries",
            not errors,
            "; ".join(f"{one.what}: {one.detail}" for one in errors)
            or f"{len(findings)} findings, no error",
        ),
        Check(
            "with little data, PTK features beat none",
            comparison.ptks_win_when_data_is_scarce,
            f"error lower by {gains}",
        ),
    )


def _budget_words(seen: WindowSeen, counts: Fraction) -> str:
    before, after = seen.before, seen.after
    expired = sum(block.status == "expired" for block in after.blocks)
    charges = [
        sum(
            (Fraction(line.epsilon) for line in seen.plan.lines if place in line.partitions),
            Fraction(0),
        )
        for place in range(len(seen.plan.partitions))
    ]
    charged = max(charges, default=Fraction(0))
    return (
        f"  raw data: before the cycle everything since {_day(before.exposure.oldest_ms)} was held "
        f"({before.exposure.blocks} blocks); now nothing before {_day(after.exposure.oldest_ms)} "
        "is, "
        f"{expired} blocks have expired\n"
        f"  budget: ({after.epsilon}, {after.delta})-DP for every single ride, {after.composition} "
        "composition; the plan "
        f"charged at most {show(charged)} to a ride, the counts {show(counts)}; the blocks take no "
        "more"
    )


def _day(ms: int | None) -> str:
    return "-" if ms is None else iso(ms).split("T")[0]


def _table(title: str, *heads: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for place, head in enumerate(heads):
        table.add_column(
            head, justify="left" if place == 0 or head in ("answer", "outcome") else "right"
        )
    return table


@contextmanager
def _folder(path: Path | None) -> Iterator[Path]:
    if path is not None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
