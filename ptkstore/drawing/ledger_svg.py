"""The ledger as SVG inside a page: blocks along x, ranges of tags along y, darker where more of
epsilon is spent; and what is left of each block. Colours are classes of the style sheet; the same
numbers are in the table beside each picture.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from ptkstore.api.views import LedgerColumn, LedgerMap

__all__ = ["STEPS", "burn_down", "heat_map", "step_of"]

# 0 is nothing at all, the others are tenths that begin above nothing.
STEPS = 11
_WIDTH = 960.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 56.0, 12.0, 12.0, 44.0
_TALL = 288.0
_LOW = 180.0
_WIDEST = 240.0
_LETTERS = 17


def step_of(share: float) -> int:
    """The step of the colour of a share: 0 for nothing, 1 for up to a tenth, 10 for all."""
    return 0 if share <= 0 else min(STEPS - 1, max(1, -int(-share * 10 // 1)))


def heat_map(book: LedgerMap) -> Markup:
    """The SVG element, or nothing where there are no blocks."""
    if not book.columns:
        return Markup("")
    wide = min(_WIDEST, _WIDTH / len(book.columns))
    shapes: dict[str, list[str]] = defaultdict(list)
    flats, titles = [], []
    for place, column in enumerate(book.columns):
        x = _LEFT + place * wide
        for low, high, share in _runs(column.shares):
            top, tall = (
                _TOP + _TALL * (1 - high / len(column.shares)),
                _TALL * (high - low) / len(column.shares),
            )
            shapes[f"h{step_of(share)}"].append(
                f"M{x:.1f} {top:.1f}h{wide:.2f}v{tall:.1f}h-{wide:.2f}z"
            )
        if column.flat:
            flats.append(f"M{x:.1f} {_TOP + _TALL + 2:g}h{wide:.2f}v4h-{wide:.2f}z")
        told = escape(_told(column))
        titles.append(
            f'<rect class="see" x="{x:.1f}" y="{_TOP:g}" width="{wide:.2f}" height="{_TALL:g}"><title>{told}</title></rect>'
        )
    right = _LEFT + wide * len(book.columns)
    parts = [f'<path class="{name}" d="{"".join(shapes[name])}"/>' for name in sorted(shapes)]
    parts += [f'<path class="flat" d="{"".join(flats)}"/>'] if flats else []
    parts += [
        f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{_TOP + _TALL:g}H{right:.1f}"/>',
        _text(_LEFT - 8, _TOP + 10, "all tags", "end"),
        _text(_LEFT - 8, _TOP + _TALL / 2 + 4, "half", "end"),
        _text(_LEFT - 8, _TOP + _TALL, "0", "end"),
        *_names(book.columns, wide, _TOP + _TALL + 22),
        *titles,
    ]
    what = f"Budget spent at {book.count:,} blocks of {book.stream} and their tags"
    return _svg("chart heat", parts, _TOP + _TALL + _BOTTOM, what)


def burn_down(book: LedgerMap) -> Markup:
    """What is left of each block: at its worst tags, and on average over all tags."""
    if not book.columns:
        return Markup("")
    wide = min(_WIDEST, _WIDTH / len(book.columns))
    bottom, right = _TOP + _LOW, _LEFT + wide * len(book.columns)

    def line(lefts: Sequence[float]) -> str:
        steps = [
            f"{'M' if k == 0 else 'L'}{_LEFT + k * wide:.1f} {bottom - _LOW * left:.1f}h{wide:.2f}"
            for k, left in enumerate(lefts)
        ]
        return "".join(steps)

    worst = [max(0.0, 1 - max(column.shares)) for column in book.columns]
    mean = [max(0.0, 1 - column.mean) for column in book.columns]
    area = f"M{_LEFT:g} {bottom:g}" + line(worst).replace("M", "L", 1) + f"V{bottom:g}Z"
    parts = [
        *(
            f'<path class="grid" d="M{_LEFT:g} {bottom - _LOW * left:.1f}H{right:.1f}"/>'
            for left in (0.25, 0.5, 0.75, 1.0)
        ),
        f'<path class="band" d="{area}"/>',
        f'<path class="curve mean" d="{line(mean)}"/>',
        f'<path class="curve" d="{line(worst)}"/>',
        f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{bottom:g}H{right:.1f}"/>',
        *(
            _text(_LEFT - 8, bottom - _LOW * left + 4, f"{left:.0%}", "end")
            for left in (0.0, 0.5, 1.0)
        ),
        *_names(book.columns, wide, bottom + 20),
    ]
    return _svg(
        "chart burn",
        parts,
        bottom + _BOTTOM,
        f"Budget left at {book.count:,} blocks of {book.stream}",
    )


def _runs(shares: Sequence[float]) -> list[tuple[int, int, float]]:
    """Neighbours of one colour as (from, to, share)."""
    runs: list[tuple[int, int, float]] = []
    for place, share in enumerate(shares):
        if runs and step_of(runs[-1][2]) == step_of(share):
            runs[-1] = (runs[-1][0], place + 1, share)
        else:
            runs.append((place, place + 1, share))
    return runs


def _told(column: LedgerColumn) -> str:
    blocks = (
        column.first
        if column.blocks == 1
        else f"{column.first} to {column.last} ({column.blocks} blocks)"
    )
    status = (
        "closed"
        if column.retired == column.blocks
        else "alive"
        if not column.retired
        else f"{column.retired} closed"
    )
    return f"{blocks}, {status}: at most {max(column.shares):.1%} of epsilon spent, {column.mean:.1%} on average"


def _names(columns: Sequence[LedgerColumn], wide: float, y: float) -> list[str]:
    """The names of some blocks, as many as there is room for."""
    step = max(1, int(130 / wide) + 1)
    parts = []
    for place in range(0, len(columns), step):
        name = columns[place].first
        short = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
        x = _LEFT + place * wide
        parts.append(f'<path class="axis" d="M{x:.1f} {y - 16:.1f}v5"/>')
        parts.append(_text(x, y, short, "start"))
    return parts


def _svg(name: str, parts: Sequence[str], height: float, what: str) -> Markup:
    box = f'viewBox="0 0 {_LEFT + _WIDTH + _RIGHT:g} {height:g}"'
    # Texts were escaped where they were put in.
    return Markup(  # noqa: S704
        f'<svg class="{name}" {box} role="img" aria-label="{escape(what)}">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text class="label" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
