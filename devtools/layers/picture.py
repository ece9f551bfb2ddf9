"""The house as SVG: a row for each layer, the lowest at the bottom; a box for each part with the
packages inside it.

A line goes from a part to each part that it imports, unless it imports that one's importers
already: what is reached in two steps is not drawn twice. Nothing in the picture depends on the
machine, so a test can tell when it is stale.
"""

from __future__ import annotations

from collections import defaultdict
from html import escape

from devtools.layers.findings import part_of
from devtools.layers.imports import modules
from devtools.layers.rules import LAYERS, ROOTS, Part

__all__ = ["draw"]

_WIDTH, _ROW, _BOX, _TOP, _LETTER = 1040.0, 62.0, 40.0, 40.0, 6.1
_HIDDEN = ("examples", "devtools", "tests")
Place = tuple[float, float, float]  # x, y, width


def draw() -> str:
    """The SVG document."""
    rows = [[part for part in parts if part.name not in _HIDDEN] for parts in LAYERS]
    rows = [row for row in rows if row]
    places: dict[str, Place] = {}
    for number, row in enumerate(rows):
        y = _TOP + (len(rows) - 1 - number) * _ROW
        width = (_WIDTH - 20.0 * (len(row) + 1)) / len(row)
        for place, part in enumerate(row):
            places[part.name] = (20.0 + place * (width + 20.0), y, width)
    height = _TOP + len(rows) * _ROW
    body = [*_lines(places), *_boxes(rows, places)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" font-family="sans-serif">',
            "<title>The parts of Sage and what they import</title>",
            f'<rect width="{_WIDTH:.0f}" height="{height:.0f}" fill="#fff"/>',
            '<text x="20" y="24" font-size="14">Imports point down only. Inside a box: its packages and modules.</text>',
            *body,
            "</svg>",
            "",
        ]
    )


def _boxes(rows: list[list[Part]], places: dict[str, Place]) -> list[str]:
    inside = _inside()
    lines = []
    for row in rows:
        for part in row:
            x, y, width = places[part.name]
            fill = {"ptklib": "#e8f1e4", "ptkstore": "#e4ecf5"}.get(
                part.name.split(".")[0].split(":")[0], "#f5eedc"
            )
            room = int((width - 16) / _LETTER)
            listed = ", ".join(sorted(inside[part.name]))
            if len(listed) > room:
                listed = listed[: room - 1] + "…"
            lines += [
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_BOX:.0f}" rx="4" fill="{fill}" stroke="#777"/>',
                f'<text x="{x + 8:.1f}" y="{y + 16:.1f}" font-size="13" font-weight="bold">{escape(part.name)}</text>',
                f'<text x="{x + 8:.1f}" y="{y + 32:.1f}" font-size="11" fill="#444">{escape(listed)}</text>',
            ]
    return lines


def _inside() -> dict[str, set[str]]:
    """The next level of names inside each part."""
    inside: dict[str, set[str]] = defaultdict(set)
    for module in modules().values():
        home = part_of(module.name)
        if home is None or module.generated:
            continue
        for member in home[1].members:
            if module.name.startswith(member + "."):
                inside[home[1].name].add(module.name[len(member) + 1 :].split(".")[0])
            elif module.name == member and len(home[1].members) > 1:
                inside[home[1].name].add(member.rpartition(".")[2])
    return inside


def _lines(places: dict[str, Place]) -> list[str]:
    edges = _edges()
    lines = []
    for part, targets in sorted(edges.items()):
        indirect = {far for near in targets for far in _below(near, edges)}
        for target in sorted(targets - indirect):
            if part not in places or target not in places:
                continue
            x, y, width = places[part]
            across, below, wide = places[target]
            lines.append(
                f'<path d="M{x + width / 2:.1f} {y + _BOX:.1f}L{across + wide / 2:.1f} {below:.1f}" '
                'stroke="#999" fill="none"/>'
            )
    return lines


def _edges() -> dict[str, set[str]]:
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules().values():
        here = part_of(module.name)
        if here is None or module.name in ROOTS or here[1].name in _HIDDEN:
            continue
        for used in module.ours:
            there = part_of(used.module)
            if there is not None and there[1] != here[1]:
                edges[here[1].name].add(there[1].name)
    return edges


def _below(part: str, edges: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = [part]
    while ahead:
        for near in edges.get(ahead.pop(), set()):
            if near not in reached:
                reached.add(near)
                ahead.append(near)
    return reached
