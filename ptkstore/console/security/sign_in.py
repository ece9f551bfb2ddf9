"""The two ways in: a token, or the one-time link of whoever started the console.

Reasons: LINK_USED, RATE_LIMITED.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ptklib.errors import AccessDenied, SageError
from ptkstore.allowance import Allowance
from ptkstore.api.store import Store
from ptkstore.console.page.faults import fault_of
from ptkstore.console.page.page import theme_of
from ptkstore.console.page.rendering import templates
from ptkstore.console.security.csrf import Visitors, require_secret
from ptkstore.console.sessions.sessions import OneTimeKeys, Sessions
from ptkstore.console.sessions.settings import ConsoleSettings
from ptkstore.console.sessions.sources import Source

__all__ = ["COOKIE", "VISITOR_COOKIE", "Doors"]

COOKIE = "sage_session"
VISITOR_COOKIE = "sage_visitor"
_FIRST_PAGE = "overview"


class Doors:
    """Signing in.

    Cookies have no path: browsers give them to everything below the prefix that they see.
    """

    def __init__(
        self,
        source: Source,
        settings: ConsoleSettings,
        sessions: Sessions,
        keys: OneTimeKeys,
        key_used: Callable[[], None],
    ) -> None:
        """All doors lead to the same sessions."""
        self._source = source
        self._sessions = sessions
        self._keys = keys
        self._key_used = key_used
        self._visitors = Visitors()
        self._tries = Allowance(settings.sign_ins_per_second, burst_seconds=5.0)

    def sign_in_page(self, request: Request, _form: dict[str, str]) -> Response:
        """Ask for a token, or for the link."""
        return self._page(request)

    def sign_in(self, request: Request, form: dict[str, str]) -> Response:
        """With a token. A wrong one is told on the same page."""
        cookie = request.cookies.get(VISITOR_COOKIE, "")
        require_secret(request, form, self._visitors.secret(cookie))
        self._tries.take(request.client.host if request.client is not None else "")
        try:
            store = self._source.for_token(form.get("token", "").strip())
            return self._let_in(request, store)
        except SageError as error:
            return self._page(request, error)

    def open(self, request: Request, _form: dict[str, str]) -> Response:
        """With the link that was printed in the terminal."""
        self._tries.take(request.client.host if request.client is not None else "")
        if not self._keys.use(request.query_params.get("key", "")):
            raise AccessDenied(
                "LINK_USED", "this link was used already, or is not one of this console"
            )
        answer = self._let_in(request, self._source.local())
        self._key_used()
        return answer

    def _let_in(self, request: Request, store: Store) -> Response:
        try:
            caller = store.caller()
            if not {"reader", "developer", "operator"} & set(caller.roles):
                raise AccessDenied(
                    "PERMISSION_DENIED", "the console takes the role reader, developer or operator"
                )
        except BaseException:
            self._source.give_back(store)
            raise
        before = request.cookies.get(COOKIE)
        if before:
            self._sessions.end(before)
        session = self._sessions.begin(store, caller)
        answer = RedirectResponse(_FIRST_PAGE, status_code=303)
        _set_cookie(answer, request, COOKIE, session.id)
        return answer

    def _page(self, request: Request, error: SageError | None = None) -> Response:
        fault = fault_of(error) if error is not None else None
        cookie = secrets.token_urlsafe(16)
        body = (
            templates()
            .get_template("sign_in.html")
            .render(
                visit=None,
                theme=theme_of(request),
                fault=fault,
                place=self._source.place,
                takes_tokens=self._source.takes_tokens,
                over=request.query_params.get("over") == "1",
                secret=self._visitors.secret(cookie),
            )
        )
        answer = HTMLResponse(body, status_code=fault.status if fault is not None else 200)
        _set_cookie(answer, request, VISITOR_COOKIE, cookie)
        return answer


def _set_cookie(answer: Response, request: Request, name: str, value: str) -> None:
    secure = request.url.scheme == "https"
    # The type of `path` does not say so, but None leaves it out.
    answer.set_cookie(name, value, path=None, httponly=True, samesite="strict", secure=secure)
