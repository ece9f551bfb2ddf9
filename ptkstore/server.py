"""The composition root of the service: settings in, a running gRPC server out.

`adapters_of` is the one place where adapters are chosen. A `Server` says NOT_SERVING while the
store cannot be written (`ptkstore.engine.leadership.readiness`), and hands the lead over where
several share it. It drains before it ends: it says NOT_SERVING, ends those who watch and lets other
calls finish; the window that is being worked on is finished, and the rest is taken up by the next
start. What was acknowledged is durable at any moment. Reasons: SERVER_UNPROTECTED,
SERVER_ADDRESS_TAKEN, SETTINGS_INVALID, FILE_UNREADABLE.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import prometheus_client
import structlog
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE
from grpc_reflection.v1alpha import reflection
from pydantic import SecretStr

from ptklib import registry
from ptklib.errors import InvalidInput, Refused
from ptkstore.allowance import Allowance
from ptkstore.api.references import is_loopback
from ptkstore.bus import RedisBus
from ptkstore.bus.redis import PREFIX
from ptkstore.closing import Closing
from ptkstore.engine.asking import here
from ptkstore.engine.catalogue import ptks
from ptkstore.engine.leadership.election import Election
from ptkstore.engine.leadership.readiness import Readiness
from ptkstore.engine.leadership.watchdog import Watchdog
from ptkstore.engine.parts import Adapters, Parts
from ptkstore.engine.plans.planner import Planner
from ptkstore.lake import Bucket, S3Lake
from ptkstore.ledger import Ledger
from ptkstore.local.store import LocalStore
from ptkstore.metadata import Metadata
from ptkstore.rpc.background.refiner import Refiner
from ptkstore.rpc.background.running import Runner
from ptkstore.rpc.background.window_metrics import WindowMetrics
from ptkstore.rpc.feeds.delivering import Deliverer, Pace
from ptkstore.rpc.feeds.endpoints import is_allowed
from ptkstore.rpc.feeds.hub import Hub
from ptkstore.rpc.feeds.watching import Watchers
from ptkstore.rpc.gate.auditing import Auditor
from ptkstore.rpc.gate.dispatch import Dispatcher
from ptkstore.rpc.gate.doorway import Doorway
from ptkstore.rpc.gate.forwarding import Forwarder, Vouching
from ptkstore.rpc.gate.idempotency import Repeats
from ptkstore.rpc.gate.identity import Caller, Callers
from ptkstore.rpc.gate.metrics import Metrics
from ptkstore.rpc.gate.places import MOST_IN_LINE, Places
from ptkstore.rpc.gate.strangers import Strangers
from ptkstore.rpc.services.appending import Appender
from ptkstore.rpc.services.budgets import BudgetService
from ptkstore.rpc.services.events import EventService
from ptkstore.rpc.services.health import Health
from ptkstore.rpc.services.operations import OperationService
from ptkstore.rpc.services.plans import PlanService
from ptkstore.rpc.services.ptks import PtkService, watch_message
from ptkstore.rpc.services.reflecting import Symbols
from ptkstore.rpc.services.streams import StreamService
from ptkstore.settings import Settings
from ptkstore.v1 import budget_pb2, operation_pb2, plan_pb2, ptk_pb2, stream_pb2

__all__ = ["LIVE", "LOOPBACK_ENDPOINTS", "Server", "adapters_of", "configure_logs", "open_store"]

# Who may be told of new states by a server that only this machine can reach, unless the settings
# say otherwise.
LOOPBACK_ENDPOINTS = ("127.0.0.1:*", "localhost:*", "[::1]:*")
# What the health service answers for as long as the server lives, whether or not it can write.
LIVE = "live"
_LOOK_SECONDS = 0.2
_LOG = structlog.get_logger("sage.server")
_STREAM_THREADS = 2 * (os.cpu_count() or 1)
# A window, and two what-ifs beside it.
_PLANS_AT_ONCE = 3


def open_store(path: Path, settings: Settings) -> LocalStore:
    """The store of these settings."""
    return LocalStore(
        path,
        workers=settings.workers.processes,
        memory_bytes=settings.workers.memory_bytes,
        adapters=adapters_of(path, settings),
    )


def adapters_of(path: Path, settings: Settings) -> Adapters:
    """The parts of these settings: the one place where they are chosen.

    Raw data is always in the directory.
    """
    metadata, ledger, lake, bus = settings.metadata, settings.ledger, settings.lake, settings.bus

    def open_ledger() -> Ledger:
        return Ledger.open(_shown(ledger.url), key_path=ledger.key_file or path / "ledger.key")

    def open_lake() -> S3Lake:
        bucket = Bucket(
            str(lake.endpoint),
            str(lake.bucket),
            access_key=_secret(lake.access_key),
            secret_key=_secret(lake.secret_key),
            region=lake.region,
            prefix=lake.prefix,
        )
        return S3Lake(bucket)

    def open_bus() -> RedisBus:
        return RedisBus(_shown(bus.url), prefix=PREFIX if bus.prefix is None else bus.prefix)

    return Adapters(
        ledger=open_ledger if ledger.url is not None else None,
        metadata=(lambda: Metadata.open(_shown(metadata.url)))
        if metadata.url is not None
        else None,
        lake=open_lake if lake.endpoint is not None else None,
        bus=open_bus if bus.url is not None else None,
    )


def _shown(secret: SecretStr | None) -> str:
    assert secret is not None
    return secret.get_secret_value()


def _secret(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def configure_logs() -> None:
    """One JSON object per line on stderr: names, codes and reasons, never contents."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
    logging.basicConfig(handlers=[_PlainLogs()], level=logging.WARNING, force=True)


