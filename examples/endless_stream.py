"""A stream that never runs out of privacy budget, live in the terminal.

Every simulated day brings a block of synthetic taxi rides. Five pipelines charge the blocks before
they read them: daily statistics, a weekly forest, embeddings every few days, and an analyst who
keeps asking for more. Each block carries at most (epsilon, delta) = (1, 1e-6) and retires when it
is used up or leaves the window; new days bring fresh budget, so the pipelines never stop. The same
queries on one budget for the whole stream would end within days; the last line says when.

Run it with ``make demo`` or ``python -m examples.endless_stream [--days N] [--fast]``.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from ptklib.errors import BudgetExceeded
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import ApproxCost, Cost, PureCost, SampledGaussianCost
from ptklib.privacy.mechanisms.release import CountRelease, GaussianRelease, LaplaceRelease
from ptkstore.ledger import Ledger

STREAM = "rides"
WINDOW_DAYS = 14
USED_UP_BELOW = Fraction(4, 100)
SHOWN_BLOCKS = 16
FIRST_DAY = datetime.date(2026, 1, 1)


@dataclass
class Pipeline:
    """Somebody who charges the stream: every so many days, the newest blocks that still have
    room.
    """

    name: str
    every_days: int
    blocks: int
    cost: Cost
    greedy: bool = False
    runs: int = 0
    refused: int = 0
    last: str = ""


@dataclass
class Town:
    """The simulated city: rides by hour for each day. Raw data; only mechanisms see it."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def rides_by_hour(self, day: int) -> NDArray[np.int64]:
        """Rush hours, quiet nights, busy weekends."""
        hours = np.arange(24)
        shape = 0.4 + np.exp(-((hours - 8.5) ** 2) / 6) + 1.2 * np.exp(-((hours - 18) ** 2) / 10)
        weekend = 1.25 if (FIRST_DAY + datetime.timedelta(day)).weekday() >= 5 else 1.0
        return self.rng.poisson(shape * 2500 * weekend).astype(np.int64)


