"""A tab of a real Chromium, driven through Playwright.

`Browsing.visit` fails on anything that the browser complains of, on a request that leaves the host,
and on every serious finding of axe-core, which comes from npm through the cache of servers and is
no part of the wheel.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import Page, Response

from devtools.servers.cache import Say
from tests.console.packages import ROOT, npm_package

__all__ = ["AXE", "DRESSES", "Browsing", "axe_source", "screenshots"]

# Console, width, colours: every two of them meet.
DRESSES = [
    ("embedded", 1280, "light"),
    ("embedded", 400, "dark"),
    ("remote", 1280, "dark"),
    ("remote", 400, "light"),
]

AXE = ("axe-core", "4.14.0")
_SERIOUS = ("serious", "critical")


def axe_source(say: Say) -> str:
    """The script of axe-core."""
    return (npm_package(*AXE, say) / "axe.min.js").read_text()


def screenshots() -> Path:
    """Where pictures of pages go."""
    folder = Path(os.environ.get("SAGE_SCREENSHOTS") or ROOT / ".artifacts/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass
class Browsing:
    """One tab on one console. ``expected`` are patterns of complaints that a test provokes."""

    page: Page
    base: str
    axe: str
    expected: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.on("console", lambda one: self._heard(one.type, one.text))
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.page.on("requestfailed", lambda request: self._failed(request))

    def visit(self, path: str, *, status: int = 200) -> Response:
        """Go there, and look at everything."""
        answer = self.page.goto(urljoin(self.base, path), wait_until="load")
        assert answer is not None
        assert answer.status == status, f"{path}: {answer.status}"
        self.check()
        return answer

    def check(self) -> None:
        """The page as it is now: quiet, at home, and for everybody."""
        found: list[dict[str, Any]] = self.page.evaluate(
            f"async () => {{ {self.axe}\n return (await window.axe.run()).violations; }}"
        )
        told = [
            f"{one['id']} ({one['impact']}): {one['help']}: "
            + "; ".join(node["html"][:160] for node in one["nodes"][:3])
            for one in found
            if one["impact"] in _SERIOUS
        ]
        assert not told, "\n".join(told)
        assert self.hosts <= {urlsplit(self.base).netloc}, self.hosts
        assert not self.complaints, "\n".join(self.complaints)

    def picture(self, name: str) -> Path:
        """A screenshot of the whole page."""
        path = screenshots() / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(re.search(one, text) for one in self.expected):
            self.complaints.append(f"{kind}: {text}")

    def _failed(self, request: Any) -> None:
        # A download is "failed" for a tab, and so is a stream of events that ends because the tab
        # moves on.
        if not request.url.partition("?")[0].endswith((".csv", ".svg", ".png", "-live")):
            self.complaints.append(f"failed: {request.url}: {request.failure}")
