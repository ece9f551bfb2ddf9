"""Views to messages and back. What goes through here and back again is equal to what went in."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from ptklib.errors import InvalidInput
from ptklib.ledger.canonical import canonical
from ptkstore import views
from ptkstore.streams import StreamSpec
from ptkstore.v1 import budget_pb2, operation_pb2, plan_pb2, ptk_pb2, stream_pb2

__all__ = [
    "block_line",
    "block_message",
    "budget_message",
    "budget_summary",
    "charge_line",
    "charge_message",
    "cycle_message",
    "cycle_view",
    "event_message",
    "event_view",
    "json_object",
    "ledger_map",
    "ledger_map_message",
    "millis",
    "moment",
    "plan_message",
    "plan_view",
    "profile_message",
    "profile_view",
    "ptk_message",
    "ptk_view",
    "registration_message",
    "registration_view",
    "spec_of",
    "state_message",
    "state_view",
    "status_number",
    "status_word",
    "stream_message",
]

_STATUS = "PTK_STATUS_"
# The years 1 to 9999, as in google.protobuf.Timestamp.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


def moment(ms: int | None) -> Timestamp | None:
    """Milliseconds since 1970 as a message; None stays None."""
    return None if ms is None else Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def millis(message: Any, field: str) -> int | None:
    """The time in a field, in milliseconds, or None where it is not set. Reason: TIME_INVALID."""
    if not message.HasField(field):
        return None
    found: Timestamp = getattr(message, field)
    if not _FIRST_SECOND <= found.seconds <= _LAST_SECOND or not 0 <= found.nanos < 10**9:
        raise InvalidInput("TIME_INVALID", f"{field} must be a time of the years 1 to 9999")
    return found.seconds * 1000 + found.nanos // 1_000_000


def json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object from its text. Reason: JSON_INVALID."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InvalidInput("JSON_INVALID", f"{what} must be a JSON object")
    return body


def status_number(word: str) -> Any:
    """The enum of a PTK's status."""
    return ptk_pb2.PtkStatus.Value(_STATUS + word)


def status_word(number: int) -> str:
    """The status of an enum; empty for none, or for one that is newer than this release."""
    known = number in ptk_pb2.PtkStatus.values() and number != 0
    return ptk_pb2.PtkStatus.Name(number).removeprefix(_STATUS) if known else ""


def stream_message(spec: StreamSpec, watermark_ms: int | None) -> stream_pb2.Stream:
    """A stream."""
    return stream_pb2.Stream(
        name=spec.name,
        spec_json=spec.to_json_text(),
        schema_fingerprint=spec.fingerprint,
        watermark=moment(watermark_ms),
    )


def spec_of(message: stream_pb2.Stream) -> StreamSpec:
    """The specification of a stream."""
    return StreamSpec.from_json_text(message.spec_json)


def registration_message(one: views.Registration) -> ptk_pb2.Registration:
    """The answer to a registration."""
    return ptk_pb2.Registration(
        name=one.name,
        status=status_number(one.status),
        reason=one.reason,
        nearest_target=one.nearest_target,
        changes=one.changes,
        planned_epsilon=one.planned_epsilon or "",
        planned_samples=one.planned_samples,
    )


def registration_view(message: ptk_pb2.Registration) -> views.Registration:
    """Back."""
    return views.Registration(
        name=message.name,
        status=status_word(message.status),
        reason=message.reason,
        nearest_target=_optional(message, "nearest_target"),
        changes=tuple(message.changes),
        planned_epsilon=message.planned_epsilon or None,
        planned_samples=_optional(message, "planned_samples"),
    )


def ptk_message(one: views.PtkView, etag: int) -> ptk_pb2.Ptk:
    """A PTK."""
    return ptk_pb2.Ptk(
        name=one.name,
        stream=one.stream,
        kind=one.kind,
        config_json=json.dumps(one.config),
        config_version=one.config_version,
        target=one.target,
        train_every=one.train_every,
        status=status_number(one.status),
        reason=one.reason,
        latest_version=one.latest_version or 0,
        etag=str(etag),
        nearest_target=one.nearest_target,
        changes=one.changes,
    )


