"""Requests that another site made a browser send change nothing here.

Three things must fit: the cookie is SameSite=Strict, the browser says that the request is from our
own pages (where it says anything), and a secret of the session comes back in the form or in the
header ``X-CSRF``. Signing in, where there is no session yet, has a secret of its own: the MAC of a
random cookie. Reason: FORM_FORGED.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import Request

from ptklib.errors import AccessDenied

__all__ = ["FIELD", "HEADER", "Visitors", "require_our_page", "require_secret"]

FIELD, HEADER = "csrf", "x-csrf"


class Visitors:
    """Secrets for forms of visitors without a session."""

    def __init__(self) -> None:
        """With a key that lives as long as the process."""
        self._key = secrets.token_bytes(32)

    def secret(self, cookie: str) -> str:
        """What the form must bring back when the browser has that cookie."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()


def require_our_page(request: Request) -> None:
    """FORM_FORGED when the browser says that another site's page sent this."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    ours = origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    if site not in ("same-origin", "none") or not ours:
        raise _forged()


def require_secret(request: Request, form: Mapping[str, str], secret: str) -> None:
    """FORM_FORGED unless the secret came back."""
    told = form.get(FIELD) or request.headers.get(HEADER, "")
    if not hmac.compare_digest(told.encode(), secret.encode()):
        raise _forged()


def _forged() -> AccessDenied:
    return AccessDenied(
        "FORM_FORGED",
        "this form did not come from a page that you were shown, or from one that is too old: nothing was done",
    )
