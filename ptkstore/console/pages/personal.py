"""What concerns the visitor alone: the theme, and signing out."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from ptkstore.console.page.page import THEME_COOKIE, THEMES, Page, Visit, safe_way_back
from ptkstore.console.security.sign_in import COOKIE

__all__ = ["PAGES"]

_YEAR_SECONDS = 31_536_000


def set_theme(visit: Visit) -> Response:
    """Light, dark, or as the system is; kept in a cookie, so that it works without scripts and
    never flashes.
    """
    wanted = visit.form.get("theme", "")
    answer = RedirectResponse(
        safe_way_back(visit.form.get("back", ""), "overview"), status_code=303
    )
    if wanted in THEMES:
        secure = visit.request.url.scheme == "https"
        answer.set_cookie(
            THEME_COOKIE,
            wanted,
            max_age=_YEAR_SECONDS,
            path=None,
            httponly=True,
            samesite="lax",
            secure=secure,
        )
    return answer


def sign_out(visit: Visit) -> Response:
    """End the session here and in the browser."""
    visit.leave()
    answer = RedirectResponse("sign-in", status_code=303)
    answer.set_cookie(COOKIE, "", max_age=0, path=None, httponly=True, samesite="strict")
    return answer


PAGES = (
    Page(path="theme", view=set_theme, method="POST"),
    Page(path="sign-out", view=sign_out, method="POST"),
)
