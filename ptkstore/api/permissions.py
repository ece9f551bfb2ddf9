"""One table: who may call what. An RPC that is not in it is denied to everybody.

Roles: a *reader* sees PTKs, states, plans and budgets; a *producer* feeds streams; a *developer*
registers and changes PTKs; an *operator* may do everything. A token may be limited to some streams
or PTKs. ``scope`` says what that means for an RPC:

named     the request names the stream or the PTK; others are denied
checked   the request names something else (an operation, a subscription), whose stream or PTK the service checks
filtered  the answer leaves out what the caller may not see
whole     about the whole store: denied to limited callers
open      about no stream and no PTK
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "ANYONE",
    "CHANGING",
    "PERMISSIONS",
    "ROLES",
    "SCOPES",
    "Permission",
    "is_counted",
    "table",
]

ROLES = ("reader", "producer", "developer", "operator")
SCOPES = ("named", "checked", "filtered", "whole", "open")
# RPCs of the frame: health needs no credentials, for those who ask are not people.
ANYONE = (
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.health.v1.Health/List",
)


@dataclass(frozen=True, kw_only=True)
class Permission:
    """Who may call an RPC. ``stream`` and ``ptk`` are the fields of the request that name them.

    ``records`` says what it has to do with raw records: it ``carries`` them (how often it is
    called, and whether it succeeds, may depend on them), it ``announces`` them (producers call it
    before they push), or its time ``grows`` with those that are held. None of that may be told to
    anybody but the caller.
    """

    roles: frozenset[str]
    scope: str
    stream: str = ""
    ptk: str = ""
    mutates: bool = False
    records: str = ""


def _may(
    roles: str,
    *,
    scope: str = "",
    stream: str = "",
    ptk: str = "",
    mutates: bool = False,
    records: str = "",
) -> Permission:
    return Permission(
        roles=frozenset((*roles.split(), "operator")),
        scope=scope or "named",
        stream=stream,
        ptk=ptk,
        mutates=mutates,
        records=records,
    )


_PTK = "/ptkstore.v1.PtkService/"
_STREAM = "/ptkstore.v1.StreamService/"
_PLAN = "/ptkstore.v1.PlanService/"
_BUDGET = "/ptkstore.v1.BudgetService/"
_OPERATION = "/ptkstore.v1.OperationService/"
_EVENT = "/ptkstore.v1.EventService/"

PERMISSIONS: Mapping[str, Permission] = {
    _PTK + "RegisterPtk": _may("developer", ptk="name", stream="stream", mutates=True),
    _PTK + "DeregisterPtk": _may("developer", ptk="name", mutates=True),
    _PTK + "UpdatePtkConfig": _may("developer", ptk="name", mutates=True),
    _PTK + "UpdatePtkPerformanceTarget": _may("developer", ptk="name", mutates=True),
    _PTK + "ApplyChanges": _may("developer", scope="checked", mutates=True),
    _PTK + "GetPtk": _may("reader developer", ptk="name"),
    _PTK + "ListPtks": _may("reader developer", scope="filtered"),
    _PTK + "CountPtks": _may("reader developer", scope="filtered"),
    _PTK + "SearchPtks": _may("reader developer", scope="filtered"),
    _PTK + "ListPtkConfigs": _may("reader developer", ptk="name"),
    _PTK + "ListPtkKinds": _may("reader developer", scope="open"),
    _PTK + "GetPtkProfile": _may("reader developer", ptk="name"),
    _PTK + "RenewPtkProfile": _may("developer", ptk="name", mutates=True),
    _PTK + "ListStates": _may("reader developer", ptk="name"),
    _PTK + "GetState": _may("reader developer", ptk="name"),
    _PTK + "ReadState": _may("reader developer", ptk="name"),
    _PTK + "WatchPtk": _may("reader developer", ptk="name"),
    _PTK + "SubscribeToPtk": _may("reader developer", ptk="ptk", mutates=True),
    _PTK + "UnsubscribeFromPtk": _may("reader developer", scope="checked", mutates=True),
    _PTK + "ListSubscriptions": _may("reader developer", scope="filtered"),
    _STREAM + "CreateStream": _may("", scope="whole", mutates=True),
    _STREAM + "GetStream": _may("reader producer developer", stream="name", records="announces"),
    _STREAM + "ListStreams": _may("reader producer developer", scope="filtered"),
    _STREAM + "Append": _may("producer", scope="checked", mutates=True, records="carries"),
    _STREAM + "SealStream": _may("", stream="name", mutates=True, records="grows"),
    _STREAM + "CloseWindow": _may("", stream="stream", mutates=True, records="grows"),
    _PLAN + "GetPlan": _may("reader developer", stream="stream"),
    _PLAN + "ListPlans": _may("reader developer", stream="stream"),
    _PLAN + "WhatIf": _may("developer", stream="stream"),
    _PLAN + "ApprovePlan": _may("", stream="stream", mutates=True),
    _BUDGET + "GetBudget": _may("reader developer", stream="stream"),
    _BUDGET + "ListBlocks": _may("reader developer", stream="stream"),
    _BUDGET + "GetBlock": _may("reader developer", stream="stream"),
    _BUDGET + "ListCharges": _may("reader developer", stream="stream"),
    _BUDGET + "GetLedgerMap": _may("reader developer", stream="stream"),
    _OPERATION + "GetOperation": _may("reader developer", scope="checked"),
    _OPERATION + "ListOperations": _may("reader developer", scope="filtered"),
    _OPERATION + "WatchOperation": _may("reader developer", scope="checked"),
    _OPERATION + "ListCycles": _may("reader developer", stream="stream"),
    _OPERATION + "RunDoctor": _may("", scope="whole", records="grows"),
    _EVENT + "ListEvents": _may("reader developer", scope="filtered"),
    _EVENT + "WatchEvents": _may("reader developer", scope="filtered"),
    _EVENT + "GetCaller": _may("reader producer developer", scope="open"),
    _EVENT + "ListDeliveries": _may("", scope="whole"),
    _EVENT + "RetryDelivery": _may("", scope="whole", mutates=True),
    _EVENT + "ListAuditEntries": _may("", scope="whole"),
    # Called by us, never served by us.
    "/ptkstore.v1.SubscriberService/NotifyNewPtkState": Permission(roles=frozenset(), scope="open"),
    # Which services there are is public; asking takes any valid credential all the same.
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _may(
        "reader producer developer", scope="open"
    ),
}

# RPCs that change something.
CHANGING = tuple(name for name, permission in PERMISSIONS.items() if permission.mutates)


def is_counted(method: str) -> bool:
    """False for an RPC that comes with raw records, or before them: how often it is called is
    between its caller and us.
    """
    permission = PERMISSIONS.get(method)
    return permission is None or permission.records not in ("carries", "announces")


def table() -> str:
    """The permissions as the Markdown table of the reference."""
    lines = [
        "| RPC | " + " | ".join(ROLES) + " | limited tokens |",
        "|---|" + "---|" * (len(ROLES) + 1),
    ]
    for method, permission in PERMISSIONS.items():
        marks = ["yes" if role in permission.roles else "" for role in ROLES]
        named = " and ".join(
            word
            for word in ("stream" if permission.stream else "", "PTK" if permission.ptk else "")
            if word
        )
        limits = {
            "named": f"their {named} only",
            "checked": "their streams and PTKs only",
            "filtered": "see their streams and PTKs",
            "whole": "denied",
            "open": "",
        }
        name = method.removeprefix("/ptkstore.v1.").removeprefix("/grpc.reflection.v1alpha.")
        lines.append(f"| `{name}` | " + " | ".join([*marks, limits[permission.scope]]) + " |")
    return "\n".join(lines) + "\n"
