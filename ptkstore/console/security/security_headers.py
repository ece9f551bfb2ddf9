"""What surrounds every answer: which names and prefixes are listened to, and headers that keep the
browser strict.

Nothing is loaded from elsewhere, no script or style is inline and nothing is evaluated, so that a
text which slips through unescaped still does nothing. Reason: HOST_UNKNOWN.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ptklib.errors import InvalidInput
from ptkstore.console.sessions.settings import PREFIX, ConsoleSettings

__all__ = ["CONTENT_POLICY", "SecurityHeaders"]

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # With "no-referrer" browsers would send no origin with our own forms, either.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_YEAR_SECONDS = 31_536_000


class SecurityHeaders:
    """An ASGI application around the console's."""

    def __init__(self, app: ASGIApp, settings: ConsoleSettings) -> None:
        """Wrap one."""
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        prefix, scope = self._seen(scope)
        host = Headers(scope=scope).get("host", "")

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["cache-control"] = "no-store"
                if scope["scheme"] == "https":
                    headers["strict-transport-security"] = f"max-age={_YEAR_SECONDS}"
            await send(message)

        if self._settings.hosts and _name(host) not in self._settings.hosts:
            error = InvalidInput("HOST_UNKNOWN", "this console does not answer to that name")
            await PlainTextResponse(f"{error}\n", status_code=421)(scope, receive, sealed)
            return
        if prefix and scope["path"] == prefix:
            # Without the slash our links would lead out of the prefix.
            await RedirectResponse(prefix.rpartition("/")[2] + "/", status_code=303)(
                scope, receive, sealed
            )
            return
        if scope["path"].startswith(prefix + "/"):
            scope["path"] = scope["path"][len(prefix) :]
        await self._app(scope, receive, sealed)

    def _seen(self, scope: Scope) -> tuple[str, Scope]:
        """The prefix, and the request as the browser made it."""
        prefix = self._settings.root_path
        scope = dict(scope)
        if self._settings.trust_proxy:
            told = Headers(scope=scope)
            scheme, host, visitor = (_last(told, name) for name in ("proto", "host", "for"))
            if scheme in ("http", "https"):
                scope["scheme"] = scheme
            prefix = prefix or _clean(_last(told, "prefix"))
            if visitor:
                scope["client"] = (visitor, 0)
            if host:
                kept = [header for header in scope["headers"] if header[0] != b"host"]
                scope["headers"] = [*kept, (b"host", host.encode("latin-1"))]
        return prefix, scope


def _name(host: str) -> str:
    """A host without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _last(told: Headers, name: str) -> str:
    """What the proxy itself says. What a visitor sent under the same name comes before it, in the
    same line or in one of its own: proxies do both.
    """
    return ",".join(told.getlist(f"x-forwarded-{name}")).rpartition(",")[2].strip()


def _clean(prefix: str) -> str:
    """A prefix that is one, else none."""
    trimmed = prefix.rstrip("/")
    return trimmed if PREFIX.fullmatch(trimmed) else ""
