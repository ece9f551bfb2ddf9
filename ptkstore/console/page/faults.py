"""Errors as pages: what happened, its stable reason, and what to do. Reason: PAGE_UNKNOWN."""

from __future__ import annotations

from dataclasses import dataclass

from ptklib import errors
from ptklib.errors import AccessDenied, InvalidInput, LimitExceeded, Refused, SageError

__all__ = ["Fault", "fault_of"]

_STATUSES: tuple[tuple[type[SageError], int], ...] = (
    (InvalidInput, 400),
    (AccessDenied, 403),
    (LimitExceeded, 429),
    (Refused, 409),
)
# Whatever part of the store is away: metadata, lake, ledger, streams or the server itself.
_AWAY = (
    errors.BusUnavailable,
    errors.JournalUnavailable,
    errors.LakeUnavailable,
    errors.LeadLost,
    errors.MetadataUnavailable,
    errors.PlanContended,
    errors.ServerUnavailable,
    errors.StreamUnavailable,
)
_BY_REASON = {"CREDENTIALS_MISSING": 401, "CREDENTIALS_INVALID": 401}
_TITLES = {
    400: "That does not fit",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not here",
    409: "Refused",
    429: "Too much at once",
    503: "The store does not answer",
}
_ADVICE = {
    "CREDENTIALS_INVALID": "Sign in with a valid token. An operator makes one: `sage token create NAME --role reader`.",
    "CREDENTIALS_MISSING": "Sign in with a token, or open the newest link that `sage ui` printed in its terminal.",
    "DEADLINE_PASSED": "The server is busy. Load the page again in a moment; `sage health` asks it how it is.",
    "FORM_FORGED": "Go back, load the page again and repeat what you did. If it happens again, does a proxy drop cookies?",
    "INTERNAL_ERROR": "This is a bug of Sage. The log of the console says where; nothing of your data is in it.",
    "LINK_USED": "Each link opens the console once. The terminal of `sage ui` shows a fresh one.",
    "PAGE_UNKNOWN": "Use the navigation above: every page of the console is there.",
    "PERMISSION_DENIED": "Your token has other roles or limits. An operator makes others: `sage token create NAME --role X`.",
    "RATE_LIMITED": "Wait a few seconds and try again.",
    "SERVER_UNAVAILABLE": "Check that `sage serve` runs and that the address is right: `sage health HOST:PORT` asks it.",
    "STREAM_UNKNOWN": "The stream may have another name. The overview lists all streams that you may see.",
}
_GENERAL = {
    400: "Correct the value and try again; nothing was done.",
    403: "Ask an operator.",
    409: "Nothing was changed. The message says what stands in the way.",
    503: "Load the page again in a moment.",
}


@dataclass(frozen=True)
class Fault:
    """What an error page shows."""

    status: int
    title: str
    message: str
    reason: str
    advice: str


def fault_of(error: SageError) -> Fault:
    """An error of ours for a person at the console."""
    status = _status(error)
    title = _TITLES.get(status, "Something went wrong")
    message = error.message[:1].upper() + error.message[1:]
    advice = _ADVICE.get(error.reason) or _GENERAL.get(
        status, "Look at the log of the console and of the server."
    )
    return Fault(status, title, message.rstrip(".") + ".", error.reason, advice)


def _status(error: SageError) -> int:
    if error.reason in _BY_REASON:
        return _BY_REASON[error.reason]
    if error.reason.endswith("_UNKNOWN") and isinstance(error, Refused):
        return 404
    if isinstance(error, _AWAY):
        return 503
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
