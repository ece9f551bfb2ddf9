"""What is wrong with deploy/compose and deploy/Dockerfile, as sentences; nothing where all is
well.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema.validators import validator_for

from ptkstore.settings import Settings
from tests.cli.sage import BIN
from tests.deploy.files import read

__all__ = ["compose_faults", "secrets_of", "settings_of"]

_PINNED = re.compile(r"[\w./-]+:(?!latest$)[\w.-]*\d[\w.-]*")
_SECRET = re.compile(r"password|secret|token", re.IGNORECASE)


def compose_faults(deploy: Path) -> list[str]:
    """Every fault; a schema that does not fit ends the search."""
    compose = read(deploy / "compose/compose.yaml")
    schema = get_builtin_schema("vendor.compose-spec")
    wrong = [one.message for one in validator_for(schema)(schema).iter_errors(compose)]
    if wrong:
        return wrong
    services = compose["services"]
    return [
        *(fault for name, one in services.items() for fault in _hardening(name, one)),
        *(fault for name, one in services.items() for fault in _references(name, one, compose)),
        *_mounts(deploy, services),
        *_addresses(deploy, services),
        *_image(deploy, services["sage"]),
    ]


def secrets_of(deploy: Path, *names: str) -> Path:
    """Run make-secrets.sh in the directory, which must be a copy, and return the directory it
    makes.
    """
    script = deploy / "compose/make-secrets.sh"
    subprocess.run([str(script), *names], check=True, capture_output=True, text=True, timeout=60)
    return deploy / "compose/secrets"


def settings_of(deploy: Path) -> Settings:
    """The settings as make-secrets.sh would write them, with a word for every secret."""
    text = (deploy / "compose/sage.yaml.template").read_text()
    body = yaml.safe_load(re.sub(r"@[A-Z_]+@", "word", text))
    return Settings.checked(body, "sage.yaml.template")


def _hardening(name: str, service: dict[str, Any]) -> Iterator[str]:
    if not _PINNED.fullmatch(service.get("image", "")):
        yield f"{name}: the image is not pinned to a version"
    if service.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in service.get(
        "security_opt", []
    ):
        yield f"{name}: keeps capabilities"
    if not service.get("read_only") or service.get("privileged"):
        yield f"{name}: the root is writable"
    if "healthcheck" not in service:
        yield f"{name}: no health check"
    for variable, value in (service.get("environment") or {}).items():
        if _SECRET.search(variable) and not variable.endswith("_FILE"):
            yield f"{name}: the secret {variable} is a variable, not a file"
        if variable.endswith("_FILE") and not _is_mounted(str(value), service):
            yield f"{name}: {variable} names {value}, which is not mounted"
    for port in service.get("ports", []):
        if name not in ("sage", "grafana") or (
            name == "grafana" and not str(port).startswith("127.0.0.1:")
        ):
            yield f"{name}: publishes {port}"


def _is_mounted(path: str, service: dict[str, Any]) -> bool:
    return path in {_target(one) for one in service.get("secrets", [])}


def _target(secret: Any) -> str:
    if isinstance(secret, str):
        return f"/run/secrets/{secret}"
    return str(secret.get("target", f"/run/secrets/{secret['source']}"))


def _references(name: str, service: dict[str, Any], compose: dict[str, Any]) -> Iterator[str]:
    named = {
        "secret": [
            one if isinstance(one, str) else one["source"] for one in service.get("secrets", [])
        ],
        "network": list(service.get("networks", [])),
        "service": list(service.get("depends_on", {})),
        "volume": [
            one.split(":")[0] for one in service.get("volumes", []) if not one.startswith(".")
        ],
    }
    for kind, names in named.items():
        for one in set(names) - set(compose[f"{kind}s"]):
            yield f"{name}: there is no {kind} {one}"
    for other, how in service.get("depends_on", {}).items():
        if how != {"condition": "service_healthy"}:
            yield f"{name}: does not wait until {other} is healthy"
    if not set(service.get("networks", [])):
        yield f"{name}: is in no network"


def _mounts(deploy: Path, services: dict[str, Any]) -> Iterator[str]:
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith(".") and not (deploy / "compose" / source).exists():
                yield f"{name}: {source} does not exist"
            if source.startswith(".") and not volume.endswith(":ro"):
                yield f"{name}: {source} is writable"
    command = next(
        one for one in services["prometheus"]["command"] if one.startswith("--config.file=")
    )
    inside = dict(one.split(":")[:2][::-1] for one in services["prometheus"]["volumes"])
    folder, _, file = command.removeprefix("--config.file=").rpartition("/")
    if not (deploy / "compose" / inside.get(folder, "nowhere") / file).exists():
        yield "prometheus: its configuration is not mounted"


def _addresses(deploy: Path, services: dict[str, Any]) -> Iterator[str]:
    """Names and ports agree between the services, the settings, Prometheus and Grafana."""
    settings = settings_of(deploy)
    settings.require_protection()
    compose = deploy / "compose"
    assert settings.metadata.url is not None
    assert settings.ledger.url is not None
    assert settings.bus.url is not None
    wanted = {
        "metadata": (settings.metadata.url.get_secret_value(), "postgres", 5432),
        "ledger": (settings.ledger.url.get_secret_value(), "postgres", 5432),
        "lake": (str(settings.lake.endpoint), "minio", 9000),
        "bus": (settings.bus.url.get_secret_value(), "redis", 6379),
        "grafana": (
            read(compose / "grafana/datasources/prometheus.yml")["datasources"][0]["url"],
            "prometheus",
            9090,
        ),
    }
    for what, (url, host, port) in wanted.items():
        parts = urlsplit(url)
        if (parts.hostname, parts.port) != (host, port) or host not in services:
            yield f"{what}: {parts.hostname}:{parts.port} is not {host}:{port}"
    database = services["postgres"]["environment"]
    for url in (settings.metadata.url, settings.ledger.url):
        parts = urlsplit(url.get_secret_value())
        if (parts.username, parts.path[1:]) != (database["POSTGRES_USER"], database["POSTGRES_DB"]):
            yield "postgres: the settings want another user or database"
    jobs = {
        one["job_name"]: one
        for one in read(compose / "prometheus/prometheus.yml")["scrape_configs"]
    }
    metrics = str(settings.server.metrics_address).rpartition(":")[2]
    if jobs["sage"]["static_configs"][0]["targets"] != [f"sage:{metrics}"]:
        yield "prometheus: looks for sage's metrics elsewhere"
    listens = settings.server.address.rpartition(":")[2]
    if services["sage"]["ports"] != [f"{listens}:{listens}"]:
        yield "sage: publishes another port than it listens on"
    files = (
        [settings.server.tls.cert_file, settings.server.tls.key_file] if settings.server.tls else []
    )
    for file in files:
        if not _is_mounted(str(file), services["sage"]):
            yield f"sage: {file} is not mounted"
    if str(settings.ledger.key_file).rpartition("/")[0] not in {
        one.split(":")[1] for one in services["sage"]["volumes"]
    }:
        yield "sage: the ledger's key is in no volume"


def _image(deploy: Path, sage: dict[str, Any]) -> Iterator[str]:
    dockerfile = deploy / "Dockerfile"
    linted = subprocess.run(
        [str(BIN / "hadolint"), "--no-color", str(dockerfile)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    yield from (f"Dockerfile: {line.rpartition('/')[2]}" for line in linted.stdout.splitlines())
    text = dockerfile.read_text()
    if not all(_PINNED.fullmatch(one) for one in re.findall(r"^FROM (\S+)", text, flags=re.M)):
        yield "Dockerfile: a base is not pinned"
    if not re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, flags=re.M):
        yield "Dockerfile: runs as root"
    (folder,) = re.findall(r"^WORKDIR (/etc\S*)", text, flags=re.M)
    if not _is_mounted(f"{folder}/sage.yaml", sage):
        yield "sage: its settings are not where the image looks for them"
    (store,) = re.findall(r"SAGE_STORE=(\S+)", text)
    held = {one.split(":")[1] for one in sage["volumes"]}
    if not {store, f"{store}/keys"} <= held:
        yield "sage: the store or its keys are in no volume"
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", text, flags=re.M):
        for one in copied.split():
            if not (Path(__file__).parents[2] / one).exists():
                yield f"Dockerfile: copies {one}, which does not exist"
            if f"!{one}" not in (deploy / "Dockerfile.dockerignore").read_text().splitlines():
                yield f"Dockerfile: {one} is ignored"
