"""``sage ui`` as people start it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ptkstore import Store
from tests.cli.sage import environment, sage
from tests.console.running import Client


@contextmanager
def started(
    *arguments: str, cwd: Path, **variables: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The link that it prints, and the process."""
    command = [
        sys.executable,
        "-c",
        "from ptkstore.cli import main; main(prog_name='sage')",
        "ui",
        "--json",
    ]
    with subprocess.Popen(
        [*command, "--no-open", "--address", "127.0.0.1:0", *arguments],
        cwd=cwd, env=environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            lines = ""
            while not lines.endswith("}\n"):
                line = process.stdout.readline()
                assert line, process.stderr.read() if process.stderr else ""
                lines += line
            yield json.loads(lines)["url"], process
        finally:
            if process.poll() is None:
                process.kill()


def test_it_opens_a_directory_with_links_that_work_once(tmp_path: Path) -> None:
    Store(tmp_path, workers=0).close()
    with started(cwd=tmp_path) as (url, process):
        parts = urlsplit(url)
        assert (parts.hostname, parts.path) == ("127.0.0.1", "/open")
        client = Client(parts.port or 0)
        assert client.get(f"open?{parts.query}").status == 303
        assert "No streams yet" in client.get("overview").text
        assert Client(parts.port or 0).get(f"open?{parts.query}").status == 403
        assert (
            Client(parts.port or 0, headers={"host": "evil.example"}).get("sign-in").status == 421
        )
        assert process.stderr is not None
        again = re.search(r"open\?key=\S+", process.stderr.readline())
        assert again is not None
        assert Client(parts.port or 0).get(again[0]).status == 303
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)
        assert "Traceback" not in process.stderr.read()


def test_it_looks_at_a_server_with_the_token_of_who_started_it(
    served: tuple[Store, str], tokens: dict[str, str], tmp_path: Path
) -> None:
    with started("--server", served[1], cwd=tmp_path, SAGE_TOKEN=tokens["developer"]) as (
        url,
        process,
    ):
        parts = urlsplit(url)
        client = Client(parts.port or 0)
        client.get(f"open?{parts.query}")
        page = client.get("overview").text
        assert "rides" in page
        assert "developer" in page
        process.terminate()
        process.wait(20)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--address", "0.0.0.0:0"), "CONSOLE_UNPROTECTED"),
        (("--address", "0.0.0.0:0", "--behind-proxy"), "CONSOLE_UNPROTECTED"),
        (("--address", "0.0.0.0:0", "--server", "localhost:7"), "CONSOLE_UNPROTECTED"),
        (("--address", "nonsense"), "ADDRESS_INVALID"),
        (("--server", "nonsense"), "ADDRESS_INVALID"),
        (("--root-path", "x/"), "VALUE_INVALID"),
        ((), "STORE_MISSING"),
    ],
)
def test_what_it_refuses(arguments: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    run = sage("ui", "--no-open", *arguments, cwd=tmp_path, code=2)
    assert reason in run.err
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    Store(tmp_path, workers=0).close()
    with started(cwd=tmp_path) as (url, _process):
        run = sage(
            "ui", "--no-open", "--address", f"127.0.0.1:{urlsplit(url).port}", cwd=tmp_path, code=2
        )
    assert "SERVER_ADDRESS_TAKEN" in run.err


def test_without_the_packages_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['starlette'] = None\nfrom ptkstore.cli import main\nmain(['ui'], prog_name='sage')"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ}, capture_output=True, text=True, check=False, timeout=60
    )  # fmt: skip
    assert run.returncode == 1
    assert "ptkstore[console]" in run.stderr
