"""Pictures as PNG: the shapes and the words of the SVG, twice as large, or an error that says what is missing."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import resvg_py

from allocator.picture import draw
from allocator.problem import Option, Problem, PtkOptions
from allocator.solve import solve
from ptklib.errors import SageError
from ptkstore import png
from tests.pixels import pixels

PROBLEM = Problem(10, None, tuple(PtkOptions(f"p{k}", (Option("0.1", 5, 100 + 40 * k),)) for k in range(4)))


@pytest.fixture(autouse=True)
def _fonts() -> Iterator[None]:
    png._family.cache_clear()
    yield
    png._family.cache_clear()


def test_it_has_the_size_the_shapes_and_the_words_of_the_svg() -> None:
    svg = draw(PROBLEM, solve(PROBLEM))
    size = re.search(r'width="(\d+)" height="(\d+)"', svg)
    assert size is not None
    found = pixels(png.png_of(svg))
    assert found.shape == (2 * int(size[2]), 2 * int(size[1]), 3)
    assert (found[0, 0] == 255).all()
    # Each bar is its colour where the SVG has it: in the middle, mixed with the white below as much as it is opaque.
    bars = re.findall(r'd="M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H[\d.]+Z[^"]*" fill="(#\w{6})"', svg)
    assert len(bars) == 4
    for left, top, right, bottom, colour in bars:
        y, x = round(float(top) + float(bottom)), round(float(left) + float(right))
        pure = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
        assert np.abs(found[y, x] - (0.85 * pure + 0.15 * 255)).max() < 2
    without = pixels(png.png_of(re.sub(r"<text[^>]*>.*?</text>", "", svg)))
    changed = (found != without).any(axis=2)
    for x, y in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" [^>]*text-anchor="start"', svg):
        across, down = round(2 * float(x)), round(2 * float(y))
        assert changed[down - 20 : down + 2, across : across + 40].sum() > 20


def test_the_reader_of_pixels_reads_every_kind_of_line() -> None:
    """A slope in two directions is packed with other filters than flat colours are; both are as they were drawn."""
    slope = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><defs><linearGradient id="g" x2="1" y2="1">'
        '<stop stop-color="#000"/><stop offset="1" stop-color="#fff"/></linearGradient></defs>'
        '<rect width="60" height="40" fill="url(#g)"/></svg>'
    )
    found = pixels(png.png_of(slope)).astype(int)
    steps = np.diff(found[:, :, 0], axis=1)
    assert found[0, 0, 0] < 3
    assert found[-1, -1, 0] > 252
    assert steps.min() >= 0
    assert steps.max() <= 3


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert not png.can_draw_png()
    with pytest.raises(SageError, match=r"pip install 'ptkstore\[png\]'") as raised:
        png.png_of("<svg/>")
    assert raised.value.reason == "PACKAGE_MISSING"


def test_without_a_font_there_is_no_picture_without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resvg_py, "svg_to_bytes", partial(resvg_py.svg_to_bytes, skip_system_fonts=True))
    with pytest.raises(SageError, match="fonts-dejavu-core") as raised:
        png.png_of(draw(PROBLEM, solve(PROBLEM)))
    assert raised.value.reason == "FONT_MISSING"
