"""Where no plan fits: what the stream allows beside what would do, as bars.

Each row is one change that is known to be enough by itself (`ptkstore.api.views.remedies`): the
full bar is what would do, its dark part what there is. Public numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views.remedies import Remedy
from ptkstore.drawing.style import text_part

__all__ = ["draw_needed"]

_LEFT, _WIDTH, _ROW, _BAR = 130.0, 620.0, 54.0, 20.0


def draw_needed(spec: StreamSpec, remedies: Sequence[Remedy]) -> Markup:
    """The SVG element, or nothing where no change has a number of the stream's."""
    rows = [row for remedy in remedies if (row := _row(spec, remedy)) is not None]
    if not rows:
        return Markup("")
    parts: list[str] = []
    for number, (name, there, enough, words) in enumerate(rows):
        top = 10 + _ROW * number
        wide = _WIDTH * min(1.0, there / enough)
        parts.append(text_part(_LEFT - 12, top + _BAR - 5, name, "end", "name"))
        parts.append(
            f'<rect class="before" x="{_LEFT:g}" y="{top:g}" width="{wide:.1f}" height="{_BAR:g}"/>'
        )
        parts.append(
            f'<rect class="ceiling" x="{_LEFT:g}" y="{top:g}" width="{_WIDTH:g}" height="{_BAR:g}"/>'
        )
        parts.append(text_part(_LEFT, top + _BAR + 16, words, "start"))
    label = escape("No plan fits: " + "; ".join(f"{name}, {words}" for name, *_, words in rows))
    box = f'viewBox="0 0 {_LEFT + _WIDTH + 12:g} {10 + _ROW * len(rows):g}"'
    # Texts were escaped where they were put in.
    return Markup(  # noqa: S704
        f'<svg class="plan-picture needed" {box} role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )


def _row(spec: StreamSpec, remedy: Remedy) -> tuple[str, float, float, str] | None:
    """Its name, what there is, what would do, and both in words."""
    if remedy.ptk is not None or remedy.value is None:
        return None
    enough = float(remedy.value)
    if remedy.kind == "epsilon":
        there = float(spec.policy.epsilon)
        words = f"{there:.4g} is promised, {enough:.4g} would do"
    elif remedy.kind == "n_max":
        there = float(spec.n_max)
        words = f"{there:,.0f} may be held, {enough:,.0f} would do"
    else:
        return None
    name = "epsilon" if remedy.kind == "epsilon" else "records"
    return (name, there, enough, words) if enough > there else None
