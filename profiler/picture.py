"""The curve of a profile as a picture: SVG for pages, characters for terminals. Both axes are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from profiler.analytic import Profile

__all__ = ["lines_svg", "profile_svg", "profile_text"]

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 640, 360, 70, 46, 34, 120

Series = Sequence[tuple[float, float]]
Area = Sequence[tuple[float, float, float]]


def profile_text(profile: Profile, *, width: int = 48) -> str:
    """One bar for each level, as long as its samples on a logarithmic scale."""
    known = [one for one in profile.samples if one is not None]
    top = math.log10(max([*known, 10])) or 1.0
    lines = []
    for level, samples in zip(profile.levels, profile.samples, strict=True):
        label = f"{float(level):>8.4g}"
        if samples is None:
            lines.append(f"{label}  not reached")
            continue
        bar = "█" * max(1, round(width * math.log10(max(samples, 1) + 1) / top))
        lines.append(f"{label}  {bar[:width]} {samples:,}")
    head = f" epsilon  samples for a loss within {float(profile.promised):g} ({profile.source})"
    return "\n".join([head, *lines])


def profile_svg(profile: Profile, *, title: str = "", band: Area = ()) -> str:
    """Samples against epsilon; ``band`` are epsilons with both ends of their confidence band."""
    points = [
        (float(level), float(samples))
        for level, samples in zip(profile.levels, profile.samples, strict=True)
        if samples is not None
    ]
    return lines_svg({"samples": points}, title=title or "profile", x="epsilon", y="samples", log_y=True, area=band)


def lines_svg(series: Mapping[str, Series], *, title: str, x: str, y: str, log_y: bool = False, area: Area = ()) -> str:
    """Lines over a logarithmic x axis, and an area behind them."""
    shaded = [(at, max(low, 1.0) if log_y else low, high) for at, low, high in area]
    points = [point for one in series.values() for point in one]
    points += [(at, end) for at, low, high in shaded for end in (low, high)]
    if not points:
        points = [(1.0, 1.0)]
    xs = _Axis(min(p[0] for p in points), max(p[0] for p in points), _LEFT, _WIDTH - _RIGHT, log=True)
    low = min(p[1] for p in points) if log_y else 0.0
    ys = _Axis(low, max(p[1] for p in points), _HEIGHT - _BOTTOM, _TOP, log=log_y)
    middle = _HEIGHT / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:g}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x)}</text>',
        f'<text x="14" y="{middle:g}" transform="rotate(-90 14 {middle:g})" text-anchor="middle">{escape(y)}</text>',
    ]
    for value in xs.ticks():
        at = xs.at(value)
        parts.append(f'<line x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#ddd"/>')
        parts.append(f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    for value in ys.ticks():
        at = ys.at(value)
        parts.append(f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH - _RIGHT}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    if shaded:
        edge = [(at, low) for at, low, _ in shaded] + [(at, high) for at, _, high in reversed(shaded)]
        corners = " ".join(f"{xs.at(p):.1f},{ys.at(q):.1f}" for p, q in edge)
        parts.append(f'<polygon points="{corners}" fill="{_COLOURS[0]}" fill-opacity="0.15"/>')
    for place, (name, one) in enumerate(series.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        path = " ".join(f"{xs.at(p):.1f},{ys.at(q):.1f}" for p, q in one)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{xs.at(p):.1f}" cy="{ys.at(q):.1f}" r="3" fill="{colour}"/>' for p, q in one]
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 10}" y="{_TOP + 14 + 18 * place}" fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


class _Axis:
    """From values to places."""

    def __init__(self, low: float, high: float, begin: float, end: float, *, log: bool) -> None:
        self._log = log
        if log:
            low = max(low, 1e-12)
            high = max(high, low * 1.0001)
        elif high <= low:
            high = low + 1.0
        self._low, self._high, self._begin, self._end = low, high, begin, end

    def at(self, value: float) -> float:
        if self._log:
            along = math.log(max(value, 1e-12) / self._low) / math.log(self._high / self._low)
        else:
            along = (value - self._low) / (self._high - self._low)
        return self._begin + along * (self._end - self._begin)

    def ticks(self) -> list[float]:
        if self._log:
            first, last = math.ceil(math.log10(self._low) - 1e-9), math.floor(math.log10(self._high) + 1e-9)
            found = [10.0**power for power in range(first, last + 1)]
            return found if len(found) > 1 else [self._low, self._high]
        step = 10 ** math.floor(math.log10(self._high - self._low))
        step = step if (self._high - self._low) / step >= 4 else step / 4
        return [step * k for k in range(math.ceil(self._low / step), math.floor(self._high / step + 1e-9) + 1)]
