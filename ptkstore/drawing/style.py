"""What pictures share: words and grids whose looks are classes, and a file that stands alone, with a
headline, the parts, a line below, and what the classes look like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["ChartFrame", "grid_parts", "standing_alone", "text_part"]

_HEAD, _FOOT, _LEFT = 34.0, 30.0, 16.0
_TEXT = (
    "text{font-family:sans-serif;font-size:12px;fill:#55605a}"
    "text.name{fill:#16201a;font-weight:500}text.head{font-size:15px;fill:#1d2521}"
    ".axis{fill:none;stroke:#8b8a80}.grid{fill:none;stroke:#dedcd3}"
)


@dataclass(frozen=True)
class ChartFrame:
    """Where a chart lies in its picture."""

    left: float
    top: float
    right: float
    bottom: float


def text_part(x: float, y: float, text: str, anchor: str, name: str = "label") -> str:
    """Words at a place, escaped."""
    return (
        f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def grid_parts(
    across: Sequence[tuple[float, str]],
    up: Sequence[tuple[float, str]],
    frame: ChartFrame,
    names: tuple[str, str],
) -> list[str]:
    """Lines at places with what they stand for, both axes and their names."""
    left, right, top, bottom = frame.left, frame.right, frame.top, frame.bottom
    parts = []
    for x, told in across:
        parts.append(f'<path class="grid" d="M{x:.1f} {top:g}V{bottom:g}"/>')
        parts.append(text_part(x, bottom + 18, told, "middle"))
    for y, told in up:
        parts.append(f'<path class="grid" d="M{left:g} {y:.1f}H{right:g}"/>')
        parts.append(text_part(left - 8, y + 4, told, "end"))
    parts.append(f'<path class="axis" d="M{left:g} {top:g}V{bottom:g}H{right:g}"/>')
    parts.append(text_part((left + right) / 2, bottom + 40, names[0], "middle"))
    parts.append(text_part(left + 8, top + 12, names[1], "start"))
    return parts


def standing_alone(
    parts: Iterable[str],
    *,
    headline: str,
    style: str,
    width: float,
    height: float,
    footline: str = "",
) -> str:
    """The SVG document of parts that take so much room."""
    foot = _FOOT if footline else 0.0
    wide, tall = _LEFT + width, _HEAD + height + foot
    words = [
        f'<text class="head" x="{_LEFT:g}" y="22" text-anchor="start">{escape(headline)}</text>'
    ]
    if footline:
        words.append(
            f'<text class="foot" x="{_LEFT:g}" y="{tall - 12:g}" text-anchor="start">'
            f"{escape(footline)}</text>"
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {tall:g}" '
            f'width="{wide:g}" height="{tall:g}">',
            f"<style>{_TEXT}{style}</style>",
            f'<rect width="{wide:g}" height="{tall:g}" fill="#fff"/>',
            *words,
            f'<g transform="translate({_LEFT:g} {_HEAD:g})">',
            *parts,
            "</g>",
            "</svg>",
            "",
        ]
    )
