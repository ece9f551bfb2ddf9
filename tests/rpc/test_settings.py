"""Settings: one file and the environment, strict, and silent about secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptkstore.api.references import is_loopback
from ptkstore.cli.project.declaration import SETTINGS, Project
from ptkstore.server import open_store
from ptkstore.settings import DECLARATIONS, Settings

SECRET = "hunter2-secret"


def read(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "sage.yaml"
    path.write_text(text)
    return Settings.read(path)


def test_without_anything_it_is_loopback_and_the_directory(tmp_path: Path) -> None:
    for settings in (Settings.read(), read(tmp_path, ""), read(tmp_path, "# nothing\n")):
        assert settings.server.address == "127.0.0.1:7070"
        assert settings.anonymous
        settings.require_protection()
    with open_store(tmp_path / "store", Settings.read()) as store:
        assert store.streams() == []


def test_the_file_is_read_and_variables_go_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""
streams: []
ptks: []
server: {{address: "127.0.0.1:9000", threads: 16, watchers: 4}}
auth: {{certificates: {{depot: {{roles: [producer], streams: [rides]}}}}}}
lake: {{endpoint: "http://localhost:9", bucket: sage, secret_key: {SECRET}}}
"""
    found = read(tmp_path, text)
    assert (found.server.threads, found.auth.certificates["depot"].streams) == (16, ("rides",))
    monkeypatch.setenv("SAGE__SERVER__ADDRESS", "127.0.0.1:9001")
    monkeypatch.setenv("SAGE__WORKERS__PROCESSES", "0")
    found = read(tmp_path, text)
    assert (found.server.address, found.server.threads, found.workers.processes) == (
        "127.0.0.1:9001",
        16,
        0,
    )
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ("server: {adress: x}", "SETTINGS_KEY_UNKNOWN", "did you mean 'server.address'"),
        ("sever: {}", "SETTINGS_KEY_UNKNOWN", "did you mean 'server'"),
        ("server: {tls: {cert: a}}", "SETTINGS_INVALID", "server.tls.cert_file"),
        ("server: {threads: many}", "SETTINGS_INVALID", "server.threads"),
        ("server: {threads: 8, watchers: 8}", "SETTINGS_INVALID", "watchers must leave"),
        (f"server: {{address: {SECRET}}}", "SETTINGS_INVALID", "address must be host:port"),
        ("server: {address: '127.0.0.1:99999'}", "SETTINGS_INVALID", "address must be host:port"),
        (
            "auth: {certificates: {a: {roles: [root]}}}",
            "SETTINGS_INVALID",
            "auth.certificates.a.roles",
        ),
        ("auth: {certificates: {a: {roles: []}}}", "SETTINGS_INVALID", "auth.certificates.a.roles"),
        (f"metadata: {{url: [{SECRET}]}}", "SETTINGS_INVALID", "metadata.url"),
        (f"lake: {{endpoint: {SECRET}}}", "SETTINGS_INVALID", "endpoint and bucket"),
        ("- a", "SETTINGS_UNREADABLE", "sections"),
        (f"server: {{{SECRET}", "SETTINGS_UNREADABLE", "line 1"),
        ("1: 2", "SETTINGS_UNREADABLE", "sections"),
        ("!!python/object/apply:os.system ['true']", "SETTINGS_UNREADABLE", "not YAML"),
    ],
)
def test_what_is_wrong_is_named_and_values_are_not(
    tmp_path: Path, text: str, reason: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        read(tmp_path, text)
    assert error.value.reason == reason
    assert words in error.value.message
    assert SECRET not in str(error.value)


def test_variables_that_mean_nothing_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGE__SERVR__ADDRESS", "x")
    with pytest.raises(InvalidInput, match="SETTINGS_KEY_UNKNOWN"):
        Settings.read()
    monkeypatch.delenv("SAGE__SERVR__ADDRESS")
    monkeypatch.setenv("SAGE__SERVER__ADRESS", "x")
    with pytest.raises(InvalidInput, match="SETTINGS_KEY_UNKNOWN"):
        Settings.read()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="SETTINGS_UNREADABLE"):
        Settings.read(tmp_path / "none.yaml")


def test_one_file_serves_both_commands(tmp_path: Path) -> None:
    assert set(SETTINGS) == set(Settings.model_fields)
    read(tmp_path, "streams: []\nserver: {threads: 16, watchers: 4}\n")
    assert Project.read(tmp_path / "sage.yaml").streams == ()
    assert DECLARATIONS == ("streams", "ptks")


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("[::]", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.example", False),
        ("", False),
    ],
)
def test_what_is_loopback(host: str, here: bool) -> None:
    assert is_loopback(host) == here


def test_credentials_may_be_asked_for_on_loopback_and_always_are_elsewhere() -> None:
    asked: Any = {"auth": {"required": True}}
    assert not Settings(**asked).anonymous
    elsewhere: Any = {"server": {"address": "0.0.0.0:1"}}
    assert not Settings(**elsewhere).anonymous
