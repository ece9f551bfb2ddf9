"""Settings of the service: one ``sage.yaml``, and variables such as ``SAGE__SERVER__ADDRESS`` that
go before it.

Unknown keys are errors. ``streams`` and ``ptks`` in the same file are what ``sage apply`` reads.
With no settings at all the store is a directory and the server listens on loopback. Messages name
keys and never repeat values, for they may be secrets.

Reasons: SETTINGS_UNREADABLE, SETTINGS_INVALID, SETTINGS_KEY_UNKNOWN, SERVER_UNPROTECTED.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ptklib.errors import InvalidInput
from ptkstore.api.references import is_loopback

__all__ = [
    "DECLARATIONS",
    "PREFIX",
    "AuthSettings",
    "BusSettings",
    "CertificateSettings",
    "LakeSettings",
    "LedgerSettings",
    "MetadataSettings",
    "ServerSettings",
    "Settings",
    "SubscriberSettings",
    "TlsSettings",
    "WorkerSettings",
]

PREFIX = "SAGE__"
# Sections of sage.yaml that are about the contents of a store.
DECLARATIONS = ("streams", "ptks")
_MAX_FILE = 4 << 20


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TlsSettings(_Section):
    """Files in PEM form.

    With ``client_ca_file`` callers may, and without tokens must, have a certificate of that CA.
    """

    # The server's certificate; needed beyond loopback.
    cert_file: Path
    # The key of that certificate.
    key_file: Path
    # Accept client certificates of this CA.
    client_ca_file: Path | None = None
    # The CA of the certificates of the other servers; the system's if left out.
    ca_file: Path | None = None


class ServerSettings(_Section):
    """Where to listen, and how much to take."""

    # Where to listen, as host:port.
    address: str = "127.0.0.1:7070"
    # Where other servers of the store reach this one; `address` if left out.
    advertise: str | None = None
    # How long a leader that cannot be reached keeps others from leading.
    lease_seconds: float = Field(default=10, ge=1, le=300)
    # How long a leader that shares its store may stand still before it is ended; 0 is for ever.
    hang_seconds: float = Field(default=20, ge=0, le=3600)
    tls: TlsSettings | None = None
    # Calls at once; those that watch are at most `watchers` of them.
    threads: int = Field(default=1536, ge=8, le=8192)
    # How many of the calls at once may watch; one caller has half of them at most.
    watchers: int = Field(default=1280, ge=1, le=8000)
    # The largest message.
    max_message_bytes: int = Field(default=16 << 20, ge=1 << 16, le=128 << 20)
    # Calls at once of one caller (of one connection, where callers have no names); half of
    # `threads` if left out.
    calls_per_caller: int | None = Field(default=None, ge=1, le=8192)
    # How long a call may be without its message.
    first_message_seconds: float = Field(default=10, ge=0.5, le=600)
    # Per address, of calls without valid credentials; 0 is no limit.
    denials_per_second: float = Field(default=20, ge=0)
    # Per caller; 0 is no limit.
    calls_per_second: float = Field(default=2000, ge=0)
    # Per caller, of batches; 0 is no limit.
    append_bytes_per_second: float = Field(default=0, ge=0)
    # Prometheus metrics over HTTP; none if left out.
    metrics_address: str | None = None
    # Metrics are plain HTTP without credentials: say so where others can reach them, or be warned
    # at every start.
    metrics_in_the_clear: bool = False
    # How long calls may take to finish when the server stops.
    drain_seconds: float = Field(default=20, ge=0, le=3600)

    @model_validator(mode="after")
    def _fits(self) -> ServerSettings:
        _host_port(self.address, "address")
        if self.advertise is not None:
            _host_port(self.advertise, "advertise")
        if self.metrics_address is not None:
            _host_port(self.metrics_address, "metrics_address")
        if self.watchers > self.threads - 4:
            raise ValueError("watchers must leave at least 4 threads to other calls")
        return self


class CertificateSettings(_Section):
    """What the owner of a client certificate may do; empty lists are no limits."""

    # At least one.
    roles: tuple[Literal["reader", "producer", "developer", "operator"], ...] = Field(min_length=1)
    # The streams that these roles are for; all if left out.
    streams: tuple[str, ...] = ()
    # The PTKs that these roles are for; all if left out.
    ptks: tuple[str, ...] = ()


class AuthSettings(_Section):
    """Who may call. Beyond loopback credentials are always asked for."""

    # Ask for credentials on loopback, too.
    required: bool = False
    # Roles by the common name of a client certificate.
    certificates: dict[str, CertificateSettings] = {}


class MetadataSettings(_Section):
    """A PostgreSQL URL; a SQLite file in the store's directory if left out."""

    # Such as postgresql://user:password@host/database; it makes the store one that several servers
    # share.
    url: SecretStr | None = None


class LedgerSettings(_Section):
    """A PostgreSQL URL and the file with the ledger's key; a SQLite file in the store's directory
    if left out.
    """

    # A PostgreSQL database; it may be that of the metadata.
    url: SecretStr | None = None
    # The same file at every server; ledger.key in the store's directory if left out.
    key_file: Path | None = None


class LakeSettings(_Section):
    """An S3 endpoint and bucket; a folder in the store's directory if left out."""

    # Such as https://s3.example:9000; together with `bucket`.
    endpoint: str | None = None
    # Made if it is not there.
    bucket: str | None = None
    # Credentials come from the environment if left out, as usual for S3.
    access_key: SecretStr | None = None
    # As `access_key`.
    secret_key: SecretStr | None = None
    # The region of the bucket.
    region: str = "us-east-1"
    # What names of objects begin with: tells stores apart that share a bucket.
    prefix: str = ""

    @model_validator(mode="after")
    def _fits(self) -> LakeSettings:
        if (self.endpoint is None) != (self.bucket is None):
            raise ValueError("endpoint and bucket go together")
        return self


