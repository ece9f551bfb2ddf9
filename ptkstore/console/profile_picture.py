"""The profile of a PTK as SVG inside a page: samples against epsilon, both axes logarithmic, with the band of what was measured
and the point that the PTK was trained at last. Colours are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from ptkstore.views import ProfileView

__all__ = ["draw"]

_WIDTH, _HEIGHT = 760.0, 300.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 72.0, 16.0, 24.0, 48.0
_Point = tuple[float, float]


def draw(profile: ProfileView, chosen: tuple[str, int] | None) -> Markup:
    """The SVG element, or nothing where no level is reached. It is described by the table beside it."""
    points = [
        (float(level), float(samples))
        for level, samples in zip(profile.levels, profile.samples, strict=True)
        if samples is not None and samples > 0
    ]
    if not points:
        return Markup("")
    band = [
        (float(one["level"]), max(1.0, float(one["band"][0])), float(one["band"][1]))
        for one in profile.measured
        if one.get("band")
    ]
    at = (float(chosen[0]), float(chosen[1])) if chosen is not None and chosen[1] > 0 else None
    every = [*points, *([at] if at else []), *((x, y) for x, low, high in band for y in (low, high))]
    xs = _Axis([x for x, _ in every], _LEFT, _LEFT + _WIDTH)
    ys = _Axis([y for _, y in every], _TOP + _HEIGHT, _TOP)
    parts = [*_grid(xs, ys)]
    if band:
        corners = [(x, low) for x, low, _ in band] + [(x, high) for x, _, high in reversed(band)]
        parts.append(f'<path class="band" d="{_path(corners, xs, ys)}Z"/>')
    parts.append(f'<path class="curve" d="{_path(points, xs, ys)}"/>')
    for x, y in points:
        told = escape(f"epsilon {x:.4g}: {y:,.0f} samples")
        parts.append(
            f'<circle class="dot" cx="{xs.at(x):.1f}" cy="{ys.at(y):.1f}" r="4"><title>{told}</title></circle>'
        )
    if at:
        parts += _chosen(at, xs, ys)
    title = escape(f"Samples that {profile.ptk} needs at each epsilon")
    box = f'viewBox="0 0 {_LEFT + _WIDTH + _RIGHT:g} {_TOP + _HEIGHT + _BOTTOM:g}"'
    # Texts were escaped where they were put in.
    return Markup(f'<svg class="chart" {box} role="img" aria-label="{title}">{"".join(parts)}</svg>')  # noqa: S704


def _grid(xs: _Axis, ys: _Axis) -> list[str]:
    bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    parts = []
    for value in xs.ticks():
        parts.append(f'<path class="grid" d="M{xs.at(value):.1f} {_TOP:g}V{bottom:g}"/>')
        parts.append(_text(xs.at(value), bottom + 18, f"{value:g}", "middle"))
    for value in ys.ticks():
        parts.append(f'<path class="grid" d="M{_LEFT:g} {ys.at(value):.1f}H{right:g}"/>')
        parts.append(_text(_LEFT - 8, ys.at(value) + 4, f"{value:,.0f}", "end"))
    parts.append(f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{bottom:g}H{right:g}"/>')
    parts.append(_text(_LEFT + _WIDTH / 2, bottom + 40, "epsilon", "middle"))
    parts.append(_text(_LEFT + 8, _TOP + 12, "samples", "start"))
    return parts


def _chosen(at: _Point, xs: _Axis, ys: _Axis) -> list[str]:
    x, y = xs.at(at[0]), ys.at(at[1])
    anchor, side = ("start", 12) if x < _LEFT + _WIDTH - 150 else ("end", -12)
    return [
        f'<path class="lead-line" d="M{x:.1f} {y:.1f}V{_TOP + _HEIGHT:g}M{x:.1f} {y:.1f}H{_LEFT:g}"/>',
        f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="7"/>',
        _text(x + side, max(y - 10, _TOP + 12), f"ε = {at[0]:.4g}, n = {at[1]:,.0f}", anchor, "name"),
    ]


def _path(points: Sequence[_Point], xs: _Axis, ys: _Axis) -> str:
    return "M" + "L".join(f"{xs.at(x):.1f} {ys.at(y):.1f}" for x, y in points)


class _Axis:
    """From values to places, logarithmic, with a little room at both ends."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max(0.08 * (high - low), 0.1)
        self._low, self._high, self._begin, self._end = low - room, high + room, begin, end

    def at(self, value: float) -> float:
        """The place of a value."""
        along = (math.log10(value) - self._low) / (self._high - self._low)
        return self._begin + along * (self._end - self._begin)

    def ticks(self) -> list[float]:
        """Powers of ten, and 2 and 5 times them where there are few."""
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        for steps in ((1,), (1, 3), (1, 2, 5)):
            found = [step * 10.0**power for power in powers for step in steps]
            found = [one for one in found if self._low <= math.log10(one) <= self._high]
            if len(found) >= 3:
                break
        return found


def _text(x: float, y: float, text: str, anchor: str, name: str = "label") -> str:
    return f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
