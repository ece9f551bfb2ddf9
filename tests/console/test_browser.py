"""The pages in a real Chromium: nothing complained of, nothing asked of another host, nothing
seriously inaccessible.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from ptkstore import Store
from ptkstore.console import DirectorySource
from tests.console.browsing import DRESSES, Browsing
from tests.console.proxying import proxy
from tests.console.running import Running, console

Browse = Callable[..., Browsing]
PATHS = {
    "overview": "overview",
    "plan": "plan?stream=rides",
    "plan-empty": "plan?stream=quiet",
    "ptks": "ptks",
    "ptk": "ptk?name=hour-speed",
    "ptk-rejected": "ptk?name=too-sharp",
    "budget": "budget?stream=rides",
    "budget-empty": "budget?stream=quiet",
    "operations": "operations?stream=rides",
    "operations-empty": "operations?stream=quiet",
    "events": "events",
    "deliveries": "deliveries",
    "doctor": "doctor",
    "audit": "audit",
    "what-if": "what-if?stream=rides",
}


@pytest.mark.parametrize(("running", "width", "scheme"), DRESSES, indirect=["running"])
def test_every_page_in_every_dress(
    running: Running, browse: Browse, scheme: str, width: int
) -> None:
    tab = browse(running.url, width=width, color_scheme=scheme)
    tab.visit("sign-in")
    tab.picture(f"sign-in-{scheme}-{width}")
    tab.visit(running.one_time_link())
    for name, path in PATHS.items():
        tab.visit(path)
        tab.picture(f"{name}-{scheme}-{width}")
        wide = tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} wide"
        tabs = tab.page.locator(".bar nav a")
        for box in (tabs.nth(place).bounding_box() for place in range(tabs.count())):
            assert box is not None
            assert box["x"] >= 0, path
            assert box["x"] + box["width"] <= width, f"{path}: a tab is off the screen"
    tab.page.locator("details.me summary").click()
    tab.check()
    tab.expected.append("404")
    tab.visit("nowhere", status=404)
    tab.picture(f"error-{scheme}-{width}")


def test_the_checks_notice_what_they_are_for(embedded: Running, browse: Browse) -> None:
    tab = browse(embedded.url)
    tab.visit(embedded.one_time_link())
    tab.page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=\"static/sage.svg\">')"
    )
    with pytest.raises(AssertionError, match="image-alt"):
        tab.check()
    tab = browse(embedded.url)
    tab.visit(embedded.one_time_link())
    tab.page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p>')"
    )
    with pytest.raises(AssertionError, match="Content Security Policy"):
        tab.check()
    tab = browse(embedded.url)
    tab.visit(embedded.one_time_link())
    tab.page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    with pytest.raises(AssertionError, match=r"127\.0\.0\.1:9"):
        tab.check()


def test_scripts_that_slip_in_do_nothing(embedded: Running, browse: Browse) -> None:
    tab = browse(embedded.url)
    tab.visit(embedded.one_time_link())
    tab.expected.append("Content Security Policy")
    for text in ("window.hit = 1", "eval('window.hit = 1')"):
        tab.page.evaluate(
            "text => { const s = document.createElement('script'); s.textContent = text; document.body.append(s); }",
            text,
        )
    tab.page.evaluate("() => { try { htmx.trigger(document.body, 'x'); } catch (error) {} }")
    assert tab.page.evaluate("window.hit") is None
    assert tab.page.evaluate("htmx.config.allowEval") is False


def test_a_token_signs_in_and_out(remote: Running, tokens: dict[str, str], browse: Browse) -> None:
    tab = browse(remote.url)
    tab.visit("")
    assert urlsplit(tab.page.url).path == "/sign-in"
    expect(tab.page.get_by_label("Token")).to_be_focused()
    tab.page.keyboard.type(tokens["reader"])
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", name="Overview")).to_be_visible()
    tab.check()
    assert tokens["reader"] not in tab.page.content()
    tab.page.locator("details.me summary").click()
    tab.page.get_by_role("button", name="Sign out").click()
    expect(tab.page.get_by_role("heading", name="Sage console")).to_be_visible()
    tab.page.goto(remote.url + "overview")
    assert urlsplit(tab.page.url).path == "/sign-in"


def test_the_theme_is_kept_and_comes_back_to_the_page(embedded: Running, browse: Browse) -> None:
    tab = browse(embedded.url, color_scheme="light")
    tab.visit(embedded.one_time_link())
    tab.visit("plan?stream=rides")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(ground)
    tab.page.locator("details.me summary").click()
    tab.page.get_by_role("button", name="Dark").click()
    expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")
    assert urlsplit(tab.page.url).query == "stream=rides"
    assert tab.page.evaluate(ground) != light
    tab.check()
    tab.visit("overview")
    expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")


def test_searching_as_one_types(running: Running, browse: Browse) -> None:
    tab = browse(running.url)
    tab.visit(running.one_time_link())
    tab.visit("plan?stream=rides")
    tab.page.locator("h1").click()
    tab.page.keyboard.press("/")
    expect(tab.page.locator("#find")).to_be_focused()
    tab.page.keyboard.type("spread")
    expect(tab.page.locator("#ptks tbody tr")).to_have_count(1)
    expect(tab.page.locator("#find")).to_be_focused()
    assert "find=spread" in tab.page.url
    tab.check()
    tab.page.locator("#find").fill("zzz")
    expect(tab.page.locator("#ptks")).to_contain_text("No PTKs match")
    tab.check()


def test_the_keyboard_reaches_everything(embedded: Running, browse: Browse) -> None:
    tab = browse(embedded.url)
    tab.visit(embedded.one_time_link())
    tab.page.keyboard.press("Tab")
    expect(tab.page.locator(".skip")).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#main")).to_be_focused()
    tab.visit("plan?stream=rides")
    seen = []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        seen.append(
            tab.page.evaluate(
                "(document.activeElement.innerText || document.activeElement.id || '').trim()"
            )
        )
    assert {"Overview", "Plan", "CSV", "find", "Epsilon"} <= {one.split("\n")[0] for one in seen}
    summary = tab.page.locator("details.me summary")
    summary.focus()
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("button", name="Sign out")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(summary).to_be_focused()
    # Whoever uses the keyboard sees where they are.
    assert tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_scripts_plans_are_read_searched_and_turned(
    running: Running, browse: Browse
) -> None:
    tab = browse(running.url, java_script_enabled=False)
    tab.page.goto(running.url + running.one_time_link())
    tab.page.goto(running.url + "plan")
    tab.page.locator("select[name=stream]").select_option("rides")
    tab.page.get_by_role("button", name="Show").click()
    expect(tab.page.get_by_role("heading", name="Plan of rides")).to_be_visible()
    expect(tab.page.locator("svg.plan-picture rect.bar").first).to_be_visible()
    tab.page.locator("#find").fill("spread")
    tab.page.get_by_role("button", name="Search").click()
    expect(tab.page.locator("#ptks tbody tr")).to_have_count(1)
    tab.page.get_by_role("link", name="Samples").click()
    expect(tab.page.locator("th[aria-sort=ascending]")).to_have_text("Samples")
    tab.page.locator("details.me summary").click()
    tab.page.get_by_role("button", name="Dark").click()
    expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")


def test_below_a_prefix_of_a_proxy_that_was_never_mentioned(
    embedded: Running, browse: Browse
) -> None:
    with proxy(embedded.port, "/tools/sage") as url:
        tab = browse(url)
        tab.visit(embedded.one_time_link())
        assert urlsplit(tab.page.url).path == "/tools/sage/overview"
        (session,) = [
            one for one in tab.page.context.cookies() if one.get("name") == "sage_session"
        ]
        assert session.get("path") == "/tools/sage"
        tab.page.get_by_role("link", name="Plan", exact=True).click()
        expect(tab.page.get_by_role("heading", name="Plan of")).to_be_visible()
        tab.page.locator("details.me summary").click()
        tab.page.get_by_role("button", name="Light").click()
        expect(tab.page.locator("html")).to_have_attribute("data-theme", "light")
        tab.check()
        tab.page.locator("details.me summary").click()
        tab.page.get_by_role("button", name="Sign out").click()
        expect(tab.page.get_by_role("heading", name="Sage console")).to_be_visible()
        assert urlsplit(tab.page.url).path == "/tools/sage/sign-in"


def test_the_overview_renews_itself_and_says_when_it_cannot(store: Store, browse: Browse) -> None:
    with console(DirectorySource(store, "x")) as running:
        tab = browse(running.url)
        tab.visit(running.one_time_link())
        # What it does every 15 seconds.
        with tab.page.expect_response(lambda answer: "overview" in answer.url) as told:
            tab.page.evaluate(
                "htmx.ajax('GET', 'overview', {source: '#live', target: '#live', select: '#live', swap: 'outerHTML'})"
            )
        assert told.value.request.headers["x-background"] == "1"
        expect(tab.page.locator("#live")).to_have_count(1)
        tab.check()
        expect(tab.page.locator("#stale")).to_be_hidden()
    tab.expected += ["ERR_CONNECTION_REFUSED", "htmx:sendError", "Failed to load"]
    tab.page.evaluate(
        "htmx.ajax('GET', 'overview', {source: '#live', target: '#live', select: '#live'}).catch(() => 0)"
    )
    expect(tab.page.locator("#stale")).to_be_visible()


def test_an_empty_store(empty_store: Store, browse: Browse) -> None:
    with console(DirectorySource(empty_store, "x")) as running:
        tab = browse(running.url)
        tab.visit(running.one_time_link())
        tab.picture("overview-empty")
        tab.visit("plan")
