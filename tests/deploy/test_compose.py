"""deploy/compose and the image: fit for the schema, hardened, and of one mind about names, ports
and files.
"""

from __future__ import annotations

import stat
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from ptkstore.metadata.database.schema import REVISIONS
from ptkstore.settings import Settings
from tests.cli.sage import BIN
from tests.deploy.compose_faults import compose_faults, secrets_of
from tests.deploy.files import DEPLOY, broken, read

COMPOSE, TEMPLATE = "compose/compose.yaml", "compose/sage.yaml.template"


def test_there_are_no_faults() -> None:
    assert compose_faults(DEPLOY) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        (COMPOSE, "image: redis:8.2.1-bookworm", "image: redis:latest", "redis: the image is not pinned"),
        (COMPOSE, "image: postgres:18.0-bookworm", "image: postgres", "postgres: the image is not pinned"),
        (COMPOSE, "cap_drop: [ALL]", "cap_drop: [NET_RAW]", "keeps capabilities"),
        (COMPOSE, "  read_only: true\n", "", "the root is writable"),
        (COMPOSE, "POSTGRES_PASSWORD_FILE: /run/secrets/postgres_password", "POSTGRES_PASSWORD: x", "not a file"),
        (COMPOSE, "secrets: [postgres_password]", "secrets: [minio_user]", "which is not mounted"),
        (COMPOSE, "    secrets: [redis.conf]\n", "    secrets: [redis.conf]\n    ports: ['6379']\n", "redis: publishes"),
        (COMPOSE, "127.0.0.1:3000:3000", "3000:3000", "grafana: publishes"),
        (COMPOSE, "  minio-data: {}\n", "", "there is no volume minio-data"),
        (COMPOSE, "  ca.pem: {file: ./secrets/ca.pem}\n", "", "there is no secret ca.pem"),
        (COMPOSE, "redis: {condition: service_healthy}", "redis: {condition: service_started}", "until redis is healthy"),
        (COMPOSE, "./grafana/dashboards:", "./grafana/pictures:", "./grafana/pictures does not exist"),
        (COMPOSE, "/etc/prometheus/prometheus.yml", "/etc/prometheus/other.yml", "configuration is not mounted"),
        (COMPOSE, '"7070:7070"', '"443:7070"', "another port than it listens on"),
        (COMPOSE, "- sage-keys:/var/lib/sage/keys", "- sage-keys:/keys", "its keys are in no volume"),
        (COMPOSE, "target: /etc/sage/server.key", "target: /etc/sage/key", "server.key is not mounted"),
        (COMPOSE, "target: /etc/sage/sage.yaml", "target: /sage.yaml", "not where the image looks"),
        (COMPOSE, "stop_grace_period", "stop_grace", "stop_grace"),
        (TEMPLATE, "@postgres:5432/sage\nledger", "@db:5432/sage\nledger", "metadata: db:5432"),
        (TEMPLATE, "@postgres:5432/sage\n  #", "@postgres:5432/other\n  #", "another user or database"),
        (TEMPLATE, "9464", "9999", "looks for sage's metrics elsewhere"),
        (TEMPLATE, "key_file: /var/lib/sage/ledger.key", "key_file: /tmp/ledger.key", "key is in no volume"),
        ("Dockerfile", "USER 10001:10001\n", "", "runs as root"),
        ("Dockerfile", "STOPSIGNAL SIGTERM", "MAINTAINER nobody", "DL4000"),
        ("Dockerfile", "FROM python:3.12.11-slim-bookworm\n", "FROM python:slim\n", "a base is not pinned"),
        ("Dockerfile", "COPY profiler profiler", "COPY profilers profilers", "profilers, which does not exist"),
        ("Dockerfile.dockerignore", "!allocator\n", "", "allocator is ignored"),
    ],
)  # fmt: skip
def test_each_fault_is_noticed(tmp_path: Path, file: str, old: str, new: str, fault: str) -> None:
    found = compose_faults(broken(tmp_path, file, old, new))
    assert any(fault in one for one in found), found


def test_the_secrets_are_made_once_and_fit(tmp_path: Path) -> None:
    deploy = broken(tmp_path, TEMPLATE, "bucket: sage", "bucket: sage")
    secrets = secrets_of(deploy, "sage.example.org")
    named = {Path(one["file"]).name for one in read(deploy / COMPOSE)["secrets"].values()}
    assert named <= {one.name for one in secrets.iterdir()}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    settings = Settings.read(secrets / "sage.yaml")
    settings.require_protection()
    for word, file in (
        (settings.metadata.url, "postgres_password"),
        (settings.lake.secret_key, "minio_password"),
    ):
        assert word is not None
        assert (secrets / file).read_text() in word.get_secret_value()
    assert settings.bus.url is not None
    assert (
        f"requirepass {settings.bus.url.get_secret_value().split(':')[2].split('@')[0]}\n"
        in (secrets / "redis.conf").read_text()
    )
    named_in = subprocess.run(
        ["openssl", "x509", "-in", str(secrets / "server.pem"), "-noout", "-ext", "subjectAltName"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert all(f"DNS:{name}" in named_in for name in ("localhost", "sage", "sage.example.org"))
    again = subprocess.run(
        [str(deploy / "compose/make-secrets.sh")], capture_output=True, text=True, check=False
    )
    assert again.returncode == 1
    assert "nothing was changed" in again.stderr


def test_secrets_are_not_for_the_repository() -> None:
    ignored = (DEPLOY / "compose/.gitignore").read_text().splitlines()
    assert "secrets/" in ignored
    template = yaml.safe_load((DEPLOY / TEMPLATE).read_text().replace("@", "x"))
    assert template["lake"]["secret_key"] == "xMINIO_PASSWORDx"


def test_the_wheel_has_what_the_server_needs(tmp_path: Path) -> None:
    """What the image installs: every migration, the templates and the generated code."""
    command = [
        str(BIN / "python"),
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
    ]
    built = subprocess.run(
        [*command, "--wheel-dir", str(tmp_path), str(DEPLOY.parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "Could not find a version that satisfies the requirement hatchling" in built.stderr:
        pytest.skip("the package registry cannot be reached")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for revision in REVISIONS:
        assert any(f"metadata/migrations/versions/{revision}_" in one for one in names)
    assert "ptkstore/v1/stream_pb2.py" in names
    assert not [one for one in names if one.startswith(("tests/", "deploy/"))]
