"""The pages about operations in a real Chromium: live, below a prefix of a proxy, and with scripts
switched off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from ptkstore import Store
from ptkstore.console import DirectorySource
from ptkstore.console.pages import PAGES
from tests.console.browsing import Browsing
from tests.console.proxying import proxy
from tests.console.running import Running, console
from tests.console.test_browser import PATHS
from tests.console.test_operations import Held
from tests.rpc.store_suite import filled

Browse = Callable[..., Browsing]
PREFIX = "/tools/sage"


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[tuple[Store, Running]]:
    """A store that may be changed, with a dead letter, and its console."""
    with Store(tmp_path, workers=0) as store:
        filled(store, 2)
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named("hour-speed").id, "127.0.0.1:7401")
            tx.notifications.put(
                one.id, 1, attempts=9, status="DEAD", reason="UNAVAILABLE", due_ms=0
            )
        with console(DirectorySource(store, "x")) as running:
            yield store, running


def test_below_a_prefix_steps_are_seen_as_they_are_written(
    changing: tuple[Store, Running], browse: Browse
) -> None:
    store, running = changing
    held = Held(store)
    with proxy(running.port, PREFIX) as url:
        tab = browse(url)
        tab.visit(running.one_time_link())
        tab.visit("operations?stream=rides")
        tab.page.get_by_text("Run the windows that are complete").click()
        tab.page.get_by_label("All records have arrived up to").fill("nonsense")
        tab.expected.append("400")
        tab.page.get_by_role("button", name="Run them now").click()
        expect(tab.page.locator("#until-wrong")).to_contain_text("TIME_INVALID")
        expect(tab.page.get_by_label("All records have arrived up to")).to_have_value("nonsense")
        tab.check()
        tab.page.get_by_label("All records have arrived up to").fill("2026-01-02")
        tab.page.get_by_role("button", name="Run them now").click()
        expect(
            tab.page.get_by_role("status").filter(has_text="are being worked on")
        ).to_be_visible()
        assert urlsplit(tab.page.url).path == PREFIX + "/operations"
        # Nothing but events changes the page from here on.
        tab.page.evaluate("window.kept = true")
        expect(tab.page.locator(".steps .now")).to_have_text("sealed (now)")
        tab.check()
        tab.picture("operations-running")
        held.free["sealed"].set()
        expect(tab.page.locator(".steps .now")).to_have_text("profiled (now)")
        held.free["profiled"].set()
        held.free["planned"].set()
        expect(tab.page.locator(".steps .now")).to_have_text("reserved (now)")
        for one in held.free.values():
            one.set()
        expect(tab.page.locator(".steps .done")).to_have_count(9)
        expect(tab.page.locator(".cycles .badge").first).to_have_text("done")
        assert tab.page.evaluate("window.kept") is True
        tab.check()


def test_below_a_prefix_every_page_and_form_works(
    changing: tuple[Store, Running], embedded: Running, browse: Browse
) -> None:
    with proxy(embedded.port, PREFIX) as url:
        tab = browse(url)
        tab.visit(embedded.one_time_link())
        for path in PATHS.values():
            tab.visit(path)
            assert urlsplit(tab.page.url).path.startswith(PREFIX + "/")
    _store, running = changing
    with proxy(running.port, PREFIX) as url:
        tab = browse(url)
        tab.visit(running.one_time_link())
        tab.page.get_by_role("link", name="Operations", exact=True).click()
        tab.page.get_by_role("link", name="Deliveries").click()
        tab.page.get_by_text("Try again").click()
        tab.check()
        tab.picture("deliveries-confirm")
        tab.page.get_by_role("button", name="Try it now").click()
        expect(tab.page.get_by_role("status").filter(has_text="is due now")).to_be_visible()
        tab.page.get_by_role("link", name="Doctor").click()
        tab.page.get_by_role("button", name="Examine it now").click()
        expect(
            tab.page.get_by_role("heading", name=re.compile(r"1 of \d+ findings needs somebody"))
        ).to_be_visible()
        assert urlsplit(tab.page.url).path == PREFIX + "/doctor"
        tab.check()
        tab.picture("doctor-findings")
        tab.page.get_by_role("link", name="Events", exact=True).click()
        tab.page.locator("#find").fill("stream")
        expect(tab.page.locator("#events tbody tr")).to_have_count(1)
        tab.check()


def test_without_scripts_everything_is_read_and_done(
    changing: tuple[Store, Running], browse: Browse
) -> None:
    store, running = changing
    tab = browse(running.url, java_script_enabled=False)
    tab.page.goto(running.url + running.one_time_link())
    for one in PAGES:
        if one.method == "GET" and (one.label or one.under):
            answer = tab.page.goto(f"{running.url}{one.path}?stream=rides")
            assert answer is not None
            assert answer.status == 200, one.path
            expect(tab.page.locator("h1")).to_be_visible()
    tab.page.goto(running.url + "operations?stream=rides")
    tab.page.get_by_text("Run the windows that are complete").click()
    tab.page.get_by_label("All records have arrived up to").fill("2026-01-02")
    tab.page.get_by_role("button", name="Run them now").click()
    expect(tab.page.get_by_role("status").filter(has_text="are being worked on")).to_be_visible()
    while [one.status for one in store.cycles("rides")] != ["DONE"]:
        tab.page.wait_for_timeout(50)
    tab.page.reload()
    expect(tab.page.locator(".steps .done")).to_have_count(9)
    tab.page.goto(running.url + "deliveries")
    tab.page.get_by_text("Try again").click()
    tab.page.get_by_role("button", name="Try it now").click()
    expect(tab.page.get_by_text("is due now")).to_be_visible()
    tab.page.goto(running.url + "doctor")
    tab.page.get_by_label("Texts that must be nowhere").fill("abc")
    tab.page.get_by_role("button", name="Examine it now").click()
    expect(tab.page.locator("#canaries-wrong")).to_contain_text("VALUE_INVALID")
    tab.page.get_by_label("Texts that must be nowhere").fill("some text")
    tab.page.get_by_role("button", name="Examine it now").click()
    expect(tab.page.locator(".findings > li").first).to_be_visible()
    tab.page.goto(running.url + "events")
    tab.page.locator("#find").fill("created")
    tab.page.get_by_role("button", name="Search").click()
    expect(tab.page.locator("#events tbody tr")).to_have_count(1)
