"""What people see of a store: frozen values with public or DP contents only.

``as_json()`` is what ``--json`` prints.
"""

from ptkstore.api.views.budgets import (
    BlockLine,
    BlockPage,
    BudgetSummary,
    BudgetView,
    ChargeLine,
    ChargePage,
    ExposureView,
    LedgerColumn,
    LedgerMap,
    Spender,
)
from ptkstore.api.views.events import (
    AuditPage,
    AuditView,
    CallerView,
    DeliveryPage,
    DeliveryView,
    EventPage,
    EventView,
)
from ptkstore.api.views.operations import (
    CycleView,
    Finding,
    OperationPage,
    OperationView,
    TrainedLine,
)
from ptkstore.api.views.plans import (
    LeftOutLine,
    PartitionLine,
    PlanLine,
    PlanView,
    SurplusLine,
    WhatIfView,
)
from ptkstore.api.views.ptks import (
    AppliedView,
    ProfileView,
    PtkConfig,
    PtkPage,
    PtkView,
    Registration,
    StateError,
    StateView,
    SubscriptionView,
)
from ptkstore.api.views.view import View

__all__ = [
    "AppliedView",
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
    "LeftOutLine",
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
    "StateError",
    "StateView",
    "SubscriptionView",
    "SurplusLine",
    "TrainedLine",
    "View",
    "WhatIfView",
]
