"""Losses by samples as an SVG file, one line for each epsilon: what research on public data draws.

Samples are on a logarithmic axis, losses on an even one.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from profiler.research import ResearchPoint
from ptkstore.drawing.axis import EvenAxis, LogAxis
from ptkstore.drawing.style import ChartFrame, grid_parts, standing_alone

__all__ = ["research_svg"]

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 450.0, 280.0, 72.0, 16.0, 120.0, 48.0
_FRAME = ChartFrame(_LEFT, _TOP, _LEFT + _WIDTH, _TOP + _HEIGHT)
_STYLE = ".line{fill:none;stroke-width:2}"


def research_svg(points: Sequence[ResearchPoint], *, title: str) -> str:
    """The SVG document; without points it has no lines."""
    series: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        series.setdefault(f"epsilon {point.epsilon:g}", []).append(
            (float(point.samples), point.loss)
        )
    xs = LogAxis([point.samples for point in points] or [1.0], _LEFT, _LEFT + _WIDTH)
    ys = EvenAxis([point.loss for point in points], _TOP + _HEIGHT, _TOP)
    parts = grid_parts(
        [(xs.at(value), f"{value:,g}") for value in xs.ticks()],
        [(ys.at(value), f"{value:g}") for value in ys.ticks()],
        _FRAME,
        ("samples", "loss (not private)"),
    )
    for place, (name, line) in enumerate(series.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        path = " ".join(f"{xs.at(x):.1f},{ys.at(y):.1f}" for x, y in line)
        parts.append(f'<polyline class="line" points="{path}" stroke="{colour}"/>')
        parts += [
            f'<circle cx="{xs.at(x):.1f}" cy="{ys.at(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in line
        ]
        y = _TOP + 14 + 18 * place
        parts.append(
            f'<rect x="{_LEFT + _WIDTH + 12:g}" y="{y - 7:g}" width="14" height="4" '
            f'fill="{colour}"/>'
            f'<text x="{_LEFT + _WIDTH + 32:g}" y="{y:g}">{escape(name)}</text>'
        )
    return standing_alone(
        parts,
        headline=title,
        style=_STYLE,
        width=_LEFT + _WIDTH + _RIGHT,
        height=_TOP + _HEIGHT + _BOTTOM,
    )