class BusSettings(_Section):
    """A Redis URL; inside the process if left out."""

    # Such as redis://:password@host:6379/0.
    url: SecretStr | None = None
    # What names of channels begin with: tells stores apart that share a Redis.
    prefix: str | None = None


class WorkerSettings(_Section):
    """Who trains, and with how much memory."""

    # Processes that train; one for each core if left out, 0 to train in the server itself.
    processes: int | None = Field(default=None, ge=0, le=1024)
    # What each may take for its work, beyond some 200 MB when idle; three quarters of the memory of
    # the machine or its container, shared by the workers and the engine, if left out. A PTK that
    # may need more is not trained (MEMORY_TOO_SMALL).
    memory_bytes: int | None = Field(default=None, ge=64 << 20)


class SubscriberSettings(_Section):
    """Who may be called about new states. Nobody if left out."""

    # Patterns of host:port, in which * stands for anything.
    allowed: tuple[str, ...] = ()
    # With it subscribers are called over TLS.
    ca_file: Path | None = None


class Settings(BaseSettings):
    """All of it."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
    )

    server: ServerSettings = Field(default_factory=ServerSettings)
    auth: AuthSettings = Field(default_factory=AuthSettings)
    metadata: MetadataSettings = Field(default_factory=MetadataSettings)
    ledger: LedgerSettings = Field(default_factory=LedgerSettings)
    lake: LakeSettings = Field(default_factory=LakeSettings)
    bus: BusSettings = Field(default_factory=BusSettings)
    workers: WorkerSettings = Field(default_factory=WorkerSettings)
    subscribers: SubscriberSettings = Field(default_factory=SubscriberSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Variables go before the file."""
        return env_settings, init_settings

    @classmethod
    def read(cls, path: Path | None = None) -> Settings:
        """The settings in a file (none: defaults) and in the environment."""
        body = {} if path is None else _read_file(path)
        known = set(cls.model_fields)
        for name in os.environ:
            section = (
                name.removeprefix(PREFIX).partition("__")[0].lower()
                if name.upper().startswith(PREFIX)
                else ""
            )
            if section and section not in known:
                raise _unknown(name, [PREFIX + field.upper() for field in known])
        sections = {name: value for name, value in body.items() if name not in DECLARATIONS}
        return cls.checked(sections, str(path) if path is not None else "the environment")

    @classmethod
    def checked(cls, sections: dict[str, Any], where: str) -> Settings:
        """The settings of these sections; ``where`` is what errors call them."""
        try:
            return cls(**sections)
        except ValidationError as error:
            raise _told(error, where) from None

    @property
    def loopback(self) -> bool:
        """True when the server listens on this machine only."""
        return is_loopback(_host_port(self.server.address, "address")[0])

    @property
    def anonymous(self) -> bool:
        """True when callers need no credentials: on loopback, unless they are asked for."""
        return self.loopback and not self.auth.required

    @property
    def shared(self) -> bool:
        """True when several servers may serve the store: its metadata is in a database that others
        can reach.
        """
        return self.metadata.url is not None and self.metadata.url.get_secret_value().startswith(
            "postgresql"
        )

    def require_protection(self) -> None:
        """Refuse to be reachable from elsewhere in plain text. Reason: SERVER_UNPROTECTED."""
        if not self.loopback and self.server.tls is None:
            raise InvalidInput(
                "SERVER_UNPROTECTED",
                "a server that is not on loopback must have server.tls (cert_file and key_file); "
                "or listen on 127.0.0.1",
            )


def _host_port(address: str, what: str) -> tuple[str, int]:
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]/]+):(\d{1,5})", address)
    if match is None or int(match[2]) > 65535:
        raise ValueError(f"{what} must be host:port, such as 127.0.0.1:7070")
    return match[1], int(match[2])


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput("SETTINGS_UNREADABLE", f"{path}: {why}", file=str(path)) from None
    try:
        body = yaml.safe_load(text) if len(text) <= _MAX_FILE else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark is not None else ""
        raise InvalidInput(
            "SETTINGS_UNREADABLE", f"{path}{where}: it is not YAML", file=str(path)
        ) from None
    if body is None and len(text) <= _MAX_FILE:
        return {}
    if not isinstance(body, dict) or not all(isinstance(key, str) for key in body):
        raise InvalidInput(
            "SETTINGS_UNREADABLE", f"{path}: it must have sections with keys", file=str(path)
        )
    return body


def _told(error: ValidationError, where: str) -> InvalidInput:
    """The first thing that is wrong, by the name of its key."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown(key, _keys(Settings))
    return InvalidInput("SETTINGS_INVALID", f"{where}: {key}: {first['msg']}", key=key)


def _unknown(key: str, known: list[str]) -> InvalidInput:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))[:300]}"
    return InvalidInput(
        "SETTINGS_KEY_UNKNOWN", f"there is no setting {key[:80]!r}; {hint}", key=key[:80]
    )


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    """All keys, with dots."""
    keys = []
    for name, field in model.model_fields.items():
        inner = [
            kind
            for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
            if _is_section(kind)
        ]
        keys.append(prefix + name)
        for section in inner:
            keys += _keys(section, f"{prefix}{name}.")
    return keys


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