def ptk_view(message: ptk_pb2.Ptk) -> views.PtkView:
    """Back."""
    return views.PtkView(
        name=message.name,
        stream=message.stream,
        kind=message.kind,
        config=json_object(message.config_json, "config"),
        config_version=message.config_version,
        target=message.target,
        train_every=message.train_every,
        status=status_word(message.status),
        reason=message.reason,
        latest_version=message.latest_version or None,
        nearest_target=message.nearest_target if message.HasField("nearest_target") else None,
        changes=tuple(message.changes),
    )


def profile_message(one: views.ProfileView) -> ptk_pb2.Profile:
    """A profile."""
    points = zip(one.levels, one.samples, strict=True)
    return ptk_pb2.Profile(
        source=one.source,
        points=[ptk_pb2.ProfilePoint(level=level, samples=samples) for level, samples in points],
        promised=one.promised or "",
        confidence=one.confidence or "",
        reason=one.reason,
        needed_records=one.needed_records,
        status=status_number(one.status),
        trainings=one.trainings,
        measured_json=json.dumps(one.measured) if one.measured else "",
        made_time=moment(one.made_ms),
    )


def profile_view(name: str, message: ptk_pb2.Profile) -> views.ProfileView:
    """Back."""
    return views.ProfileView(
        ptk=name,
        status=status_word(message.status),
        source=message.source,
        levels=tuple(point.level for point in message.points),
        samples=tuple(_optional(point, "samples") for point in message.points),
        promised=message.promised or None,
        confidence=message.confidence or None,
        trainings=message.trainings,
        measured=tuple(json.loads(message.measured_json)) if message.measured_json else (),
        made_ms=millis(message, "made_time"),
        needed_records=_optional(message, "needed_records"),
        reason=message.reason,
    )


def state_message(one: views.StateView) -> ptk_pb2.State:
    """A state, without its bytes."""
    return ptk_pb2.State(
        name=one.name,
        version=one.version,
        digest=one.digest,
        window=one.window,
        epsilon=one.epsilon,
        delta=one.delta,
        samples=one.samples,
        create_time=moment(one.created_ms),
    )


def state_view(message: ptk_pb2.State) -> views.StateView:
    """Back."""
    return views.StateView(
        name=message.name,
        version=message.version,
        digest=message.digest,
        window=message.window,
        epsilon=message.epsilon,
        delta=message.delta,
        samples=_optional(message, "samples"),
        created_ms=millis(message, "create_time") or 0,
    )


def plan_message(one: views.PlanView, created_ms: int | None = None) -> plan_pb2.Plan:
    """A plan."""
    return plan_pb2.Plan(
        stream=one.stream,
        window=one.window,
        status=one.status,
        total_samples=one.total_samples,
        lower_bound=one.lower_bound,
        gap=one.gap,
        available_samples=one.available_samples,
        solver=one.solver,
        solve_seconds=one.seconds,
        assignments=[
            plan_pb2.PlanAssignment(
                ptk=line.ptk,
                epsilon=line.epsilon,
                samples=line.samples,
                target=line.target,
                partitions=line.partitions,
                share=line.share,
                used=line.used,
            )
            for line in one.lines
        ],
        partitions=[
            plan_pb2.PlanPartition(samples=line.samples, ptks=line.ptks, used=line.used) for line in one.partitions
        ],
        explanation=one.explanation,
        changes=one.changes,
        recommended_samples=one.recommended_samples,
        recommended_window_seconds=one.recommended_window_seconds,
        create_time=moment(created_ms),
    )


def plan_view(message: plan_pb2.Plan) -> views.PlanView:
    """Back."""
    return views.PlanView(
        stream=message.stream,
        window=message.window,
        status=message.status,
        total_samples=_optional(message, "total_samples"),
        available_samples=_optional(message, "available_samples"),
        solver=message.solver,
        seconds=message.solve_seconds,
        lines=tuple(
            views.PlanLine(
                ptk=line.ptk,
                epsilon=line.epsilon,
                samples=line.samples,
                share=line.share,
                target=line.target,
                partitions=tuple(line.partitions),
                used=line.used,
            )
            for line in message.assignments
        ),
        explanation=message.explanation,
        changes=tuple(message.changes),
        recommended_samples=_optional(message, "recommended_samples"),
        recommended_window_seconds=_optional(message, "recommended_window_seconds"),
        lower_bound=_optional(message, "lower_bound"),
        gap=_optional(message, "gap"),
        partitions=tuple(views.PartitionLine(one.samples, one.ptks, one.used) for one in message.partitions),
    )


