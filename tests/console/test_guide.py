"""The guide to the console works word for word, and its pictures are of the pages that there
are.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ptkstore.console.pages import PAGES
from tests.cli.sage import environment
from tests.console.packages import ROOT
from tests.console.pictures import FOLDER, MOST_BYTES, PICTURES
from tests.console.running import Client
from tests.console.test_ui import started

GUIDE = (ROOT / "docs/guides/console.md").read_text()
COMMANDS = [one.strip() for one in re.findall(r"^```sh\n(.*?)^```", GUIDE, flags=re.M | re.S)]
SHOWN = re.findall(r"^!\[([^\]]+)\]\(console/([a-z-]+)\.png\)$", GUIDE, flags=re.M)


def run(command: str, cwd: Path) -> None:
    found = subprocess.run(
        ["/bin/sh", "-eu", "-c", command],
        cwd=cwd,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after the first command."""
    parts = tmp_path_factory.mktemp("console-guide")
    assert COMMANDS[0].startswith("python -m examples.taxi ")
    run(COMMANDS[0], parts)
    return parts


def test_the_console_of_the_demo_shows_what_the_guide_shows(walked: Path) -> None:
    name, verb, *arguments = shlex.split(COMMANDS[1])
    assert (name, verb) == ("sage", "ui")
    with started(*arguments, cwd=walked) as (url, _process):
        parts = urlsplit(url)
        client = Client(parts.port or 0)
        client.get(f"open?{parts.query}")
        pages = {name: client.get(path) for name, path in PICTURES.items()}
    assert {one.status for one in pages.values()} == {200}
    assert "1 PTK rejected" in pages["overview"].text
    assert "plan-picture" in pages["plan"].text
    assert "route-duration" in pages["plan"].text
    assert pages["operations"].text.count('class="steps"') == 3
    assert "hour-speed" in pages["ptk"].text


def test_a_plan_for_a_report(walked: Path) -> None:
    run(COMMANDS[2], walked)
    assert (walked / "plan.svg").read_text().startswith("<svg")


def test_every_command_is_run_here() -> None:
    assert len(COMMANDS) == 3


def test_every_picture_is_there_and_of_a_page_of_today() -> None:
    paths = {one.path for one in PAGES if one.method == "GET"}
    assert {name for _, name in SHOWN} == set(PICTURES) == {one.stem for one in FOLDER.glob("*")}
    assert set(PICTURES) <= paths
    assert {one.path for one in PAGES if one.label} <= set(PICTURES)
    for name, path in PICTURES.items():
        assert path.partition("?")[0] == name
        data = (FOLDER / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        assert 10_000 < len(data) < MOST_BYTES
    for text, _ in SHOWN:
        assert len(text) > 10


def test_the_tabs_and_roles_of_the_guide_are_those_of_the_pages() -> None:
    for one in PAGES:
        if one.under == "operations" and one.method == "GET":
            assert one.path.title() in GUIDE, one.path
    hidden = {
        one.path
        for one in PAGES
        if one.role == "operator" and one.method == "GET" and "." not in one.path
    }
    assert hidden >= {"deliveries", "doctor", "audit"}
