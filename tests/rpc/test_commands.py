"""``sage serve`` and ``sage token`` as processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ptklib.errors import SageError
from ptkstore import Store
from ptkstore.wire.faults import AccessDenied
from tests.cli.sage import environment, sage
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, day, spec
from tests.rpc.store_suite import filled


@contextmanager
def served(
    path: Path, *arguments: str, **variables: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``sage serve`` on a free port, ended by SIGTERM."""
    command = [
        sys.executable,
        "-c",
        "from ptkstore.cli import main; main()",
        "serve",
        "--json",
        *arguments,
    ]
    ours = {"SAGE__SERVER__ADDRESS": "127.0.0.1:0", "SAGE__WORKERS__PROCESSES": "0"}
    env = environment(**ours, **variables)
    with subprocess.Popen(
        command, cwd=path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            if not line:
                raise AssertionError(process.stderr.read() if process.stderr else "")
            text += line
        try:
            yield json.loads(text)["address"], process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(30)


def test_serving_from_nothing_and_draining_on_sigterm(tmp_path: Path) -> None:
    with served(tmp_path) as (address, process):
        with Store(address) as store:
            filled(store)
            (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert cycle.trained[0].outcome == "PUBLISHED"
            assert (
                sage("ptk", "list", "--store", address, "--json", cwd=tmp_path).json[0]["name"]
                == "hour-speed"
            )
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert {line["event"] for line in lines} <= {"changed", "refused"}
        assert CANARY not in str(lines)
    with Store(tmp_path, workers=0) as store:
        assert store.states("hour-speed")[0].version == 1


def test_a_process_that_is_killed_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with served(tmp_path) as (address, process):
        with Store(address) as store:
            filled(store)
        process.kill()
        process.wait(30)
    with served(tmp_path) as (address, _), Store(address) as store:
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert abs(cycle.dp_records - 4000) < 200


def test_it_does_not_start_where_it_would_be_open_to_all(tmp_path: Path) -> None:
    refused = sage("serve", "--address", "0.0.0.0:0", "--json", cwd=tmp_path, code=2)
    assert refused.error["reason"] == "SERVER_UNPROTECTED"
    (tmp_path / "sage.yaml").write_text("server: {adress: x}\n")
    wrong = sage("serve", "--json", cwd=tmp_path, code=2)
    assert wrong.error["reason"] == "SETTINGS_KEY_UNKNOWN"


def test_tokens_beside_a_running_server(tmp_path: Path) -> None:
    with served(tmp_path, SAGE__AUTH__REQUIRED="true") as (address, _):
        made = sage(
            "token", "create", "boss", "--role", "operator", "--days", "1", "--json", cwd=tmp_path
        ).json
        assert re.fullmatch(r"sage_[0-9a-f]{12}_[\w-]{43}", made["token"])
        with Store(address, token=made["token"]) as store:
            store.create_stream(spec())
        limited = sage(
            "token", "create", "depot", "--role", "producer", "--stream", "rides", cwd=tmp_path
        ).out.strip()
        with Store(address, token=limited) as store:
            store.push("rides", day(0))
            with pytest.raises(AccessDenied, match="PERMISSION_DENIED"):
                store.budget("rides")
        listed = sage("token", "list", "--json", cwd=tmp_path).json
        assert [(one["name"], one["streams"]) for one in listed] == [
            ("boss", []),
            ("depot", ["rides"]),
        ]
        assert "secret" not in json.dumps(listed)
        assert sage("token", "revoke", "depot", cwd=tmp_path).out == "revoked depot\n"
        own = {"SAGE_TOKEN": made["token"]}
        listed = sage("stream", "list", "--store", address, "--json", cwd=tmp_path, **own).json
        assert [one["name"] for one in listed] == ["rides"]
        refused = sage("stream", "list", "--store", address, "--json", cwd=tmp_path, code=1).error
        assert refused["reason"] == "CREDENTIALS_MISSING"
    taken = sage("token", "create", "boss", "--role", "reader", "--json", cwd=tmp_path, code=1)
    assert taken.error["reason"] == "TOKEN_EXISTS"
    wrong = sage("token", "create", "x", "--role", "root", "--json", cwd=tmp_path, code=2)
    assert wrong.error["reason"] == "ROLE_UNKNOWN"


def test_a_store_that_is_not_there_has_no_tokens(tmp_path: Path) -> None:
    refused = sage(
        "token", "list", "--store", str(tmp_path / "none"), "--json", cwd=tmp_path, code=2
    )
    assert refused.error["reason"] == "STORE_MISSING"
    assert not (tmp_path / "none").exists()


def test_without_grpc_an_address_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ptkstore.client.store", None)
    with pytest.raises(SageError, match=r"PACKAGE_MISSING"):
        Store("localhost:1")