def block_message(one: views.BlockLine) -> budget_pb2.Block:
    """A block."""
    return budget_pb2.Block(
        name=one.name,
        window=one.window,
        status=one.status,
        dp_records=one.dp_records,
        left=one.left,
        retired=one.retired or "",
    )


def block_line(message: budget_pb2.Block) -> views.BlockLine:
    """Back."""
    return views.BlockLine(
        name=message.name,
        window=message.window,
        status=message.status,
        dp_records=_optional(message, "dp_records"),
        left=message.left,
        retired=message.retired or None,
    )


def budget_message(one: views.BudgetSummary) -> budget_pb2.Budget:
    """A budget without its blocks."""
    held = one.exposure
    return budget_pb2.Budget(
        stream=one.stream,
        unit=one.unit,
        epsilon=one.epsilon,
        delta=one.delta,
        composition=one.composition,
        exposure=budget_pb2.Exposure(
            oldest=moment(held.oldest_ms),
            newest=moment(held.newest_ms),
            blocks=held.blocks,
            dp_records=held.dp_records,
        ),
        blocks_alive=one.blocks_alive,
        blocks_retired=one.blocks_retired,
        least_left=one.least_left,
        most_left=one.most_left,
    )


def budget_summary(message: budget_pb2.Budget) -> views.BudgetSummary:
    """Back."""
    held = message.exposure
    return views.BudgetSummary(
        stream=message.stream,
        unit=message.unit,
        epsilon=message.epsilon,
        delta=message.delta,
        composition=message.composition,
        exposure=views.ExposureView(millis(held, "oldest"), millis(held, "newest"), held.blocks, held.dp_records),
        blocks_alive=message.blocks_alive,
        blocks_retired=message.blocks_retired,
        least_left=message.least_left if message.HasField("least_left") else None,
        most_left=message.most_left if message.HasField("most_left") else None,
    )


def ledger_map_message(one: views.LedgerMap) -> budget_pb2.GetLedgerMapResponse:
    """The ledger as a map."""
    return budget_pb2.GetLedgerMapResponse(
        stream=one.stream,
        begin=one.begin,
        count=one.count,
        blocks=one.blocks,
        columns=[budget_pb2.LedgerColumn(**column.as_json()) for column in one.columns],
        spenders=[budget_pb2.Spender(**spender.as_json()) for spender in one.spenders],
        entries=one.entries,
        oldest_entry=one.oldest_entry,
    )


def ledger_map(message: budget_pb2.GetLedgerMapResponse) -> views.LedgerMap:
    """Back."""
    columns = (
        views.LedgerColumn(
            one.first, one.last, one.window, one.blocks, one.retired, tuple(one.shares), one.mean, one.flat
        )
        for one in message.columns
    )
    spenders = (views.Spender(one.who, one.purpose, one.charges, one.most, one.part) for one in message.spenders)
    return views.LedgerMap(
        message.stream,
        message.begin,
        message.count,
        message.blocks,
        tuple(columns),
        tuple(spenders),
        message.entries,
        message.oldest_entry,
    )


def charge_message(one: views.ChargeLine) -> budget_pb2.Charge:
    """An entry of the ledger."""
    text = canonical(one.entry).decode()
    return budget_pb2.Charge(number=one.number, kind=one.kind, key=one.key, entry_json=text)


def charge_line(message: budget_pb2.Charge) -> views.ChargeLine:
    """Back."""
    entry = json_object(message.entry_json, "an entry of the ledger")
    return views.ChargeLine(message.number, message.kind, message.key, entry)


