"""Pictures for the report: plain SVG texts, drawn from DP or public values.

Colours are CSS variables of the page (light and dark), and never the only sign: lines differ in
dash and marker, bars are listed in the order they are stacked, expired blocks are crossed out.
Every picture has a title and a description.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from examples.taxi.downstream import ARMS, Comparison
from ptkstore.api.views import BlockLine, BudgetView, PlanView

__all__ = ["budget_picture", "error_picture", "plan_picture"]

_WIDTH = 860
_SERIES = 8
_DASH = ("6 4", "2 3", "")


@dataclass(frozen=True)
class _Frame:
    """A rectangle of the picture, and the values at its edges."""

    left: float
    top: float
    right: float
    bottom: float
    low: tuple[float, float]
    high: tuple[float, float]

    def x(self, value: float) -> float:
        """Where a value of the horizontal axis is."""
        return self.left + (self.right - self.left) * (value - self.low[0]) / (
            self.high[0] - self.low[0]
        )

    def y(self, value: float) -> float:
        """Where a value of the vertical axis is."""
        return self.bottom - (self.bottom - self.top) * (value - self.low[1]) / (
            self.high[1] - self.low[1]
        )


def plan_picture(plan: PlanView, budget: BudgetView) -> str:
    """The plan as stacks: partitions side by side, in each the PTKs that train there, as high as
    their epsilon; the box is what there is.
    """
    promised = float(budget.epsilon)
    width = max(plan.available_samples or 0, plan.total_samples or 0, 1)
    frame = _Frame(56, 20, 470, 300, (0, 0), (width, promised))
    parts = [
        _rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top, "box"),
        *_vertical(frame, [promised * step / 4 for step in range(5)], "{:.2f}"),
        *(
            _text(frame.x(value), frame.bottom + 18, f"{value:,.0f}", "middle")
            for value in _round_steps(0, width)
        ),
        _text(
            (frame.left + frame.right) / 2,
            frame.bottom + 38,
            "rides of the window (DP number)",
            "middle",
        ),
        _text(14, 160, "epsilon", "middle", turn=True),
    ]
    lines = sorted(plan.lines, key=lambda line: (-line.samples, line.ptk))
    begins = [
        sum(one.samples for one in plan.partitions[:place])
        for place in range(len(plan.partitions) + 1)
    ]
    heights = [0.0] * len(plan.partitions)
    for place, line in enumerate(lines):
        epsilon = float(line.epsilon)
        said = f"{line.ptk}: epsilon {line.epsilon} on {line.samples:,} rides, promised error {line.target:.1%}"
        series = f"s{place % _SERIES}"
        missing = line.samples
        for one in line.partitions:
            wide = min(missing, plan.partitions[one].samples)
            missing -= wide
            left, top = frame.x(begins[one]), frame.y(heights[one] + epsilon)
            parts.append(
                _rect(
                    left,
                    top,
                    frame.x(begins[one] + wide) - left,
                    frame.y(heights[one]) - top,
                    f"bar {series}",
                    said,
                )
            )
            heights[one] += epsilon
        # The list goes the way the stack does: the lowest bar last.
        row = 34 + 34 * (len(lines) - 1 - place)
        parts += [
            _rect(492, row - 11, 14, 14, f"bar {series}"),
            _text(514, row, line.ptk, strong=True),
            _text(
                514,
                row + 15,
                f"ε {line.epsilon} · {line.samples:,} rides · error within {line.target:.1%}",
            ),
        ]
    described = (
        f"{len(lines)} PTKs in {len(plan.partitions)} partitions use epsilon "
        f"{max(heights, default=0.0):.3f} of "
        f"{promised:g} where most is used."
    )
    return _svg(
        "plan", max(350, 50 + 34 * len(lines)), "The plan of the last window", described, parts
    )


def error_picture(found: Comparison) -> str:
    """Error against the team's own data, one line for each way to make features, with 95% intervals
    over the seeds.
    """
    fractions = found.fractions
    ends = [
        (one.mean - _finite(one.half_width), one.mean + _finite(one.half_width))
        for one in found.points
    ]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    margin = 0.06 * (high - low) or 0.01
    across = (math.log10(fractions[0]) - 0.1, math.log10(fractions[-1]) + 0.1)
    frame = _Frame(64, 20, 690, 330, (across[0], low - margin), (across[1], high + margin))
    parts = [
        *_vertical(frame, _round_steps(low - margin, high + margin), "{:.2f}"),
        _text(14, 175, "error (RMSLE)", "middle", turn=True),
    ]
    for fraction in fractions:
        x = frame.x(math.log10(fraction))
        rides = found.point(ARMS[0], fraction).rides
        parts += [
            _text(x, frame.bottom + 18, f"{100 * fraction:g}%", "middle"),
            _text(x, frame.bottom + 33, f"{rides:,}", "middle", faint=True),
        ]
    parts.append(
        _text(
            (frame.left + frame.right) / 2,
            frame.bottom + 54,
            "share and number of the team's own rides",
            "middle",
        )
    )
    for place, arm in enumerate(ARMS):
        line = [
            (frame.x(math.log10(one.fraction) + 0.02 * (place - 1)), one)
            for one in found.points
            if one.arm == arm
        ]
        path = " ".join(f"{x:.1f},{frame.y(one.mean):.1f}" for x, one in line)
        dash = f' stroke-dasharray="{_DASH[place]}"' if _DASH[place] else ""
        parts.append(f'<polyline class="line a{place}" points="{path}"{dash}/>')
        for x, one in line:
            half = _finite(one.half_width)
            said = f"{arm}, {one.rides:,} rides: {one.mean:.4f} ± {half:.4f}"
            top, bottom = frame.y(one.mean + half), frame.y(one.mean - half)
            parts.append(f'<path class="line a{place}" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>')
            parts.append(_marker(place, x, frame.y(one.mean), said))
        row = 40 + 26 * place
        parts += [
            f'<path class="line a{place}" d="M708 {row - 4}H744"{dash}/>',
            _marker(place, 726, row - 4, arm),
            _text(752, row, arm),
        ]
    said = "; ".join(
        f"at {100 * one:g}% PTKs lower the error by {found.gain(one)[0]:.1%}" for one in fractions
    )
    return _svg(
        "errors",
        400,
        "Error of the new team's model against its own data",
        f"Compared with no PTK, {said}.",
        parts,
    )


def budget_picture(budgets: Sequence[tuple[str, BudgetView]]) -> str:
    """What is left of every block's budget at each moment: darker is less, a cross is expired,
    blank is not there yet.
    """
    names = sorted({block.name for _, budget in budgets for block in budget.blocks})
    size = min(30.0, (_WIDTH - 150) / max(1, len(names)))
    left = 144
    parts = []
    for row, (moment, budget) in enumerate(budgets):
        top = 16 + row * (size + 4)
        parts.append(_text(4, top + size * 0.65, moment))
        known = {block.name: block for block in budget.blocks}
        for place, name in enumerate(names):
            if name in known:
                parts += _cell(
                    known[name], left + place * size, top, size - 2, float(budget.epsilon)
                )
    bottom = 16 + len(budgets) * (size + 4) + 14
    for place, name in enumerate(names):
        if place % 7 == 0:
            parts.append(_text(left + place * size, bottom, name.split("T")[0]))
    parts.append(_text(4, bottom + 32, "budget left"))
    for step in range(5):
        parts.append(
            _rect(
                left + 26 * step,
                bottom + 18,
                24,
                18,
                "heat",
                f"{1 - step / 4:.0%}",
                _shade(step / 4),
            )
        )
    parts.append(_text(left + 140, bottom + 32, "all to none;  × raw data expired, key destroyed"))
    described = f"{len(names)} blocks of one day at {len(budgets)} moments; each carries at most its own promise."
    return _svg("budget", bottom + 50, "Privacy budget left, block by block", described, parts)


def _shade(used: float) -> float:
    return 0.08 + 0.92 * used


def _cell(block: BlockLine, x: float, y: float, size: float, full: float) -> Iterable[str]:
    used = min(1.0, max(0.0, 1 - block.left / full))
    count = "no count" if block.dp_records is None else f"{block.dp_records:,} rides (DP)"
    yield _rect(
        x,
        y,
        size,
        size,
        "heat",
        f"{block.name}: {count}, epsilon {block.left:.3f} left, {block.status}",
        0.08 + 0.92 * used,
    )
    if block.status == "expired":
        inset = size * 0.3
        yield (
            f'<path class="cross" d="M{x + inset:.1f} {y + inset:.1f}L{x + size - inset:.1f} {y + size - inset:.1f}'
            f'M{x + size - inset:.1f} {y + inset:.1f}L{x + inset:.1f} {y + size - inset:.1f}"/>'
        )


def _svg(name: str, height: float, title: str, described: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-labelledby="{name}-title {name}-said">\n'
        f'<title id="{name}-title">{escape(title)}</title>\n<desc id="{name}-said">{escape(described)}</desc>\n{body}\n</svg>'
    )


def _rect(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    said: str = "",
    opacity: float | None = None,
) -> str:
    shape = f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
    if opacity is not None:
        shape += f' fill-opacity="{opacity:.2f}"'
    return f"{shape}><title>{escape(said)}</title></rect>" if said else f"{shape}/>"


def _text(
    x: float,
    y: float,
    said: str,
    anchor: str = "start",
    *,
    strong: bool = False,
    faint: bool = False,
    turn: bool = False,
) -> str:
    kind = ' class="strong"' if strong else ' class="faint"' if faint else ""
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}{turned}>{escape(said)}</text>'
    )


def _vertical(frame: _Frame, values: Iterable[float], form: str) -> Iterable[str]:
    for value in values:
        y = frame.y(value)
        yield f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>'
        yield _text(frame.left - 8, y + 4, form.format(value), "end")


def _round_steps(low: float, high: float) -> list[float]:
    """Four to nine round numbers between the two."""
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    size *= max(one for one in (1, 2, 2.5, 5) if 4 * one * size <= high - low)
    first, last = math.ceil(low / size), math.floor(high / size)
    return [round(step * size, 10) for step in range(first, last + 1)]


def _marker(place: int, x: float, y: float, said: str) -> str:
    shapes = (
        f'<circle class="mark a{place}" cx="{x:.1f}" cy="{y:.1f}" r="4">',
        f'<rect class="mark a{place}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8">',
        f'<path class="mark a{place}" d="M{x:.1f} {y - 6:.1f}l6 10h-12z">',
    )
    ends = ("circle", "rect", "path")
    return f"{shapes[place]}<title>{escape(said)}</title></{ends[place]}>"


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
