"""A real Chromium: found on this machine, or installed by root; driven through Playwright, which brings none.

`Browsing.visit` fails on anything that the browser complains of, on a request that leaves the host, and on every serious
finding of axe-core, which comes from npm through the cache of servers and is no part of the wheel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import Page, Response

from tests.servers.cache import Say, ServerMissing, cached

__all__ = ["AXE", "Browsing", "axe_source", "chromium_program", "npm_package"]

ROOT = Path(__file__).parents[2]
AXE = ("axe-core", "4.14.0")
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_SERIOUS = ("serious", "critical")


def chromium_program(say: Say) -> Path:
    """Where a Chromium is; installed with apt where we are root and there is none."""
    own = os.environ.get("SAGE_CHROMIUM")
    for name in [own] if own else _PROGRAMS:
        found = shutil.which(name)
        if found:
            return Path(found)
    if own is None and os.geteuid() == 0 and shutil.which("apt-get"):
        say("chromium: installing it with apt-get")
        command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium"]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        found = shutil.which("chromium")
        if run.returncode == 0 and found:
            return Path(found)
    raise ServerMissing("there is no Chromium: install one, or name its program in SAGE_CHROMIUM")


def npm_package(name: str, version: str, say: Say) -> Path:
    """The files of a package of npm, as published."""
    npm = shutil.which("npm")

    def make(draft: Path) -> None:
        if npm is None:
            raise ServerMissing(f"{name} {version} comes from npm, which is not installed")
        say(f"{name} {version}: fetching it from npm")
        command = [npm, "pack", "--silent", f"{name}@{version}"]
        run = subprocess.run(command, cwd=draft, capture_output=True, text=True, check=False, timeout=300)
        packed = list(draft.glob("*.tgz"))
        if run.returncode or not packed:
            raise ServerMissing(
                f"{name} {version} cannot be had: npm failed with {run.returncode}: {run.stderr[-300:]}"
            )
        with tarfile.open(packed[0]) as archive:
            archive.extractall(draft, filter="data")
        packed[0].unlink()

    return cached(f"npm-{name}", version, make, say) / "package"


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
        # A download is "failed" for a tab.
        if not request.url.partition("?")[0].endswith(".csv"):
            self.complaints.append(f"failed: {request.url}: {request.failure}")