def cycle_message(one: views.CycleView) -> operation_pb2.Cycle:
    """A cycle."""
    return operation_pb2.Cycle(
        stream=one.stream,
        window=one.window,
        status=one.status,
        steps=one.steps,
        plan_status=one.plan_status,
        outcomes=one.outcomes,
        dp_records=one.dp_records,
        trained=[
            operation_pb2.Trained(
                ptk=line.ptk,
                outcome=line.outcome,
                version=line.version,
                epsilon=line.epsilon or "",
                samples=line.samples,
                reason=line.reason,
            )
            for line in one.trained
        ],
    )


def cycle_view(message: operation_pb2.Cycle) -> views.CycleView:
    """Back."""
    return views.CycleView(
        stream=message.stream,
        window=message.window,
        status=message.status,
        steps=tuple(message.steps),
        plan_status=message.plan_status,
        dp_records=message.dp_records,
        trained=tuple(_trained(line) for line in message.trained),
        outcomes=dict(message.outcomes),
    )


def _trained(line: operation_pb2.Trained) -> views.TrainedLine:
    return views.TrainedLine(
        ptk=line.ptk,
        outcome=line.outcome,
        version=_optional(line, "version"),
        epsilon=line.epsilon or None,
        samples=_optional(line, "samples"),
        reason=line.reason,
    )


def operation_message(one: views.OperationView) -> operation_pb2.Operation:
    """An operation."""
    return operation_pb2.Operation(
        id=one.id,
        kind=one.kind,
        stream=one.stream,
        status="OPERATION_STATUS_" + one.status,
        progress=one.progress,
        cycles=[cycle_message(cycle) for cycle in one.cycles],
        reason=one.reason,
        message=one.message,
        create_time=moment(one.created_ms),
        end_time=moment(one.ended_ms),
    )


def operation_view(message: operation_pb2.Operation) -> views.OperationView:
    """Back."""
    return views.OperationView(
        id=message.id,
        kind=message.kind,
        stream=message.stream,
        status=operation_pb2.OperationStatus.Name(message.status).removeprefix("OPERATION_STATUS_"),
        progress=message.progress,
        cycles=tuple(cycle_view(one) for one in message.cycles),
        reason=message.reason,
        message=message.message,
        created_ms=millis(message, "create_time"),
        ended_ms=millis(message, "end_time"),
    )


def delivery_message(one: views.DeliveryView) -> operation_pb2.Delivery:
    """A notification that did not arrive."""
    return operation_pb2.Delivery(
        id=one.id,
        ptk=one.ptk,
        rpc_endpoint=one.rpc_endpoint,
        version=one.version,
        attempts=one.attempts,
        dead=one.dead,
        reason=one.reason,
        next_attempt_time=moment(one.next_attempt_ms),
    )


def delivery_view(message: operation_pb2.Delivery) -> views.DeliveryView:
    """Back."""
    return views.DeliveryView(
        id=message.id,
        ptk=message.ptk,
        rpc_endpoint=message.rpc_endpoint,
        version=message.version,
        attempts=message.attempts,
        dead=message.dead,
        reason=message.reason,
        next_attempt_ms=millis(message, "next_attempt_time"),
    )


def audit_message(one: views.AuditView) -> operation_pb2.AuditEntry:
    """An entry of the audit log."""
    return operation_pb2.AuditEntry(
        number=one.number,
        time=moment(one.at_ms),
        who=one.who,
        what=one.what,
        subject=one.subject,
        outcome=one.outcome,
    )


def audit_view(message: operation_pb2.AuditEntry) -> views.AuditView:
    """Back."""
    at_ms = millis(message, "time")
    return views.AuditView(message.number, at_ms, message.who, message.what, message.subject, message.outcome)


def event_message(one: views.EventView) -> operation_pb2.Event:
    """An event."""
    return operation_pb2.Event(
        id=one.id, kind=one.kind, subject=one.subject, body_json=json.dumps(one.body), create_time=moment(one.at_ms)
    )


def event_view(message: operation_pb2.Event) -> views.EventView:
    """Back."""
    body = json_object(message.body_json, "an event's body")
    return views.EventView(message.id, message.kind, message.subject, body, millis(message, "create_time"))


def _optional(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None
