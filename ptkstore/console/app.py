"""The console as an ASGI application: who visits, whether they may, the page, and errors as pages.

Every page but those of `doors` takes a session. Everything that changes something is a POST with
the session's secret.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from ptklib.encoding.error_place import place_of
from ptklib.errors import InvalidInput, Refused, SageError
from ptkstore.api.telling import told
from ptkstore.console.page.faults import fault_of
from ptkstore.console.page.page import Page, Visit, theme_of
from ptkstore.console.page.rendering import STATIC, link, static, templates
from ptkstore.console.pages import PAGES
from ptkstore.console.security.csrf import require_our_page, require_secret
from ptkstore.console.security.security_headers import SecurityHeaders
from ptkstore.console.security.sign_in import COOKIE, Doors
from ptkstore.console.sessions.sessions import ConsoleSession, OneTimeKeys, Sessions
from ptkstore.console.sessions.settings import ConsoleSettings
from ptkstore.console.sessions.sources import Source

__all__ = ["Console", "make_app"]

_LOG = logging.getLogger(__name__)
_MOST_FORM_BYTES = 1 << 18
# A page that renews itself says so, and keeps no session alive. Neither does a browser that takes
# up a stream of events again.
_BACKGROUND = "x-background"
_EVENTS = "text/event-stream"


def make_app(
    source: Source,
    settings: ConsoleSettings | None = None,
    *,
    keys: OneTimeKeys | None = None,
    key_used: Callable[[], None] = lambda: None,
    pages: Sequence[Page] = PAGES,
) -> ASGIApp:
    """The console over a source of stores. ``key_used`` is called after a one-time link was."""
    return Console(
        source, settings or ConsoleSettings(), keys or OneTimeKeys(), key_used, tuple(pages)
    ).app


class Console:
    """The parts of one console."""

    def __init__(
        self,
        source: Source,
        settings: ConsoleSettings,
        keys: OneTimeKeys,
        key_used: Callable[[], None],
        pages: tuple[Page, ...],
    ) -> None:
        """Nobody is signed in."""
        self._source = source
        self._nav = tuple(page for page in pages if page.label)
        self.sessions = Sessions(settings, source.give_back)
        doors = Doors(source, settings, self.sessions, keys, key_used)
        inside = Starlette(
            routes=[
                Route("/", self._root),
                Route("/sign-in", self._guarded(doors.sign_in_page)),
                Route("/sign-in", self._guarded(doors.sign_in), methods=["POST"]),
                Route("/open", self._guarded(doors.open)),
                *(
                    Route(f"/{page.path}", self._endpoint(page), methods=[page.method])
                    for page in pages
                ),
                Mount("/static", _KeptFiles(directory=STATIC)),
            ],
            exception_handlers={404: self._not_here, 405: self._not_here},
            lifespan=self._living,
        )
        # It would make an absolute address of whatever the visitor calls us, and forget the prefix.
        inside.router.redirect_slashes = False
        self.app: ASGIApp = SecurityHeaders(inside, settings)

    @asynccontextmanager
    async def _living(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        self.sessions.end_all()

    async def _root(self, request: Request) -> Response:
        known = self._session(request) is not None
        return RedirectResponse(self._nav[0].path if known else "sign-in", status_code=303)

    def _guarded(
        self, work: Callable[[Request, dict[str, str]], Response]
    ) -> Callable[[Request], object]:
        """For those who are not signed in."""

        async def endpoint(request: Request) -> Response:
            try:
                form: dict[str, str] = {}
                if request.method == "POST":
                    require_our_page(request)
                    form = await _form(request)
                return await run_in_threadpool(work, request, form)
            except Exception as error:
                return self._failed(request, None, error)

        return endpoint

    def _endpoint(self, page: Page) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            session = self._session(request)
            if session is None:
                return _please_sign_in(request)
            visit = self._visit(request, session, page)
            try:
                if page.method == "POST":
                    require_our_page(request)
                    form = await _form(request)
                    require_secret(request, form, session.csrf)
                    session.forget()
                    visit = Visit(**{**vars(visit), "form": form})
                visit.require(page.role)
                return await run_in_threadpool(page.view, visit)
            except Exception as error:
                return self._failed(request, visit, error)

        return endpoint

    def _visit(self, request: Request, session: ConsoleSession, page: Page) -> Visit:
        def alive() -> bool:
            return self.sessions.find(session.id, touch=False) is not None

        nav = tuple(page for page in self._nav if session.may(page.role))
        return Visit(
            request,
            session,
            self._source.place,
            nav,
            page,
            alive,
            lambda: self.sessions.end(session.id),
        )

    def _session(self, request: Request) -> ConsoleSession | None:
        number = request.cookies.get(COOKIE, "")
        by_itself = _BACKGROUND in request.headers or request.headers.get("accept", "") == _EVENTS
        return self.sessions.find(number, touch=not by_itself) if number else None

    async def _not_here(self, request: Request, _error: Exception) -> Response:
        session = self._session(request)
        error = Refused("PAGE_UNKNOWN", "the console has no such page")
        page = Page(path="", view=lambda visit: visit.render("error.html"))
        return self._failed(
            request, self._visit(request, session, page) if session else None, error
        )

    def _failed(self, request: Request, visit: Visit | None, error: Exception) -> Response:
        """The page of an error.

        What is not ours is logged by kind and place alone: its text may quote data.
        """
        if not isinstance(error, SageError):
            _LOG.error("a page failed with %s at %s", type(error).__name__, place_of(error))
        fault = fault_of(told(error))
        if fault.status == 401 and visit is not None:
            # The token was revoked or has expired meanwhile: there is nothing left to see.
            self.sessions.end(visit.session.id)
            return _please_sign_in(request)
        template = templates().get_template("error.html" if visit is not None else "closed.html")
        body = template.render(visit=visit, theme=theme_of(request), fault=fault)
        return HTMLResponse(body, status_code=fault.status)


class _KeptFiles(StaticFiles):
    """Static files. Their addresses change with their contents, so browsers may keep them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file."""
        response = await super().get_response(path, scope)
        # The right address alone: the next one may be asked for before its file is here.
        asked = f"static/{path}?{scope.get('query_string', b'').decode('latin-1')}"
        kept = response.status_code in (200, 304) and asked == static(path)
        response.headers["cache-control"] = (
            "public, max-age=31536000, immutable" if kept else "no-cache"
        )
        return response


def _please_sign_in(request: Request) -> Response:
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"hx-redirect": link("sign-in", over="1")})
    over = "1" if COOKIE in request.cookies else ""
    return RedirectResponse(link("sign-in", over=over), status_code=303)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form. Reason: FORM_INVALID."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > _MOST_FORM_BYTES:
            raise InvalidInput("FORM_INVALID", "the form is too large")
    if kind != "application/x-www-form-urlencoded":
        raise InvalidInput("FORM_INVALID", "a form must be application/x-www-form-urlencoded")
    try:
        return dict(
            parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=1000)
        )
    except (UnicodeDecodeError, ValueError):
        raise InvalidInput("FORM_INVALID", "the form cannot be read") from None
