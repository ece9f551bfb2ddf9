"""Every Python block in the docs runs as it stands, every link leads somewhere, and every page is
found from the index.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("[A-Z]*.md"), *ROOT.glob("docs/**/*.md")])
INDEX = ROOT / "docs/README.md"
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.M | re.S)
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_the_docs_runs(block: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_first_steps_print_what_they_promise(tmp_path: Path) -> None:
    (block,) = re.findall(
        r"^```python\n(.*?)^```",
        (ROOT / "docs/guides/privacy-core.md").read_text(),
        flags=re.M | re.S,
    )
    run = subprocess.run(
        [sys.executable, "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "BUDGET_EXCEEDED {'monday'" in run.stdout
    assert "the book is sound: 4 entries" in run.stdout


def links_of(page: Path) -> list[Path]:
    """Where the links of a page lead that stay in the project."""
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    return [page.parent / link for link in links if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [str(link) for link in links_of(page) if not link.exists()] == []


def reached_from(page: Path) -> set[Path]:
    """Every page that can be reached by following links, a folder being none."""
    reached, waiting = set(), [page]
    while waiting:
        here = waiting.pop().resolve()
        if here not in reached and here.suffix == ".md" and here.exists():
            reached.add(here)
            waiting += links_of(here)
    return reached


def test_every_page_is_reached_from_the_first_one_and_from_the_index() -> None:
    below = {page.resolve() for page in ROOT.glob("docs/**/*.md")}
    for start, pages in {
        ROOT / "README.md": {page.resolve() for page in PAGES},
        INDEX: below,
    }.items():
        lost = pages - reached_from(start)
        assert sorted(str(page.relative_to(ROOT)) for page in lost) == [], start.name


def test_every_page_below_docs_is_named_by_the_index_of_its_part() -> None:
    """One click: the index itself, or the README of the folder that the page is in."""
    near = {
        page: {link.resolve() for link in links_of(page)}
        for page in PAGES
        if page.name == "README.md"
    }
    for page in ROOT.glob("docs/**/*.md"):
        if page != INDEX:
            own = near.get(page.parent / "README.md", set()) if page.name != "README.md" else set()
            assert page.resolve() in near[INDEX] | own, page.relative_to(ROOT)