@dataclass
class Demo:
    """The state of the show."""

    ledger: Ledger
    town: Town = field(default_factory=Town)
    day: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    rush_hour: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    ended_on: int | None = None
    pipelines: list[Pipeline] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open the stream and, beside it, the book that one budget for everything would need."""
        self.policy = Policy(epsilon=1, delta="1e-6")
        self.ledger.create_stream(STREAM, self.policy)
        self.one_budget = self.policy.filter()
        self.full_left = self.one_budget.left([0] * self.one_budget.width)
        self.one_loss = np.zeros((1, self.one_budget.width), dtype=np.int64)
        self.count = CountRelease(epsilon="0.02")
        self.hourly = LaplaceRelease(epsilon="0.1", sensitivity=1)
        self.zones = GaussianRelease(sigma=40, sensitivity=1)
        self.pipelines = [
            Pipeline("hour-speed statistics", 1, 1, self.hourly.cost),
            Pipeline("zone counts", 1, 3, self.zones.cost),
            Pipeline("duration forest", 7, 7, ApproxCost(epsilon="0.15", delta="1e-9")),
            Pipeline(
                "ride embeddings", 4, 10, SampledGaussianCost(rate="0.01", sigma=2, steps=500)
            ),
            Pipeline("curious analyst", 1, 5, PureCost(epsilon="0.01"), greedy=True),
        ]

    def live_a_day(self) -> None:
        """A new block, everybody's charges, retirements."""
        block = (FIRST_DAY + datetime.timedelta(self.day)).isoformat()
        self.ledger.add_blocks(STREAM, [block])
        rides = self.town.rides_by_hour(self.day)
        self._charge([block], self.count.cost)
        self.sizes[block] = self.count.release(int(rides.sum())).value
        for pipeline in self.pipelines:
            if self.day % pipeline.every_days == 0:
                self._run(pipeline, rides)
        self._retire()
        self.day += 1

    def _run(self, pipeline: Pipeline, rides: NDArray[np.int64]) -> None:
        if pipeline.greedy:
            # Insists on the newest blocks and doubles the price every day, until the ledger says
            # no.
            assert isinstance(pipeline.cost, PureCost)
            blocks = self.ledger.blocks(STREAM, retired=False)[-pipeline.blocks :]
            pipeline.cost = PureCost(epsilon=pipeline.cost.stated_epsilon * 2)
        else:
            blocks = self.ledger.affordable(STREAM, pipeline.cost)[-pipeline.blocks :]
        try:
            if not blocks:
                self._refuse(pipeline, "no block has room")
                return
            self._charge(blocks, pipeline.cost)
        except BudgetExceeded as refusal:
            self._refuse(pipeline, refusal.reason)
            if pipeline.greedy:
                pipeline.cost = PureCost(epsilon="0.01")
            return
        pipeline.runs += 1
        pipeline.last = f"on {len(blocks)} block(s)"
        if pipeline.cost == self.hourly.cost:
            # The charge is spent: now the mechanism may see the day, and its answer is DP.
            self.rush_hour = f"{int(np.argmax(self.hourly.release(rides).values)):02d}:00"

    def _refuse(self, pipeline: Pipeline, reason: str) -> None:
        pipeline.refused += 1
        pipeline.last = reason
        self.counts["refusals"] += 1

    def _charge(self, blocks: list[str], cost: Cost) -> None:
        demand = np.array(self.one_budget.demand(cost), dtype=np.int64)
        if self.ended_on is None:
            if bool(self.one_budget.admits(self.one_loss, demand).all()):
                self.one_loss += demand
            else:
                self.ended_on = self.day + 1
        self.ledger.charge(STREAM, [Slice(tuple(blocks))], cost)
        self.counts["charges"] += 1
        self.counts["charged blocks"] += len(blocks)

    def _retire(self) -> None:
        for block in self.ledger.blocks(STREAM, retired=False):
            age = (
                FIRST_DAY + datetime.timedelta(self.day) - datetime.date.fromisoformat(block)
            ).days
            left = self.ledger.left(STREAM, [block])
            self.used[block] = 1 - float(left / self.full_left)
            if age >= WINDOW_DAYS:
                self.ledger.retire(STREAM, [block], why="left the window")
            elif left < USED_UP_BELOW:
                self.ledger.retire(STREAM, [block], why="used up")
            else:
                continue
            self.counts["retired"] += 1

    def picture(self) -> Group:
        """The tables, as they are now."""
        blocks = Table(
            title=f"day {self.day}: blocks of stream '{STREAM}', each promised (1, 1e-6)-DP",
            expand=False,
        )
        for heading in ("block", "rides (DP)", "budget used", "left for one more", "state"):
            blocks.add_column(
                heading, justify="right" if "(" in heading or "left" in heading else "left"
            )
        for name in self.ledger.blocks(STREAM)[-SHOWN_BLOCKS:]:
            view = self.ledger.block(STREAM, name)
            used = self.used[name]
            bar = "█" * round(used * 24)
            colour = "red" if view.retired else "yellow" if used > 0.6 else "green"
            state = view.retired or "alive"
            left = "-" if view.retired else f"{float(view.left):.3f}"
            blocks.add_row(
                name, f"{self.sizes[name]:,}", f"[{colour}]{bar:<24}[/] {used:4.0%}", left, state
            )
        people = Table(title="who charges", expand=False)
        for heading in ("pipeline", "price now", "runs", "refused", "last"):
            people.add_column(
                heading, justify="right" if heading in ("runs", "refused") else "left"
            )
        for one in self.pipelines:
            people.add_row(one.name, str(one.cost), str(one.runs), str(one.refused), one.last)
        return Group(blocks, people, self.totals())

    def totals(self) -> str:
        """One line that says it all."""
        ended = f"ended on day {self.ended_on}" if self.ended_on else "still running"
        return (
            f"{self.day} days, {self.counts['charges']} charges on {self.counts['charged blocks']} "
            "blocks, "
            f"{self.counts['refusals']} refusals, {self.counts['retired']} blocks retired, busiest "
            f"hour (DP) {self.rush_hour}; "
            f"one budget for the whole stream: {ended}"
        )


def main() -> int:
    """Run the show; it ends by itself."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--days", type=int, default=45, help="how many days to simulate (default 45)"
    )
    parser.add_argument("--fast", action="store_true", help="do not pause between days")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with Ledger.open(path) as ledger:
            demo = Demo(ledger)
            _show(demo, arguments.days, console, pause_seconds=0 if arguments.fast else 0.3)
            digest = ledger.digest()
        with Ledger.open(path) as ledger:
            found = ledger.verify()
            same = "the same state" if found.digest == digest else "A DIFFERENT STATE"
            console.print(
                f"The ledger was closed and read again: {found.entries} entries in {found.commits} "
                "commits, chain intact, "
                f"{same}; no block was ever charged beyond its promise."
            )
    return 0 if found.digest == digest else 1


def _show(demo: Demo, days: int, console: Console, *, pause_seconds: float) -> None:
    if not console.is_terminal:
        for _ in range(days):
            demo.live_a_day()
            if demo.day % 5 == 0:
                console.print(demo.totals(), soft_wrap=True)
        console.print(demo.picture())
        return
    with Live(console=console, refresh_per_second=8) as live:
        for _ in range(days):
            demo.live_a_day()
            live.update(demo.picture())
            time.sleep(pause_seconds)


if __name__ == "__main__":
    sys.exit(main())
