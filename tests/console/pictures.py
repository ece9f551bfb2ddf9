"""The pictures of the guide to the console: ``python -m tests.console.pictures [--store DIR]``
takes them again.

The demo fills a store (or one that it filled before is used), `sage ui`'s console shows it, and
Chromium looks at each page.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright
from rich.console import Console

from devtools.servers.cache import tell
from examples.taxi.demo import Options, run
from ptkstore import Store
from ptkstore.console import DirectorySource
from tests.console.packages import ROOT, chromium_program
from tests.console.running import console

__all__ = ["FOLDER", "MOST_BYTES", "PICTURES", "main"]

FOLDER = ROOT / "docs/guides/console"
MOST_BYTES = 150_000
# By the path of the page: where to look.
PICTURES: Mapping[str, str] = MappingProxyType(
    {
        "overview": "overview",
        "plan": "plan?stream=rides",
        "what-if": "what-if?stream=rides&retarget=route-duration&to=0.15&drop=zone-fare",
        "ptks": "ptks",
        "ptk": "ptk?name=hour-speed",
        "budget": "budget?stream=rides",
        "operations": "operations?stream=rides",
        "doctor": "doctor",
    }
)
_WIDE, _HIGH = 1100, 760


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(prog="python -m tests.console.pictures", description=__doc__)
    parser.add_argument(
        "--store", type=Path, metavar="DIR", help="a store that the demo filled (default: fill one)"
    )
    given = parser.parse_args().store
    with tempfile.TemporaryDirectory() as folder:
        place = given
        if place is None:
            place = Path(folder) / "store"
            run(
                Options(rows=40_000, windows=3, report=Path(folder), store=place),
                Console(quiet=True),
            )
        with Store(place, workers=0) as store, console(DirectorySource(store, "demo")) as running:
            _take(running.url, running.one_time_link())


def _take(url: str, link: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(chromium_program(tell)), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": _WIDE, "height": _HIGH}, color_scheme="light")
        tab.goto(url + link)
        for name, path in PICTURES.items():
            tab.goto(url + path)
            if name == "doctor":
                _examine(tab)
            if name == "what-if":
                # Below the form.
                tab.locator("#cost-title").evaluate(
                    "one => one.scrollIntoView({behavior: 'instant'})"
                )
            picture = FOLDER / f"{name}.png"
            tab.screenshot(path=picture)
            size = picture.stat().st_size
            assert size < MOST_BYTES, f"{picture.name} is too large: {size:,} bytes"
            tell(f"{picture.relative_to(ROOT)}: {size:,} bytes")
        browser.close()


def _examine(tab: Tab) -> None:
    tab.get_by_role("button", name="Examine it now").click()
    tab.locator(".findings").wait_for()


if __name__ == "__main__":
    main()
