"""What people see of a store: frozen values with public or DP contents only. ``as_json()`` is what ``--json`` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = [
    "AuditPage",
    "AuditView",
    "BlockLine",
    "BlockPage",
    "BudgetSummary",
    "BudgetView",
    "CallerView",
    "ChargeLine",
    "ChargePage",
    "CycleView",
    "DeliveryPage",
    "DeliveryView",
    "EventPage",
    "EventView",
    "ExposureView",
    "Finding",
    "LedgerColumn",
    "LedgerMap",
    "OperationPage",
    "OperationView",
    "PartitionLine",
    "PlanLine",
    "PlanView",
    "ProfileView",
    "PtkConfig",
    "PtkPage",
    "PtkView",
    "Registration",
    "Spender",
    "StateView",
    "SubscriptionView",
    "TrainedLine",
    "View",
    "WhatIfView",
]


class View:
    """A value that can be printed."""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Registration(View):
    """The answer to a registration or an update. ``status`` is ACTIVE, WAITING (for its profile) or REJECTED.

    ``reason`` is for people, ``nearest_target`` is the best target that would be accepted now, ``changes`` what else would
    admit it.
    """

    name: str
    status: str
    reason: str = ""
    nearest_target: float | None = None
    changes: tuple[str, ...] = ()
    planned_epsilon: str | None = None
    planned_samples: int | None = None


@dataclass(frozen=True)
class PtkView(View):
    """A registered PTK. ``status``: ACTIVE, WAITING, REJECTED, RETIRED or FAILED (its last training was lost).

    ``nearest_target`` and ``changes`` are what would have admitted one that is REJECTED, as far as that is known.
    """

    name: str
    stream: str
    kind: str
    config: dict[str, Any]
    config_version: int
    target: float
    train_every: int
    status: str
    reason: str
    latest_version: int | None
    nearest_target: float | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PtkPage(View):
    """A page of a search: how many PTKs were ``found``, of how many in ``total``."""

    ptks: tuple[PtkView, ...]
    found: int
    total: int
    page: int


@dataclass(frozen=True)
class PtkConfig(View):
    """A configuration that a PTK has or had."""

    version: int
    config: dict[str, Any]


@dataclass(frozen=True)
class SubscriptionView(View):
    """Who is told of a PTK's states, and up to which version that was done."""

    id: str
    ptk: str
    endpoint: str
    delivered_version: int


@dataclass(frozen=True)
class ProfileView(View):
    """Samples of a PTK at each level, None where its target is not reached. ``source``: analytic, measured, or none yet.

    ``promised`` is the loss that these samples keep with ``confidence``; ``measured`` are the results of the levels that were
    measured; ``needed_records`` is what a profile up to 16,384 samples would take of a window, where there is none yet.
    """

    ptk: str
    status: str
    source: str
    levels: tuple[str, ...]
    samples: tuple[int | None, ...]
    promised: str | None = None
    confidence: str | None = None
    trainings: int = 0
    measured: tuple[dict[str, Any], ...] = ()
    made_ms: int | None = None
    needed_records: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class StateView(View):
    """One version of a PTK in the lake."""

    name: str
    version: int
    digest: str
    window: int
    epsilon: str
    delta: str
    samples: int | None
    created_ms: int


@dataclass(frozen=True)
class BlockLine(View):
    """A block as the ledger and the vault have it. ``dp_records`` is its one DP count; ``left`` for one more pure charge."""

    name: str
    window: int
    status: str
    dp_records: int | None
    left: float
    retired: str | None


@dataclass(frozen=True)
class ExposureView(View):
    """Raw data held now: span of event time, blocks, DP number of records. Nothing else in the store is raw."""

    oldest_ms: int | None
    newest_ms: int | None
    blocks: int
    dp_records: int


@dataclass(frozen=True)
class BudgetView(View):
    """What a stream promises and what is left of it."""

    stream: str
    unit: str
    epsilon: str
    delta: str
    composition: str
    exposure: ExposureView
    blocks: tuple[BlockLine, ...]


@dataclass(frozen=True)
class BudgetSummary(View):
    """What a stream promises, what raw data it holds now, and how many blocks it has; without the blocks.

    ``least_left`` and ``most_left`` are what one more pure charge could have on the blocks whose records are still held; None
    where there is none.
    """

    stream: str
    unit: str
    epsilon: str
    delta: str
    composition: str
    exposure: ExposureView
    blocks_alive: int
    blocks_retired: int
    least_left: float | None = None
    most_left: float | None = None


