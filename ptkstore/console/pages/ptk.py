"""One PTK: its profile and the point that was chosen, its versions with their certificates, who is
told of them, and what was changed in its configuration. Losses are promises and DP estimates, never
what was seen.

Reasons: PTK_UNKNOWN, STATE_UNKNOWN, VALUE_INVALID.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from starlette.responses import RedirectResponse, Response

from ptklib.errors import InvalidInput, SageError
from ptkstore.api.over import Over
from ptkstore.api.views import ProfileView, PtkConfig, PtkView, StateView
from ptkstore.console.page.downloading import attachment
from ptkstore.console.page.listing import listed
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.wording import window_begins
from ptkstore.drawing.profile_svg import draw

__all__ = ["PAGES", "difference"]

_FRESH_SECONDS = 3.0
_LONG_SECONDS = 300.0
_ROWS = 15
_MOST_WINDOWS = 40
_MOST_SUBSCRIBERS = 50
_ORDERS: dict[str, Any] = {
    "newest": lambda state: -state.version,
    "epsilon": lambda state: (float(state.epsilon), state.version),
    "samples": lambda state: (state.samples or 0, state.version),
}


def ptk(visit: Visit) -> Response:
    """The page."""
    name = visit.asked("name")
    if not name:
        return RedirectResponse("ptks", status_code=303)
    remember, store = visit.session.remember, visit.store
    ptk_view = store.ptk(name)
    spec = remember(
        ("stream", ptk_view.stream), _LONG_SECONDS, lambda: store.stream(ptk_view.stream)
    )
    profile = _profile(visit, ptk_view)
    states = remember(
        ("states", name, ptk_view.latest_version), _LONG_SECONDS, lambda: store.states(name)
    )
    newest = states[-1] if states else None
    chosen = (
        (newest.epsilon, newest.samples)
        if newest is not None and newest.samples is not None
        else None
    )
    learned = _learned(visit, newest, states)
    configs = store.ptk_configs(name)
    subscribers = store.subscriptions(name)
    listing = listed(
        visit,
        states,
        anchor="versions",
        text=lambda state: (
            f"v{state.version} {state.digest} {window_begins(state.window, spec.window_seconds)}"
        ),
        orders=_ORDERS,
        size=_ROWS,
        keep=("name",),
    )
    return visit.render(
        "ptk.html",
        ptk=ptk_view,
        spec=spec,
        profile=profile,
        picture=draw(profile, chosen) if profile is not None else "",
        levels=list(zip(profile.levels, profile.samples, strict=True))
        if profile is not None
        else [],
        chosen=chosen,
        idle=ptk_view.status in ("REJECTED", "RETIRED"),
        newest=newest,
        listing=listing,
        begins={
            row.version: window_begins(row.window, spec.window_seconds) for row in listing.rows
        },
        over=Over.of(ptk_view.over).words,
        windows=[window_begins(state.window, spec.window_seconds) for state in learned],
        sampled=_sampled(ptk_view, learned),
        most_windows=_MOST_WINDOWS,
        subscribers=subscribers[:_MOST_SUBSCRIBERS],
        more_subscribers=max(0, len(subscribers) - _MOST_SUBSCRIBERS),
        configs=configs,
        config=json.dumps(ptk_view.config, indent=2, sort_keys=True, ensure_ascii=False),
        change=_change(visit, configs),
    )


def certificate(visit: Visit) -> Response:
    """The manifest of a version, which is its privacy certificate, as a JSON file."""
    name, version = visit.asked("name"), visit.asked("version")
    if not (version.isascii() and version.isdigit() and 0 < len(version) < 10):
        raise InvalidInput("VALUE_INVALID", "version must be the number of a version, such as 3")
    told = json.loads(visit.store.get_state(f"{name}@v{version}").manifest.to_bytes())
    body = json.dumps(told, indent=2, sort_keys=True)
    file = attachment(f"{name}-v{version}-certificate.json")
    return Response(body + "\n", media_type="application/json", headers=file)


def retire(visit: Visit) -> Response:
    """Let a PTK train no more; its versions stay."""
    name = visit.form.get("name", "")
    visit.store.deregister(name)
    return visit.go("ptk", name=name)


def difference(before: object, now: object) -> list[tuple[str, str]]:
    """Two configurations line by line as (kind, line), where kind is same, gone or new."""
    old, new = (
        json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
        for config in (before, now)
    )
    kinds = {"  ": "same", "- ": "gone", "+ ": "new"}
    return [(kinds[line[:2]], line[2:]) for line in difflib.ndiff(old, new) if line[:2] in kinds]


def _profile(visit: Visit, ptk_view: PtkView) -> ProfileView | None:
    try:
        return visit.session.remember(
            (
                "profile",
                ptk_view.name,
                ptk_view.config_version,
                ptk_view.target,
                ptk_view.status,
                ptk_view.latest_version,
            ),
            _FRESH_SECONDS,
            lambda: visit.store.profile(ptk_view.name),
        )
    except SageError:
        # A kind that is not installed here any more has no profile; the rest of the page is worth
        # seeing.
        return None


def _learned(
    visit: Visit, newest: StateView | None, states: Sequence[StateView]
) -> list[StateView]:
    """The versions whose windows the newest one speaks of, newest first."""
    if newest is None:
        return []

    def read() -> list[int]:
        told = visit.store.get_state(f"{newest.name}@v{newest.version}").manifest.windows or ()
        return [int(window) for window in told if window.isdigit()]

    try:
        ends = visit.session.remember(("windows", newest.digest), _LONG_SECONDS, read)
    except SageError:
        return []
    if not ends:
        return []
    return [state for state in reversed(states) if min(ends) <= state.window <= max(ends)]


def _sampled(ptk_view: PtkView, learned: Sequence[StateView]) -> int | None:
    """The records that counts in the newest version are of: those planned for each of its windows,
    times what a window of so long ago counts.
    """
    if not learned or any(state.samples is None for state in learned):
        return None
    over, now = Over.of(ptk_view.over), learned[0].window
    return round(sum(over.weight(now - state.window) * (state.samples or 0) for state in learned))


def _change(visit: Visit, configs: list[PtkConfig]) -> dict[str, Any] | None:
    """What one configuration changed in the one before it: the newest, or the one that was asked
    for.
    """
    asked = visit.asked("config")
    for now, before in pairwise(configs):
        if asked in ("", str(now.version)):
            return {
                "now": now.version,
                "before": before.version,
                "lines": difference(before.config, now.config),
            }
    return None


PAGES = (
    Page(path="ptk", view=ptk, under="ptks"),
    Page(path="certificate.json", view=certificate),
    Page(path="retire-ptk", view=retire, role="developer", method="POST", under="ptks"),
)
