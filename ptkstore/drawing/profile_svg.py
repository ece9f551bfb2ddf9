"""The profile of a PTK as SVG: samples against epsilon, both axes logarithmic, with the band of what
was measured. `draw` makes an element inside a page, whose colours are classes of its style sheet,
with the point that the PTK was trained at last; `document` a file that stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from ptkstore.api.views import ProfileView
from ptkstore.drawing.axis import LogAxis
from ptkstore.drawing.style import ChartFrame, grid_parts, standing_alone, text_part

__all__ = ["document", "draw"]

_WIDTH, _HEIGHT = 760.0, 300.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 72.0, 16.0, 24.0, 48.0
_FRAME = ChartFrame(_LEFT, _TOP, _LEFT + _WIDTH, _TOP + _HEIGHT)
_STYLE = ".band{fill:#e3efe7}.curve{fill:none;stroke:#2c6148;stroke-width:2}.dot{fill:#2c6148}"
_Point = tuple[float, float]


def draw(profile: ProfileView, chosen: tuple[str, int] | None) -> Markup:
    """The SVG element, or nothing where no level is reached.

    It is described by the table beside it.
    """
    parts = _parts(profile, chosen)
    if not parts:
        return Markup("")
    title = escape(f"Samples that {profile.ptk} needs at each epsilon")
    box = f'viewBox="0 0 {_LEFT + _WIDTH + _RIGHT:g} {_TOP + _HEIGHT + _BOTTOM:g}"'
    # Texts were escaped where they were put in.
    return Markup(  # noqa: S704
        f'<svg class="chart" {box} role="img" aria-label="{title}">{"".join(parts)}</svg>'
    )


def document(profile: ProfileView) -> str:
    """The SVG file; where no level is reached it says so."""
    parts = _parts(profile, None)
    headline = f"{profile.ptk}: samples by epsilon ({profile.source})"
    return standing_alone(
        parts,
        headline=headline if parts else f"{headline}: no level is reached",
        style=_STYLE,
        width=_LEFT + _WIDTH + _RIGHT,
        height=_TOP + _HEIGHT + _BOTTOM if parts else 0,
    )


def _parts(profile: ProfileView, chosen: tuple[str, int] | None) -> list[str]:
    points = [
        (float(level), float(samples))
        for level, samples in zip(profile.levels, profile.samples, strict=True)
        if samples is not None and samples > 0
    ]
    if not points:
        return []
    band = [
        (
            float(measurement["level"]),
            max(1.0, float(measurement["band"][0])),
            float(measurement["band"][1]),
        )
        for measurement in profile.measured
        if measurement.get("band")
    ]
    at = (float(chosen[0]), float(chosen[1])) if chosen is not None and chosen[1] > 0 else None
    every = [
        *points,
        *([at] if at else []),
        *((x, y) for x, low, high in band for y in (low, high)),
    ]
    xs = LogAxis([x for x, _ in every], _LEFT, _LEFT + _WIDTH)
    ys = LogAxis([y for _, y in every], _TOP + _HEIGHT, _TOP)
    parts = grid_parts(
        [(xs.at(value), f"{value:g}") for value in xs.ticks()],
        [(ys.at(value), f"{value:,.0f}") for value in ys.ticks()],
        _FRAME,
        ("epsilon", "samples"),
    )
    if band:
        corners = [(x, low) for x, low, _ in band] + [(x, high) for x, _, high in reversed(band)]
        parts.append(f'<path class="band" d="{_path(corners, xs, ys)}Z"/>')
    parts.append(f'<path class="curve" d="{_path(points, xs, ys)}"/>')
    for x, y in points:
        told = escape(f"epsilon {x:.4g}: {y:,.0f} samples")
        parts.append(
            f'<circle class="dot" cx="{xs.at(x):.1f}" cy="{ys.at(y):.1f}" r="4">'
            f"<title>{told}</title></circle>"
        )
    return [*parts, *(_chosen(at, xs, ys) if at else [])]


def _chosen(at: _Point, xs: LogAxis, ys: LogAxis) -> list[str]:
    x, y = xs.at(at[0]), ys.at(at[1])
    anchor, side = ("start", 12) if x < _LEFT + _WIDTH - 150 else ("end", -12)
    return [
        f'<path class="lead-line" d="M{x:.1f} {y:.1f}V{_TOP + _HEIGHT:g}M{x:.1f} {y:.1f}H{_LEFT:g}"/>',
        f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="7"/>',
        text_part(
            x + side, max(y - 10, _TOP + 12), f"ε = {at[0]:.4g}, n = {at[1]:,.0f}", anchor, "name"
        ),
    ]


def _path(points: Sequence[_Point], xs: LogAxis, ys: LogAxis) -> str:
    return "M" + "L".join(f"{xs.at(x):.1f} {ys.at(y):.1f}" for x, y in points)
