"""One request of one visitor, and what a page does with it. A page is a function of a `Visit`; it
may block.

Reason: PERMISSION_DENIED.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ptklib.errors import AccessDenied
from ptkstore.api.store import Store
from ptkstore.console.page.rendering import link, templates
from ptkstore.console.sessions.sessions import ConsoleSession

__all__ = ["THEMES", "THEME_COOKIE", "Page", "Visit", "safe_way_back", "theme_of"]

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "sage_theme"
_MOST_TEXT = 200
_WAY_BACK = re.compile(r"[a-z][a-z-]*(\?[A-Za-z0-9_.~%&=+-]*)?")


@dataclass(frozen=True, kw_only=True)
class Page:
    """One path. ``label`` puts it into the navigation, ``under`` names the page there that it
    belongs to. ``role`` is who may ask for it.

    A POST is an action: it comes with a form, its secret was checked, and it ends with `Visit.go`.
    """

    path: str
    view: Callable[[Visit], Response]
    label: str = ""
    under: str = ""
    role: str = "reader"
    method: str = "GET"


@dataclass(frozen=True)
class Visit:
    """One request. ``form`` has the fields of an action; ``alive`` is false once the session is
    over, and ``leave`` ends it.
    """

    request: Request
    session: ConsoleSession
    place: str
    nav: tuple[Page, ...]
    page: Page
    alive: Callable[[], bool]
    leave: Callable[[], None]
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """The store, as the visitor may see it."""
        return self.session.store

    def asked(self, name: str, default: str = "") -> str:
        """A value of the query."""
        return self.request.query_params.get(name, default)

    def searched(self, name: str = "find") -> str:
        """Words of the query that are searched for."""
        return self.asked(name)[:_MOST_TEXT].strip()

    def may(self, role: str) -> bool:
        """True for a role of the visitor."""
        return self.session.may(role)

    def require(self, role: str) -> None:
        """PERMISSION_DENIED unless the visitor has the role.

        The server checks again, whatever is shown here.
        """
        if not self.may(role):
            raise AccessDenied("PERMISSION_DENIED", f"this takes the role {role}")

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page."""
        body = (
            templates()
            .get_template(template)
            .render(visit=self, theme=theme_of(self.request), **values)
        )
        return HTMLResponse(body, status_code=status)

    def go(self, path: str, **query: object) -> Response:
        """To another page, after an action."""
        return RedirectResponse(link(path, query), status_code=303)

    @property
    def way_back(self) -> str:
        """This page and its query, for actions that return to it."""
        query = self.request.url.query
        here = self.page.path + ("?" + query if query else "")
        return here if _WAY_BACK.fullmatch(here) and self.page.method == "GET" else ""


def theme_of(request: Request) -> str:
    """The theme that the visitor chose."""
    theme = request.cookies.get(THEME_COOKIE, "auto")
    return theme if theme in THEMES else "auto"


def safe_way_back(text: str, otherwise: str) -> str:
    """A relative path of ours as a form brought it, or the other one: never another site."""
    return text if _WAY_BACK.fullmatch(text) else otherwise
