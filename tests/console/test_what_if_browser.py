"""What if in a real Chromium: asked, looked at, corrected and applied, with scripts and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Route, expect

from ptkstore import Store
from ptkstore.console import DirectorySource
from tests.console.browsing import DRESSES, Browsing
from tests.console.running import Running, console
from tests.console.stores import lively

Browse = Callable[..., Browsing]
PAGES = {
    "what-if": "what-if?stream=rides",
    "what-if-empty": "what-if?stream=quiet",
    "what-if-answer": "what-if?stream=rides&retarget=too-sharp&to=0.1&drop=hour-spread",
    "what-if-terms": "what-if?stream=rides&epsilon=2",
    "what-if-infeasible": "what-if?stream=rides&retarget=hour-speed&to=0.001",
}
WRONG = "what-if?stream=rides&retarget=nobody&to=5&epsilon=-1&add=x&kind=&config=x&add_to=0.1"


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[tuple[Store, Running]]:
    """A console of a store that tests may change."""
    with Store(tmp_path, workers=0) as store:
        lively(store)
        with console(DirectorySource(store, "a directory")) as running:
            yield store, running


@pytest.mark.parametrize(("running", "width", "scheme"), DRESSES, indirect=["running"])
def test_in_every_dress(running: Running, browse: Browse, scheme: str, width: int) -> None:
    tab = browse(running.url, width=width, color_scheme=scheme)
    tab.visit(running.one_time_link())
    tab.expected.append("400")
    for name, path in (*PAGES.items(), ("what-if-wrong", WRONG)):
        tab.visit(path, status=400 if path == WRONG else 200)
        closed = tab.page.locator("main details:not([open]) > summary")
        while closed.count():
            closed.first.click()
        tab.check()
        tab.page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        tab.picture(f"{name}-{scheme}-{width}")
        wide = tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} wide"


def test_asked_corrected_and_applied_in_place(
    changing: tuple[Store, Running], browse: Browse
) -> None:
    store, running = changing
    tab = browse(running.url)
    tab.visit(running.one_time_link())
    tab.visit("plan?stream=rides")
    tab.page.get_by_role("link", name="what if?").click()
    expect(tab.page.get_by_role("heading", name="What it would cost")).to_be_visible()
    assert dict(parse_qsl(urlsplit(tab.page.url).query))["retarget"] == "too-sharp"
    tab.page.locator("#drop-new").fill("nobody")
    tab.page.get_by_role("button", name="Work out the plan").click()
    expect(tab.page.locator("#drop-1")).to_have_attribute("aria-invalid", "true")
    expect(tab.page.locator(".wrong")).to_contain_text("PTK_UNKNOWN")
    expect(tab.page.locator("#stale")).to_be_hidden()
    tab.check()
    tab.page.locator("#drop-1").fill("hour-fast")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".pair svg.plan-picture")).to_have_count(2)
    assert "drop=hour-fast" in tab.page.url
    tab.check()
    tab.expected.append("400")
    tab.page.go_back()
    expect(tab.page.locator(".wrong")).to_contain_text("PTK_UNKNOWN")
    tab.page.go_forward()
    expect(tab.page.locator(".pair svg.plan-picture")).to_have_count(2)
    tab.page.get_by_text("Apply these 2 changes").click()
    tab.page.get_by_role("button", name="Yes, apply").click()
    expect(tab.page.get_by_role("heading", name="Applied")).to_be_visible()
    tab.check()
    tab.picture("what-if-applied")
    assert store.ptk("too-sharp").status == "ACTIVE"
    assert store.ptk("hour-fast").status == "RETIRED"


def test_all_of_it_without_scripts(changing: tuple[Store, Running], browse: Browse) -> None:
    store, running = changing
    tab = browse(running.url, java_script_enabled=False)
    tab.page.goto(running.url + running.one_time_link())
    tab.page.goto(running.url + "what-if?stream=rides")
    tab.page.get_by_label("Retarget").fill("hour-speed")
    tab.page.get_by_label("New target").fill("0.3")
    tab.page.get_by_label("Fork", exact=True).fill("hour-counts")
    tab.page.get_by_label("Name of the fork").fill("hour-counts-2")
    tab.page.locator("#fork-new-to").fill("0.4")
    tab.page.get_by_role("button", name="Work out the plan").click()
    expect(tab.page.locator(".pair svg.plan-picture rect.bar").first).to_be_visible()
    tab.page.locator(".back").first.click()
    expect(tab.page.locator(".back")).to_have_count(1)
    tab.page.get_by_text("Apply this change").click()
    tab.page.get_by_role("button", name="Yes, apply").click()
    expect(tab.page.get_by_role("heading", name="Applied")).to_be_visible()
    assert (store.ptk("hour-speed").target, store.ptk("hour-counts-2").target) == (0.15, 0.4)
    tab.page.get_by_text("Approve a window of 12").click()
    tab.page.get_by_role("button", name="Yes, make the stream").click()
    expect(tab.page.get_by_role("heading", name="The new stream rides-12h")).to_be_visible()
    tab.page.get_by_text("Apply these 6 changes").click()
    tab.page.get_by_role("button", name="Yes, apply").click()
    expect(tab.page.get_by_role("heading", name="Applied")).to_be_visible()
    assert store.count_ptks("rides-12h") == {"ACTIVE": 6}


def test_the_button_says_that_it_works(changing: tuple[Store, Running], browse: Browse) -> None:
    tab = browse(changing[1].url)
    tab.visit(changing[1].one_time_link())
    tab.visit("what-if?stream=rides")
    expect(tab.page.locator("#busy")).to_be_hidden()
    held: list[Route] = []
    tab.page.route("**/what-if?*", lambda route: held.append(route), times=1)
    tab.page.locator("#epsilon").fill("2")
    button = tab.page.get_by_role("button", name="Work out the plan")
    button.click()
    expect(tab.page.locator("#busy")).to_be_visible()
    expect(button).to_be_disabled()
    held[0].continue_()
    expect(tab.page.get_by_role("heading", name="What it would cost")).to_be_visible()
    expect(tab.page.locator("#busy")).to_be_hidden()
    tab.check()