class _PlainLogs(logging.Handler):
    """Warnings of parts that know Python's logging alone, in the same form. What a library says may
    quote data: it is told of by its name and place.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one on."""
        ours = record.name.partition(".")[0] in ("ptkstore", "ptklib")
        text = record.getMessage() if ours else f"{record.levelname.lower()} of a library"
        note = (
            {"logger": record.name}
            if ours
            else {"logger": record.name, "where": f"{record.filename}:{record.lineno}"}
        )
        structlog.get_logger().log(record.levelno, text, **note)


class Server(Closing):
    """A store behind gRPC. Does not own the store."""

    def __init__(
        self,
        store: LocalStore,
        settings: Settings,
        *,
        pace: Pace | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        """Bind the address and start. ``pace`` is how fast deliveries are tried; a ``watchdog``
        ends this process when it stands still as the leader.
        """
        settings.require_protection()
        # Imports of all PTKs take a while: not when the first one is registered, and others are
        # being served.
        with suppress(Exception):  # told to whoever registers one
            registry.kinds()
        self._settings = settings
        # Read before anything starts that would have to be stopped again.
        ca_file = settings.subscribers.ca_file
        credentials = None if ca_file is None else grpc.ssl_channel_credentials(_read(ca_file))
        self._parts = parts = store.parts
        self.metrics = Metrics()
        self.metrics.registry.register(WindowMetrics(parts.metadata, parts.specs, parts.public_ms))
        self._hub = Hub(parts.bus, most=settings.server.watchers)
        self._auditor = Auditor(parts.metadata)
        certificates = {
            name: Caller(
                f"certificate:{name}",
                frozenset(certificate.roles),
                frozenset(certificate.streams),
                frozenset(certificate.ptks),
            )
            for name, certificate in settings.auth.certificates.items()
        }
        vouching = Vouching(parts.ledger.derived_key(b"callers"), parts.clock)
        callers = Callers(
            parts.metadata,
            anonymous=settings.anonymous,
            certificates=certificates,
            clock=parts.clock,
            vouched=vouching.caller,
        )
        dispatcher = Dispatcher(
            callers=callers,
            auditor=self._auditor,
            repeats=Repeats(parts.metadata, parts.now_ms),
            metrics=self.metrics,
            stream_of=lambda ptk: _stream_of(parts, ptk),
            now_ms=parts.now_ms,
            changed=parts.notifier.wake,
        )
        allowed = settings.subscribers.allowed or (LOOPBACK_ENDPOINTS if settings.anonymous else ())
        self._deliverer: Deliverer | None = None
        self._refiner: Refiner | None = None
        # Registrations wait for no window and no what-if.
        self._planner, self._other_planner = Planner(), Planner(most=_PLANS_AT_ONCE)
        parts.ask = self._other_planner.ask
        self._new_deliverer: Callable[[], Deliverer] = lambda: Deliverer(
            parts.metadata,
            parts.now_ms,
            self.metrics,
            allowed=allowed,
            credentials=credentials,
            pace=pace,
        )
        self._heard = parts.bus.subscribe(
            "sage.ptk.state.*", lambda _topic, _message: self._wake_deliverer()
        )
        self._appender = Appender(
            parts,
            dispatcher.admit,
            Allowance(settings.server.append_bytes_per_second),
            threads=_STREAM_THREADS,
            stopping=lambda: self._hub.stopping,
        )
        self._watchers = Watchers(parts.followers, self._hub, watch_message)
        self._runner = Runner(parts, self._hub.wake)
        services: list[tuple[ServiceDescriptor, object]] = [
            (
                stream_pb2.DESCRIPTOR.services_by_name["StreamService"],
                StreamService(parts, self._appender, self._runner),
            ),
            (
                ptk_pb2.DESCRIPTOR.services_by_name["PtkService"],
                PtkService(
                    parts,
                    self._watchers,
                    endpoint_allowed=lambda endpoint: is_allowed(endpoint, allowed),
                    ask=self._planner.ask,
                ),
            ),
            (plan_pb2.DESCRIPTOR.services_by_name["PlanService"], PlanService(parts)),
            (budget_pb2.DESCRIPTOR.services_by_name["BudgetService"], BudgetService(parts)),
            (
                operation_pb2.DESCRIPTOR.services_by_name["OperationService"],
                OperationService(parts, self._hub),
            ),
            (
                operation_pb2.DESCRIPTOR.services_by_name["EventService"],
                EventService(parts, self._hub, self._auditor, self._wake_deliverer),
            ),
        ]
        self._readiness = Readiness(parts, changed=self._tell_health, stuck=self._hand_over)
        self._forwarder: Forwarder | None = None
        self._election: Election | None = None
        handlers = [dispatcher.handler(descriptor, service) for descriptor, service in services]
        self._doorway = self._opened(callers, dispatcher)
        self._health = Health(descriptor.full_name for descriptor, _ in services)
        self._grpc = self._made([descriptor.full_name for descriptor, _ in services])
        self._stopped = threading.Event()
        self._notifier = parts.notifier
        try:
            self.address = self._bound()
            self._metrics_server = self._serve_metrics()
            if settings.shared:
                self._election = self._elected(parts, watchdog)
                self._forwarder = self._forwarding(self._election, callers, vouching)
                handlers = [self._forwarder.wrapped(handler) for handler in handlers]
            self._grpc.add_generic_rpc_handlers(tuple(handlers))
            if self._election is None:
                self._lead()
            else:
                self._election.start()
        except BaseException:
            self._close_parts()
            raise
        self._notifier.start()
        self._grpc.start()
        self._readiness.start()

    @property
    def leads(self) -> bool:
        """True when this server writes the streams and runs the windows."""
        return self._election is None or self._election.ready

    @property
    def leader(self) -> str | None:
        """Where the server is reached that leads; None where nobody does at the moment."""
        return (
            self.advertised
            if self._election is None or self._election.ready
            else self._election.leader()
        )

    @property
    def advertised(self) -> str:
        """Where other servers of the store reach this one."""
        host, _, port = self.address.rpartition(":")
        everywhere = host.strip("[]") in ("0.0.0.0", "::")  # noqa: S104
        return self._settings.server.advertise or (
            f"{socket.gethostname()}:{port}" if everywhere else self.address
        )

    def stop(self) -> None:
        """Drain and end. Safe to call twice."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._health.enter_graceful_shutdown()
        self._readiness.stop()
        self._hub.stop()
        ended = self._grpc.stop(self._settings.server.drain_seconds)
        while not ended.wait(_LOOK_SECONDS):
            if self._forwarder is not None:
                self._forwarder.end_idle()
        self._close_parts()
        if self._metrics_server is not None:
            self._metrics_server.shutdown()
            self._metrics_server.server_close()

    def close(self) -> None:
        """As `stop`."""
        self.stop()

    def _close_parts(self) -> None:
        self._planner.close()
        self._appender.close()
        # While the window under way is finished the lease is still renewed.
        self._rest()
        self._parts.ask = here
        self._other_planner.close()
        if self._election is not None:
            self._election.stop()
        if self._forwarder is not None:
            self._forwarder.close()
        self._heard.close()
        self._notifier.stop()
        self._hub.close()
        self._watchers.close()
        self._auditor.close()
        self._doorway.close()
        self._health.close()

    def _lead(self) -> None:
        """Begin what one server does for all."""
        self._runner.resume()
        self._deliverer = self._new_deliverer()
        self._refiner = Refiner(self._parts)

    def _rest(self) -> None:
        """End it. Safe to call twice."""
        self._runner.stop()
        deliverer, self._deliverer = self._deliverer, None
        if deliverer is not None:
            deliverer.close()
        refiner, self._refiner = self._refiner, None
        if refiner is not None:
            refiner.close()

    def _tell_health(self, ready: bool) -> None:
        """What probes hear, but for those that only ask whether we live."""
        if self._stopped.is_set():
            return
        serving = health_pb2.HealthCheckResponse
        for name in self._served:
            self._health.set(name, serving.SERVING if ready else serving.NOT_SERVING)

    def _hand_over(self) -> None:
        """We have not been able to write for a while; where several servers share the store,
        another one may.
        """
        if self._election is not None:
            self._election.hand_over()

    def _wake_deliverer(self) -> None:
        deliverer = self._deliverer
        if deliverer is not None:
            deliverer.wake()

    def _elected(self, parts: Parts, watchdog: Watchdog | None) -> Election:
        election = Election(
            parts,
            address=self.advertised,
            lease_seconds=self._settings.server.lease_seconds,
            gained=self._lead,
            lost=self._rest,
            watchdog=watchdog,
        )
        election.able = lambda: self._readiness.able
        parts.lead = election
        return election

    def _forwarding(self, election: Election, callers: Callers, vouching: Vouching) -> Forwarder:
        limits, tls = self._settings.server, self._settings.server.tls
        options = [
            ("grpc.max_receive_message_length", limits.max_message_bytes),
            ("grpc.max_send_message_length", limits.max_message_bytes),
            ("grpc.http2.max_frame_size", 1 << 17),
            ("grpc.enable_retries", 0),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1_000),
            # A stream has no deadline: a leader that vanished without a word is noticed all the
            # same.
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 20_000),
        ]

        def connect(address: str) -> grpc.Channel:
            if tls is None:
                return grpc.insecure_channel(address, options=options)
            roots = None if tls.ca_file is None else _read(tls.ca_file)
            # Where callers may be asked for certificates, a server shows its own.
            key, chain = (
                (None, None)
                if tls.client_ca_file is None
                else (_read(tls.key_file), _read(tls.cert_file))
            )
            return grpc.secure_channel(
                address, grpc.ssl_channel_credentials(roots, key, chain), options=options
            )

        return Forwarder(
            election,
            connect,
            certificate=callers.certificate,
            vouching=vouching,
            patience_seconds=limits.lease_seconds,
        )

    def _opened(self, callers: Callers, dispatcher: Dispatcher) -> Doorway:
        limits = self._settings.server

        def places(beside: Places | None) -> Places:
            return Places(
                most=limits.threads,
                most_each=limits.calls_per_caller or limits.threads // 2,
                first_message_seconds=limits.first_message_seconds,
                beside=beside,
            )

        return Doorway(
            callers,
            strangers=Strangers(limits.denials_per_second),
            allowance=Allowance(limits.calls_per_second),
            places=places,
            threads=limits.threads,
            refuse=dispatcher.refuse,
            late=dispatcher.cancelled,
        )

    def _made(self, names: list[str]) -> Any:
        limits = self._settings.server
        server = grpc.server(
            self._doorway.threads,
            # How many are served at once is for it to say: gRPC's own limit would count health
            # among them.
            interceptors=[self._doorway],
            options=[
                ("grpc.max_receive_message_length", limits.max_message_bytes),
                ("grpc.max_send_message_length", limits.max_message_bytes),
                ("grpc.max_metadata_size", 16 << 10),
                ("grpc.so_reuseport", 0),
                # gRPC drops calls at random when many come at once: an honest one among them as
                # likely as another. What one connection may begin is bounded instead; beyond that,
                # clients wait by themselves.
                ("grpc.max_concurrent_streams", limits.threads),
                ("grpc.server.max_pending_requests", MOST_IN_LINE),
                ("grpc.server.max_pending_requests_hard_limit", 2 * MOST_IN_LINE),
                # Batches are megabytes: frames of the usual 16 kB would cost more than the records
                # in them.
                ("grpc.http2.max_frame_size", 1 << 17),
                ("grpc.keepalive_time_ms", 60_000),
                ("grpc.keepalive_timeout_ms", 20_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
                ("grpc.keepalive_permit_without_calls", 1),
                # Connections that nobody uses go: each takes a descriptor, which files need as
                # well.
                ("grpc.max_connection_idle_ms", 300_000),
                ("grpc.server_handshake_timeout_ms", 20_000),
            ],
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._served = ("", *names)
        for name in (*self._served, LIVE):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflected = (*names, HEALTH_SERVICE, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(reflected, server, pool=Symbols())
        return server

    def _bound(self) -> str:
        address, tls = self._settings.server.address, self._settings.server.tls
        try:
            if tls is None:
                port = self._grpc.add_insecure_port(address)
            else:
                port = self._grpc.add_secure_port(address, self._credentials())
        except RuntimeError:
            port = 0
        if port == 0:
            raise InvalidInput(
                "SERVER_ADDRESS_TAKEN",
                f"{address} cannot be listened on: taken, or not an address of this machine",
            )
        return f"{address.rpartition(':')[0]}:{port}"

    def _credentials(self) -> Any:
        tls = self._settings.server.tls
        assert tls is not None
        client_ca = None if tls.client_ca_file is None else _read(tls.client_ca_file)
        # With certificates as the only credentials there is no reason to talk to anybody without
        # one.
        required = client_ca is not None and bool(self._settings.auth.certificates)
        pair = (_read(tls.key_file), _read(tls.cert_file))
        return grpc.ssl_server_credentials(
            [pair], root_certificates=client_ca, require_client_auth=required
        )

    def _serve_metrics(self) -> Any:
        address = self._settings.server.metrics_address
        if address is None:
            return None
        host, _, port = address.rpartition(":")
        if not is_loopback(host) and not self._settings.server.metrics_in_the_clear:
            _LOG.warning(
                "metrics in the clear",
                address=address,
                advice="whoever reaches this address reads them, without credentials or TLS: listen on loopback, or keep others"
                " away and set server.metrics_in_the_clear",
            )
        server, _thread = prometheus_client.start_http_server(
            int(port), addr=host.strip("[]"), registry=self.metrics.registry
        )
        return server


def _stream_of(parts: Parts, ptk: str) -> str | None:
    try:
        return ptks.named(parts, ptk).view.stream
    except Refused:
        return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput("FILE_UNREADABLE", f"{path}: {error.strerror}", file=str(path)) from None
