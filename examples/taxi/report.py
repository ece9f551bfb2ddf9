"""The report: one HTML page with everything the demo saw, readable without a network.

The page is well-formed XML as well as HTML, holds no scripts and points nowhere. Everything on it
about the stream is DP or public; the errors are those of the new team on its own rides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from examples.taxi.downstream import ARMS, OWN, SMALL, Comparison
from examples.taxi.pictures import budget_picture, error_picture, plan_picture
from ptkstore.api.moments import iso
from ptkstore.api.views import BudgetView, CycleView, Finding, PlanView, Registration

__all__ = ["Check", "Story", "WindowSeen", "html"]


@dataclass(frozen=True)
class Check:
    """Something the demo promises, and whether it held."""

    what: str
    held: bool
    detail: str


@dataclass(frozen=True)
class WindowSeen:
    """The store as it looked: while the window was still held, and after its cycle."""

    cycle: CycleView
    plan: PlanView
    before: BudgetView
    after: BudgetView


@dataclass(frozen=True)
class Story:
    """All that happened, in the views that anybody may see."""

    title: str
    registrations: tuple[Registration, ...]
    targets: tuple[float, ...]
    windows: tuple[WindowSeen, ...]
    comparison: Comparison
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    seconds: float


_STYLE = (
    """
:root { color-scheme: light dark; --page: #fbfbf9; --ink: #1d2126; --faint: #5c6670; --rule: #d9dcdf; --heat: #8a3b12;
  --good: #1b6e3c; --bad: #a4262c; --s0: #3566a8; --s1: #b8651b; --s2: #2f7d5b; --s3: #8a4c9e; --s4: #a33b4f; --s5: #6b7280;
  --s6: #0f7f93; --s7: #8a7a1f; --a0: #6b7280; --a1: #b8651b; --a2: #3566a8; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --ink: #e6e8ea; --faint: #9aa4ae; --rule: #343a41;
  --heat: #f0a06a; --good: #6fcf97; --bad: #ff8f8f; --s0: #7eaaf0; --s1: #eda35f; --s2: #6cc7a0; --s3: #c99be0; --s4: #f08fa2;
  --s5: #a6afb9; --s6: #5fc6da; --s7: #d3c25a; --a0: #a6afb9; --a1: #eda35f; --a2: #7eaaf0; } }
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 900px;
  padding: 24px 20px 60px; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2.4rem; }
