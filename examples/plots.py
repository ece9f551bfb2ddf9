"""Line charts as SVG files that stand alone: a title, words for those who do not see them, colours
for light and dark pages.

Colour is never the only sign: lines differ in dash and marker, too. Error bars are drawn where a
point has a half width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Axis", "Point", "Series", "line_chart"]

_WIDTH, _HEIGHT = 760, 420
_LEFT, _TOP, _RIGHT, _BOTTOM = 76, 54, 560, 352
_COLOURS = (
    ("#5b6470", "#a6afb9"),
    ("#b85c00", "#eda35f"),
    ("#1f9d78", "#6cc7a0"),
    ("#7a4fc0", "#c99be0"),
    ("#1f5fbf", "#7eaaf0"),
    ("#b3304f", "#f08fa2"),
)
_DASHES = ("6 4", "2 3", "9 3 2 3", "4 2", "", "1 4")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis: its words, whether it is logarithmic, how numbers are written, and ticks if they are
    not found by itself.
    """

    words: str
    log: bool = False
    form: Callable[[float], str] = "{:g}".format
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Point:
    """A value at a place, with half the width of its error bar."""

    x: float
    y: float
    half: float = 0.0


@dataclass(frozen=True)
class Series:
    """One line of the chart, in the order of its points."""

    name: str
    points: tuple[Point, ...]


def line_chart(title: str, described: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """The chart as the text of an SVG file."""
    if not 1 <= len(series) <= len(_COLOURS) or not all(one.points for one in series):
        raise ValueError(
            f"a chart must have 1 to {len(_COLOURS)} lines with points each, got {len(series)}"
        )
    points = [point for one in series for point in one.points]
    across = _Scale.over([point.x for point in points], x, _LEFT, _RIGHT)
    ends = [
        end
        for point in points
        for end in (point.y - point.half, point.y + point.half)
        if not y.log or end > 0
    ]
    up = _Scale.over([*ends, *(point.y for point in points)], y, _BOTTOM, _TOP)
    parts = [_text(_LEFT - 60, 26, title, kind="strong")]
    for tick in up.ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {up(tick):.1f}H{_RIGHT}"/>')
        parts.append(_text(_LEFT - 8, up(tick) + 4, y.form(tick), "end"))
    for tick in across.ticks:
        parts.append(f'<path class="grid" d="M{across(tick):.1f} {_BOTTOM}v5"/>')
        parts.append(_text(across(tick), _BOTTOM + 20, x.form(tick), "middle"))
    parts.append(_text((_LEFT + _RIGHT) / 2, _BOTTOM + 46, x.words, "middle"))
    middle = (_TOP + _BOTTOM) / 2
    parts.append(_text(18, middle, y.words, "middle", turn=True))
    for place, one in enumerate(series):
        parts += _line(one, place, len(series), across, up, y)
    return _svg(title, described, parts)


@dataclass(frozen=True)
class _Scale:
    """From values to places on the page."""

    low: float
    high: float
    first: float
    last: float
    log: bool
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float], axis: Axis, first: float, last: float) -> _Scale:
        shown = [math.log10(one) if axis.log else one for one in [*values, *axis.ticks]]
        low, high = min(shown), max(shown)
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        low, high = low - margin, high + margin
        ticks = axis.ticks or tuple(_log_steps(low, high) if axis.log else _round_steps(low, high))
        return cls(low, high, first, last, axis.log, ticks)

    def __call__(self, value: float) -> float:
        shown = math.log10(value) if self.log else value
        return self.first + (self.last - self.first) * (shown - self.low) / (self.high - self.low)


def _line(
    one: Series, place: int, count: int, across: _Scale, up: _Scale, y: Axis
) -> Iterable[str]:
    # Error bars of different lines stand beside each other.
    shift = 3.0 * (place - (count - 1) / 2)
    dash = f' stroke-dasharray="{_DASHES[place]}"' if _DASHES[place] else ""
    path = " ".join(f"{across(point.x) + shift:.1f},{up(point.y):.1f}" for point in one.points)
    yield f'<polyline class="line c{place}" points="{path}"{dash}/>'
    for point in one.points:
        left = across(point.x) + shift
        if point.half > 0:
            low = point.y - point.half
            bottom = up(low) if low > 0 or not up.log else _BOTTOM
            yield f'<path class="line c{place}" d="M{left:.1f} {up(point.y + point.half):.1f}V{bottom:.1f}"/>'
        half = f" ± {y.form(point.half)}" if point.half > 0 else ""
        yield _marker(place, left, up(point.y), f"{one.name}: {y.form(point.y)}{half}")
    row = _TOP + 16 + 26 * place
    yield f'<path class="line c{place}" d="M{_RIGHT + 16} {row - 4}h38"{dash}/>'
    yield _marker(place, _RIGHT + 35, row - 4, one.name)
    yield _text(_RIGHT + 62, row, one.name)


def _marker(place: int, x: float, y: float, said: str) -> str:
    kind, title = f'class="mark c{place}"', f"<title>{escape(said)}</title>"
    shapes = (
        f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>',
        f'<rect {kind} x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7">{title}</rect>',
        f'<path {kind} d="M{x:.1f} {y - 5:.1f}l5 9h-10z">{title}</path>',
        f'<path {kind} d="M{x:.1f} {y + 5:.1f}l5 -9h-10z">{title}</path>',
        f'<path {kind} d="M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z">{title}</path>',
        f'<path {kind} d="M{x - 5:.1f} {y - 2:.1f}h10v4h-10z">{title}</path>',
    )
    return shapes[place]


def _text(
    x: float, y: float, said: str, anchor: str = "start", *, kind: str = "", turn: bool = False
) -> str:
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    named = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}{turned}>{escape(said)}</text>'
    )


def _svg(title: str, described: str, parts: Iterable[str]) -> str:
    light, dark = (
        "".join(
            f".line.c{k}{{stroke:{one[way]}}}.mark.c{k}{{fill:{one[way]}}}"
            for k, one in enumerate(_COLOURS)
        )
        for way in (0, 1)
    )
    style = (
        "svg{background:#ffffff}text{fill:#1c2430;font:13px "
        "system-ui,sans-serif}.strong{font-weight:600;font-size:15px}"
        ".grid{stroke:#d9dde3}.line{fill:none;stroke-width:1.8}.mark{stroke:#ffffff;stroke-width:.8}"
        f"{light}@media (prefers-color-scheme: dark){{svg{{background:#14181f}}text{{fill:#e6e9ee}}"
        f".grid{{stroke:#333b47}}.mark{{stroke:#14181f}}{dark}}}"
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" aria-labelledby="title said">\n<title id="title">{escape(title)}</title>\n'
        f'<desc id="said">{escape(described)}</desc>\n<style>{style}</style>\n{body}\n</svg>\n'
    )


def _round_steps(low: float, high: float) -> Iterable[float]:
    """Four to nine round numbers between the two."""
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    size *= max(one for one in (1, 2, 2.5, 5) if 4 * one * size <= high - low)
    first, last = math.ceil(low / size), math.floor(high / size)
    return [round(step * size, 12) for step in range(first, last + 1)]


def _log_steps(low: float, high: float) -> Iterable[float]:
    """1, 2 and 5 times powers of ten; only the powers where there are many."""
    factors = (1, 2, 5) if high - low < 2 else (1,)
    found = [
        factor * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for factor in factors
    ]
    return [one for one in found if low <= math.log10(one) <= high]