@dataclass(frozen=True)
class BlockPage(View):
    """Some blocks of a stream, oldest first; ``next_page_token`` is empty after the last page."""

    blocks: tuple[BlockLine, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class ChargeLine(View):
    """One entry of the ledger about a stream: reserve, spend, release or retire. ``key`` says who asked, such as
    ``cycle-3/hour-speed``; ``number`` counts all entries of the book."""

    number: int
    kind: str
    key: str
    entry: dict[str, Any]


@dataclass(frozen=True)
class ChargePage(View):
    """Some entries of the ledger about a stream, oldest first; ``next_page_token`` is empty after the last page."""

    charges: tuple[ChargeLine, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class LedgerColumn(View):
    """One block, or several side by side told by the largest loss of them.

    ``shares`` are of the stream's epsilon, at each of equally long ranges of tags; ``mean`` is over all tags and blocks;
    ``flat`` says that a closed block in it is told by its highest loss alone, for that is all the book keeps of it.
    """

    first: str
    last: str
    window: int
    blocks: int
    retired: int
    shares: tuple[float, ...]
    mean: float
    flat: bool


@dataclass(frozen=True)
class Spender(View):
    """Who was charged, for what, how often. ``most`` is the largest share of the stream's epsilon that one charge took at a
    point, ``part`` is of all that was spent over blocks and tags."""

    who: str
    purpose: str
    charges: int
    most: float
    part: float


@dataclass(frozen=True)
class LedgerMap(View):
    """The ledger at ``count`` of the stream's ``blocks`` from place ``begin`` on; ``spenders`` come from the newest ``entries``
    of the book, back to number ``oldest_entry``."""

    stream: str
    begin: int
    count: int
    blocks: int
    columns: tuple[LedgerColumn, ...]
    spenders: tuple[Spender, ...]
    entries: int
    oldest_entry: int


@dataclass(frozen=True)
class PlanLine(View):
    """One PTK in a plan. ``partitions`` are places in `PlanView.partitions`; ``used`` is what it uses of the budget at each
    record that it trains on, as a share."""

    ptk: str
    epsilon: str
    samples: int
    share: float
    target: float
    partitions: tuple[int, ...] = ()
    used: float = 0.0


@dataclass(frozen=True)
class PartitionLine(View):
    """A slice of the window: its samples, how many PTKs train on it, and what of the budget they use, as a share."""

    samples: int
    ptks: int
    used: float


@dataclass(frozen=True)
class PlanView(View):
    """A plan: who trains with which epsilon on how many samples. ``status``: OPTIMAL, FEASIBLE, INFEASIBLE or KEPT.

    No plan of the form asked for holds fewer samples than ``lower_bound``; ``gap`` is what a better one could save, as a
    share. ``explanation`` and ``changes`` say why there is none and what would make one feasible.
    """

    stream: str
    window: int
    status: str
    total_samples: int | None
    available_samples: int | None
    solver: str
    seconds: float
    lines: tuple[PlanLine, ...]
    explanation: str = ""
    changes: tuple[str, ...] = ()
    recommended_samples: int | None = None
    recommended_window_seconds: int | None = None
    lower_bound: int | None = None
    gap: float | None = None
    partitions: tuple[PartitionLine, ...] = ()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> PlanView:
        """Read `as_json` back."""
        lines = (PlanLine(**(line | {"partitions": tuple(line["partitions"])})) for line in body["lines"])
        partitions = tuple(PartitionLine(**one) for one in body["partitions"])
        rest = {"lines": tuple(lines), "partitions": partitions, "changes": tuple(body["changes"])}
        return cls(**(body | rest))


@dataclass(frozen=True)
class WhatIfView(View):
    """The plan of a fresh window as it is and as it would be; ``unprofiled`` PTKs cannot be planned yet.

    ``token`` approves the changes; it is empty where there is nothing to approve.
    """

    current: PlanView
    proposed: PlanView
    unprofiled: tuple[str, ...] = ()
    token: str = ""


@dataclass(frozen=True)
class TrainedLine(View):
    """What became of one PTK in a cycle. ``outcome``: PUBLISHED, SKIPPED, TRAIN_LOST or TRAIN_FAILED."""

    ptk: str
    outcome: str
    version: int | None = None
    epsilon: str | None = None
    samples: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class CycleView(View):
    """One window's cycle: its steps in order, the plan's status, what was trained, the window's DP size.

    ``outcomes`` counts all PTKs by their outcome where ``trained`` was asked to have some of them alone.
    """

    stream: str
    window: int
    status: str
    steps: tuple[str, ...]
    plan_status: str
    dp_records: int
    trained: tuple[TrainedLine, ...]
    outcomes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class EventView(View):
    """Something that happened, in order."""

    id: int
    kind: str
    subject: str
    body: dict[str, Any]
    at_ms: int | None


@dataclass(frozen=True)
class EventPage(View):
    """Some events, newest first; ``next_page_token`` is empty after the last page. A search goes back step by step: a page
    may have few events, or none, and yet not be the last."""

    events: tuple[EventView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class OperationView(View):
    """Long work that somebody asked a server for. ``status``: RUNNING, DONE or FAILED; ``progress`` is for people."""

    id: str
    kind: str
    stream: str
    status: str
    progress: str
    cycles: tuple[CycleView, ...]
    reason: str
    message: str
    created_ms: int | None
    ended_ms: int | None


@dataclass(frozen=True)
class OperationPage(View):
    """Some operations, newest first; ``next_page_token`` is empty after the last page."""

    operations: tuple[OperationView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class DeliveryView(View):
    """A notification that did not arrive: late, and tried again at ``next_attempt_ms``, or given up (``dead``)."""

    id: str
    ptk: str
    rpc_endpoint: str
    version: int
    attempts: int
    dead: bool
    reason: str
    next_attempt_ms: int | None


@dataclass(frozen=True)
class DeliveryPage(View):
    """Some notifications that did not arrive, oldest first; ``next_page_token`` is empty after the last page."""

    deliveries: tuple[DeliveryView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class AuditView(View):
    """Who asked a server for what, when, and what was decided: ALLOWED, DENIED or the reason of an error."""

    number: int
    at_ms: int | None
    who: str
    what: str
    subject: str
    outcome: str


@dataclass(frozen=True)
class AuditPage(View):
    """Some entries of the audit log, newest first; ``next_page_token`` is empty after the last page. A search goes back
    step by step: a page may have few entries, or none, and yet not be the last."""

    entries: tuple[AuditView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class CallerView(View):
    """Who the store takes you for. Empty ``streams`` and ``ptks`` mean all of them."""

    name: str
    roles: tuple[str, ...]
    streams: tuple[str, ...] = ()
    ptks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding(View):
    """What the doctor looked at. ``level``: OK, WARNING or ERROR."""

    level: str
    what: str
    detail: str