p, caption { max-width: 68ch; } caption { color: var(--faint); text-align: left; padding-bottom: 6px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 4px 14px 4px 0; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } .good { color: var(--good); } .bad { color: var(--bad); }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; white-space: pre; }
svg .strong { font-weight: 600; } svg .faint { fill: var(--faint); } .box { fill: none; stroke: var(--faint); }
.grid { stroke: var(--rule); } .bar { stroke: var(--page); stroke-width: 0.6; } .heat { fill: var(--heat); }
.line { fill: none; stroke-width: 1.8; } .mark { stroke: var(--page); } .cross { stroke: var(--page); stroke-width: 1.2; }
"""
    + "".join(f".s{place} {{ fill: var(--s{place}); }} " for place in range(8))
    + "".join(
        f".line.a{place} {{ stroke: var(--a{place}); }} .mark.a{place} {{ fill: var(--a{place}); }} "
        for place in range(3)
    )
)


def html(story: Story) -> str:
    """The page."""
    last = story.windows[-1]
    parts = [
        f"<h1>{escape(story.title)}</h1>",
        _lead(story),
        "<h2>What was promised, and what held</h2>",
        _checks(story.checks),
        "<h2>Does it help a new team?</h2>",
        "<p>A second fleet in the same city has few rides of its own. It predicts durations from "
        "distance, hour, weekday and "
        "zones, and may add the published PTK features, or statistics of its own rides. Lower is "
        "better; the bars are 95% "
        f"intervals over {story.comparison.seeds} training sets, all tested on the same "
        f"{story.comparison.test_rides:,} rides.</p>",
        error_picture(story.comparison),
        _errors(story.comparison),
        "<h2>The plan</h2>",
        "<p>Width is the number of rides a PTK trains on, height its epsilon. Where bars lie on "
        "each other, the same rides are "
        "used by several PTKs and their epsilons add up; the box is the promise.</p>",
        plan_picture(last.plan, last.before),
        _plan(last.plan),
        "<h2>Who asked</h2>",
        _registrations(story),
        "<h2>Budget and exposure</h2>",
        "<p>Each row is a moment: on the last day of a window its blocks are held and unused; "
        "after the cycle their budget is "
        "spent and their raw rides are gone. New days bring fresh budget.</p>",
        budget_picture(
            [
                moment
                for number, one in enumerate(story.windows, start=1)
                for moment in (
                    (f"window {number}, last day", one.before),
                    (f"window {number}, done", one.after),
                )
            ]
        ),
        _exposure(story.windows),
        "<h2>The doctor's findings</h2>",
        _findings(story.findings),
    ]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{escape(story.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _lead(story: Story) -> str:
    last = story.windows[-1].after
    expired = sum(block.status == "expired" for block in last.blocks)
    rides = sum(one.cycle.dp_records for one in story.windows)
    best, half = story.comparison.gain(
        max(one for one in story.comparison.fractions if one <= SMALL)
    )
    states = sum(line.outcome == "PUBLISHED" for one in story.windows for line in one.cycle.trained)
    return (
        f"<p>About {rides:,} rides went in over {len(story.windows)} windows; {states} "
        "differentially private states came "
        f"out; {expired} of {len(last.blocks)} blocks of raw rides have expired. Everything "
        "published about any single ride is "
        f"({escape(last.epsilon)}, {escape(last.delta)})-DP. With 1% of its training data, the new "
        "team's error is "
        f"{best:.1%} ± {half:.1%} lower with the PTKs. The whole run took {story.seconds:.0f} "
        "seconds.</p>"
    )


def _checks(checks: Sequence[Check]) -> str:
    rows = [
        [
            f'<span class="{"good" if one.held else "bad"}">{"held" if one.held else "FAILED"}</span>',
            escape(one.what),
            escape(one.detail),
        ]
        for one in checks
    ]
    return _table("Each line is checked on every run", ["", "promise", "found"], rows)


def _errors(found: Comparison) -> str:
    rows = []
    for fraction in found.fractions:
        points = [found.point(arm, fraction) for arm in ARMS]
        gains = [found.gain(fraction), found.gain(fraction, over=OWN)]
        rows.append(
            [
                f"{100 * fraction:g}%",
                f"{points[0].rides:,}",
                *(f"{one.mean:.4f} ± {one.half_width:.4f}" for one in points),
                *(f"{mean:+.1%} ± {half:.1%}" for mean, half in gains),
            ]
        )
    heads = ["data", "rides", *ARMS, "gain over no PTK", "gain over own"]
    return _table(
        "RMSLE on held-out rides, mean ± half of the 95% interval; gains are paired",
        heads,
        rows,
        numbers=7,
    )


def _plan(plan: PlanView) -> str:
    rows = [
        [
            escape(one.ptk),
            escape(one.epsilon),
            f"{one.samples:,}",
            f"{one.share:.0%}",
            f"{one.target:.1%}",
        ]
        for one in plan.lines
    ]
    caption = (
        f"{plan.status}: {plan.total_samples or 0:,} rides needed, {plan.available_samples or 0:,} "
        "there (DP); "
        f"solved by {plan.solver} in {plan.seconds:.2f} s"
    )
    return _table(
        caption,
        ["PTK", "epsilon", "rides", "of the window", "promised error"],
        rows,
        numbers=4,
        first=1,
    )


def _registrations(story: Story) -> str:
    rows = []
    for one, target in zip(story.registrations, story.targets, strict=True):
        nearest = (
            ""
            if one.nearest_target is None
            else f"nearest feasible target {one.nearest_target:.1%}. "
        )
        rows.append(
            [escape(one.name), f"{target:.1%}", escape(one.status), escape(nearest + one.reason)]
        )
    return _table(
        "An error is a fraction of the value's range, of a count: of all rides; it is kept with "
        "95% probability",
        ["PTK", "asked error", "answer", "why"],
        rows,
    )


def _exposure(windows: Sequence[WindowSeen]) -> str:
    rows = []
    for number, one in enumerate(windows, start=1):
        expired = sum(block.status == "expired" for block in one.after.blocks)
        published = sum(line.outcome == "PUBLISHED" for line in one.cycle.trained)
        rows.append(
            [
                str(number),
                f"{one.cycle.dp_records:,}",
                _day(one.before.exposure.oldest_ms),
                _day(one.after.exposure.oldest_ms),
                str(expired),
                str(published),
            ]
        )
    heads = [
        "window",
        "rides (DP)",
        "raw data since, before",
        "and after",
        "blocks expired",
        "states published",
    ]
    return _table("Raw data held, window by window", heads, rows, numbers=6)


def _day(ms: int | None) -> str:
    return "-" if ms is None else iso(ms).split("T")[0]


def _findings(findings: Sequence[Finding]) -> str:
    rows = [
        [
            f'<span class="{_mood(one.level)}">{escape(one.level)}</span>',
            escape(one.what),
            escape(one.detail),
        ]
        for one in findings
    ]
    return _table("After the last window expired", ["", "looked at", "found"], rows)


def _mood(level: str) -> str:
    return {"OK": "good", "ERROR": "bad"}.get(level, "")


def _table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: int = 0,
    first: int = 0,
) -> str:
    """A table whose cells are markup already; columns ``first`` to ``first + numbers`` hold
    numbers.
    """

    def kind(place: int) -> str:
        return ' class="n"' if first <= place < first + numbers else ""

    head = "".join(
        f'<th scope="col"{kind(place)}>{escape(one)}</th>' for place, one in enumerate(heads)
    )
    body = "\n".join(
        "<tr>" + "".join(f"<td{kind(place)}>{one}</td>" for place, one in enumerate(row)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )
