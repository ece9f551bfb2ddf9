"""Pictures as PNG, for reports that take no SVG: the same shapes and words, twice as large, on
white.

resvg draws them with the fonts of the machine. It does not ask the machine which of them is
``sans-serif``, so usual ones are tried. Where none is there the words would be left out without a
complaint, so that is refused. Reasons: PACKAGE_MISSING, FONT_MISSING.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from ptklib.errors import SageError
from ptkstore.extras import package_missing

__all__ = ["PNG_SCALE", "can_draw_png", "png_of"]

PNG_SCALE = 2.0
_PACKAGE = "resvg_py"
_EMPTY = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40" width="40" height="40">{}</svg>'
)
_FAMILIES = (
    "Arial",
    "DejaVu Sans",
    "Liberation Sans",
    "Noto Sans",
    "Helvetica",
    "Roboto",
    "Ubuntu",
    "FreeSans",
    "Verdana",
)
_LETTER = '<text x="5" y="30" font-size="24" font-family="sans-serif">M</text>'


def can_draw_png() -> bool:
    """True where the package for it is installed."""
    return find_spec(_PACKAGE) is not None


def png_of(svg: str) -> bytes:
    """An SVG document as a PNG file, `PNG_SCALE` times its size."""
    if not can_draw_png():
        raise package_missing(_PACKAGE, "png")
    family = _family()
    if family is None:
        raise SageError(
            "FONT_MISSING",
            "this machine has no font for the words of a PNG: install one, like fonts-dejavu-core, "
            "or take the SVG",
        )
    return _drawn(svg, family)


@cache
def _family() -> str | None:
    """A sans-serif that the machine has."""
    return next(
        (
            family
            for family in _FAMILIES
            if _drawn(_EMPTY.format(_LETTER), family) != _drawn(_EMPTY.format(""), family)
        ),
        None,
    )


def _drawn(svg: str, family: str) -> bytes:
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=svg, zoom=PNG_SCALE, background="white", sans_serif_family=family
    )
