"""What if: the plan after some changes beside the plan as it is, in place; then applied, or not.

Changes of PTKs are applied all at once or not at all, under the token of the answer that was looked
at. What a stream promises, its window and its n_max never change: those are approved by making a
new stream, which the old one's PTKs are forked for.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import RedirectResponse, Response

from ptklib.errors import InvalidInput, Refused, SageError
from ptkstore.api.stream_spec import USES, StreamSpec
from ptkstore.api.views import PlanView, PtkView, WhatIfView
from ptkstore.api.views.remedies import Remedy
from ptkstore.console.page.background import BackgroundWork
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.wording import amount, duration, percent, plain, whole
from ptkstore.console.pages.plan import newest_plan
from ptkstore.console.pages.plan_changes import changes
from ptkstore.console.pages.questions import KINDS, MOST, Question, TypedChange, Wrong
from ptkstore.drawing.needed_svg import draw_needed
from ptkstore.drawing.plan_svg import NARROW, draw, hues_of, idle_share

__all__ = ["PAGES"]

_FRESH_SECONDS = 3.0
_KNOWN_SECONDS = 10.0
# How long a page waits for its plan, and how long the work is kept for those who look again.
_PATIENCE_SECONDS = 8.0
_KEPT_SECONDS = 600.0
_MOST_TOLD = 20
_MOST_KNOWN = 200
_COMPOSITIONS = ("pure", "basic", "strong", "renyi", "gaussian")
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Notice:
    """What became of an action, for the page after it."""

    tone: str
    title: str
    lines: tuple[str, ...]
    reason: str = ""


def what_if(visit: Visit) -> Response:
    """The page of one question about one stream; without a name, about the first."""
    streams = visit.session.remember("streams", _FRESH_SECONDS, visit.store.streams)
    if not streams:
        return visit.render("what_if.html", spec=None, streams=())
    given = visit.request.query_params.multi_items()
    read = Question.read(given)
    wanted = next((stream for stream in streams if stream.name == read.stream), None)
    spec = wanted or (visit.store.stream(read.stream) if read.stream else streams[0])
    question = replace(read, stream=spec.name).checked(spec, lambda name: _ptk(visit, name))
    number = visit.asked("told")
    if question.is_right and given and _tidy(given) != _tidy(question.pairs()):
        return _go(question, number)
    answer: WhatIfView | None = None
    working = False
    if question.asks and question.is_right:
        try:
            answer, question = _answer(visit, question)
        except TimeoutError:
            working = True
    # A script shows what it gets; a browser without one is told the truth.
    status = 200 if question.is_right or "hx-request" in visit.request.headers else 400
    in_force = newest_plan(visit, spec.name)
    return visit.render(
        "what_if.html",
        status=status,
        spec=spec,
        streams=streams,
        question=question,
        kinds=visit.session.remember("kinds", _KEPT_SECONDS, visit.store.kinds),
        fields=KINDS,
        compositions=_COMPOSITIONS,
        uses=USES,
        promise=spec.policy.as_json(),
        known=_known(visit, spec.name),
        told=visit.session.remember(("told", number), _KEPT_SECONDS, lambda: None)
        if number
        else None,
        working=working,
        in_force=in_force,
        request_id=secrets.token_hex(16),
        most=_MOST_TOLD,
        whole_store=visit.may("operator")
        and not (visit.session.caller.streams or visit.session.caller.ptks),
        window=_window(spec, question, answer, in_force),
        **_shown(visit, spec, question, answer),
    )


def apply(visit: Visit) -> Response:
    """Carry out the changes that were looked at, all of them or none."""
    form = visit.form
    question = replace(_question(form.get("question", "")), stream=form.get("stream", ""))
    try:
        visit.store.approve(
            question.stream, form.get("token", ""), request_id=form.get("request_id", "")
        )
    except (InvalidInput, Refused) as error:
        return _tell(visit, question, _refused(error))
    deeds = (_deed(change) + _fate(visit, change) for change in question.changes)
    lines = (*deeds, *_use_told(question))
    return _tell(visit, Question(question.stream), Notice("good", "Applied", lines))


def new_stream(visit: Visit) -> Response:
    """Make a stream under other terms, and propose the PTKs of the old one for it."""
    form = visit.form
    question = replace(_question(form.get("question", "")), stream=form.get("stream", ""))
    try:
        spec = visit.store.stream(question.stream)
        wrong = next(
            iter(question.checked(spec, lambda name: _ptk(visit, name)).wrong.values()), None
        )
        if wrong is not None:
            raise InvalidInput(wrong.reason, wrong.message)
        made = question.spec(
            spec, name=form.get("name", "").strip(), window_seconds=_whole(form.get("window", ""))
        )
        _create(visit, made)
    except (InvalidInput, Refused) as error:
        return _tell(visit, question, _refused(error))
    ptks = _accepted(visit, question)
    lines = (
        f"Stream {made.name} was made: a window of {duration(made.window_seconds)}, ε ≤ "
        f"{amount(str(made.policy.as_json()['epsilon']))}, at most {whole(made.n_max)} samples.",
        f"Send records to {made.name} instead of {spec.name} from now on: a record that goes to both is paid for under both.",
        f"Below is the plan for forks of the PTKs of {spec.name}. Apply it, and their states come from {made.name}."
        if ptks
        else "It has no PTKs yet: add some below.",
    )
    more = f"Only {MOST} PTKs fit into one question: fork the others after that."
    told = Notice(
        "good", f"The new stream {made.name}", lines if len(ptks) <= MOST else (*lines, more)
    )
    return _tell(
        visit, Question(made.name, tuple(_fork(ptk, made.name) for ptk in ptks[:MOST])), told
    )


def _answer(visit: Visit, question: Question) -> tuple[WhatIfView | None, Question]:
    """The plans, or the question with what is wrong about it.

    TimeoutError while the store still works on it.
    """

    def find(name: str) -> PtkView:
        return visit.store.ptk(name)

    def do() -> tuple[WhatIfView | None, Question]:
        try:
            return visit.store.what_if(question.stream, question.asked(find)), question
        except (InvalidInput, Refused) as error:
            return None, question.blamed(error)

    key = ("what if", tuple(question.pairs()))
    work = visit.session.remember(key, _KEPT_SECONDS, lambda: BackgroundWork(do, _FRESH_SECONDS))
    return work.answer(_PATIENCE_SECONDS)


def _shown(
    visit: Visit, spec: StreamSpec, question: Question, answer: WhatIfView | None
) -> dict[str, Any]:
    """What a page shows of an answer."""
    if answer is None:
        return {"found": None}
    now, then = answer.current, answer.proposed
    old, new = str(spec.policy.as_json()["epsilon"]), question.terms.get("epsilon")
    samples = max(now.total_samples or 0, then.total_samples or 0)
    hues = hues_of(now, then)
    planned = then.total_samples is not None
    return {
        "found": answer,
        "planned": planned,
        "pictures": (
            draw(now, old, width=NARROW, samples=samples, name="hatch-now", hues=hues),
            draw(then, new or old, width=NARROW, samples=samples, name="hatch-then", hues=hues),
        ),
        "needed": "" if planned else draw_needed(spec, then.remedies),
        "rows": _rows(now, then),
        "words": _words(spec, question, answer) if planned else (),
        "remedies": [(remedy.text, _tried(question, remedy)) for remedy in then.remedies],
        "difference": changes(now, then) if planned else None,
        "deeds": [
            *(_deed(change) + _instead(visit, change) for change in question.changes),
            *_use_told(question, spec.use),
        ],
    }


def _rows(now: PlanView, then: PlanView) -> list[tuple[str, str, str]]:
    """The two plans, number by number."""

    def told(plan: PlanView) -> tuple[str, ...]:
        if plan.total_samples is None:
            return ("–",) * 8
        window, gain = plan.recommended_window_seconds, plan.expected_gain
        return (
            whole(plan.total_samples),
            whole(plan.surplus_samples) if plan.surplus_samples is not None else "–",
            f"{plain(round(gain[1] / gain[0], 2))}\u00a0× that of the minimum" if gain else "–",
            duration(window) if window is not None else "–",
            percent(plan.gap, 2) if plan.gap else ("0\u00a0%" if plan.gap is not None else "–"),
            percent(idle_share(plan), 1),
            whole(len(plan.lines)),
            whole(len(plan.partitions)),
        )

    labels = (
        "Samples held",
        "Samples used with the surplus",
        "Loss to expect with the surplus",
        "Window that would be enough",
        "Certified gap",
        "Idle budget",
        "PTKs that train",
        "Partitions",
    )
    return list(zip(labels, told(now), told(then), strict=True))


def _words(spec: StreamSpec, question: Question, answer: WhatIfView) -> tuple[str, ...]:
    """What it would cost, in sentences."""
    now, then = answer.current.total_samples or 0, answer.proposed.total_samples or 0
    words = []
    if now == then:
        words.append(f"As many samples as now would be held: {whole(then)}.")
    else:
        share = f" ({percent(abs(then - now) / now)})" if now else ""
        direction = "more" if then > now else "fewer"
        words.append(
            f"{whole(abs(then - now))} {direction} samples would be held{share}: {whole(then)} instead of {whole(now)}."
        )
    available = answer.proposed.available_samples
    if available and then > available:
        words.append(
            f"That is more than a window brings (≈\u00a0{whole(available)}): the plan in force would be kept."
        )
    elif available:
        words.append(
            f"A window brings ≈\u00a0{whole(available)}: {percent(then / available)} of them would be used."
        )
    gain = answer.proposed.expected_gain
    if gain is not None:
        words.append(
            f"With the surplus {whole(answer.proposed.surplus_samples or 0)} of them are used, and "
            f"the loss to expect is {plain(round(gain[1] / gain[0], 2))} times that of the minimum."
        )
    elif answer.proposed.use == "surplus" and not available:
        words.append("What the surplus gains is known once a window has been counted.")
    promised = amount(str(spec.policy.as_json()["epsilon"]))
    if "epsilon" in question.terms:
        words.append(
            f"Every record could lose up to ε = {amount(question.terms['epsilon'])} instead of {promised}."
        )
    else:
        words.append(f"The promise stays: no record loses more than ε = {promised}.")
    if not question.terms:
        words.append("To apply it spends nothing now: the next window trains by it.")
    return tuple(words)


def _tried(question: Question, remedy: Remedy) -> str:
    """The address of the question with a change that the store proposes, or nothing for one that
    has no field.
    """
    if remedy.kind == "n_max" and remedy.value is not None:
        return question.with_term("n_max", str(remedy.value))
    if remedy.ptk is None:
        return ""
    newcomers = (*question.of_kind("fork"), *question.of_kind("add"))
    place = next((place for place, change in newcomers if change.subject == remedy.ptk), None)
    if remedy.kind == "remove":
        return question.with_("drop", drop=remedy.ptk) if place is None else question.without(place)
    if remedy.kind == "target" and isinstance(remedy.value, float):
        return question.with_target(remedy.ptk, place, f"{remedy.value:.12g}")
    return ""


def _window(
    spec: StreamSpec, question: Question, answer: WhatIfView | None, in_force: PlanView | None
) -> dict[str, Any] | None:
    """The window to approve: that of the plan that would be, else of the one in force; or the
    present one under other terms.
    """
    plan = answer.proposed if answer is not None else in_force if not question.asks else None
    seconds = plan.recommended_window_seconds if plan is not None else None
    if plan is None or ((seconds is None or seconds == spec.window_seconds) and not question.terms):
        return None
    if seconds is None:
        seconds = spec.window_seconds
    short = (
        duration(seconds).replace("\u00a0", "").replace(" ", "")
        if seconds != spec.window_seconds
        else "2"
    )
    return {
        "seconds": seconds,
        "other": seconds != spec.window_seconds,
        "samples": plan.recommended_samples,
        "name": f"{spec.name[: _LONGEST_NAME - len(short) - 1]}-{short}",
    }


def _use_told(question: Question, now: str = "") -> tuple[str, ...]:
    """What the stream would use of its windows, in words; nothing where that is not asked."""
    if not question.use:
        return ()
    instead = f" instead of the {now}" if now and now != question.use else ""
    return (f"Use the {question.use} of every window of {question.stream}{instead}",)


def _deed(typed_change: TypedChange) -> str:
    """A change in words."""
    values = typed_change.values
    if typed_change.kind == "drop":
        return f"Drop {values['drop']}"
    if typed_change.kind == "fork":
        return f"Register {values['name']} with target {plain(float(values['fork_to']))}, as a fork of {values['fork']}"
    if typed_change.kind == "add":
        return f"Register {values['add']} ({values['kind']}) with target {plain(float(values['add_to']))}"
    return f"Retarget {values['retarget']} to {plain(float(values['to']))}"


def _instead(visit: Visit, typed_change: TypedChange) -> str:
    """What a change replaces, or ends."""
    if typed_change.kind == "drop":
        return ": it trains no more. Its states stay, and its name cannot be used again"
    return (
        f" instead of {_ptk(visit, typed_change.subject).asked}"
        if typed_change.kind == "retarget"
        else ""
    )


def _fate(visit: Visit, typed_change: TypedChange) -> str:
    """What became of the PTK of a change."""
    try:
        status = _ptk(visit, typed_change.subject).status
    except SageError:
        return ""
    words = {
        "ACTIVE": "it trains from the next window on",
        "WAITING": "it waits to be profiled in the next window",
        "RETIRED": "it trains no more, and its states stay",
    }
    return f": {words.get(status, status.lower())}."


def _create(visit: Visit, spec: StreamSpec) -> None:
    """Make a stream. One that was made by the same action before is as good."""
    try:
        visit.store.create_stream(spec)
    except Refused as error:
        if error.reason != "STREAM_EXISTS" or visit.store.stream(spec.name) != spec:
            raise


def _accepted(visit: Visit, question: Question) -> list[PtkView]:
    """The PTKs of a stream that train, as the question would have them."""
    dropped = {change.values["drop"] for _, change in question.of_kind("drop")}
    targets = {
        change.values["retarget"]: change.values["to"] for _, change in question.of_kind("retarget")
    }
    ptks = visit.store.ptks(question.stream, status="ACTIVE", limit=MOST + 1 + len(dropped))
    return [
        replace(ptk, target=float(targets[ptk.name]), epsilon=None) if ptk.name in targets else ptk
        for ptk in ptks
        if ptk.name not in dropped
    ]


def _fork(ptk: PtkView, stream: str) -> TypedChange:
    name = f"{stream}-{ptk.name}"[:_LONGEST_NAME]
    # A copy has a target: one of best effort leaves it to be typed.
    target = "" if ptk.target is None else f"{ptk.target:.12g}"
    return TypedChange("fork", {"fork": ptk.name, "name": name, "fork_to": target})


def _known(visit: Visit, stream: str) -> list[PtkView]:
    """PTKs to choose from; others can be typed."""

    def read() -> list[PtkView]:
        return [
            ptk for ptk in visit.store.ptks(stream, limit=_MOST_KNOWN) if ptk.status != "RETIRED"
        ]

    return visit.session.remember(("known", stream), _KNOWN_SECONDS, read)


def _ptk(visit: Visit, name: str) -> PtkView:
    return visit.session.remember(("ptk", name), _FRESH_SECONDS, lambda: visit.store.ptk(name))


def _question(text: str) -> Question:
    return Question.read(parse_qsl(text, keep_blank_values=True))


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 13):
        raise InvalidInput(
            "VALUE_INVALID", f"a window must be a whole number of seconds, got {text!r:.40}"
        )
    return int(text)


def _tidy(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """A query without its order, and without what is no part of a question."""
    return sorted(pair for pair in pairs if pair[0] != "told")


def _refused(error: SageError) -> Notice:
    return Notice("bad", "Nothing was changed", (Wrong.of(error).message,), error.reason)


def _tell(visit: Visit, question: Question, told: Notice) -> Response:
    """To the page of a question, which says what was done."""
    number = secrets.token_hex(8)
    visit.session.remember(("told", number), _KEPT_SECONDS, lambda: told)
    return _go(question, number)


def _go(question: Question, told: str) -> Response:
    return RedirectResponse(question.address(**({"told": told} if told else {})), status_code=303)


PAGES = (
    Page(path="what-if", view=what_if, label="What if", role="developer"),
    Page(path="what-if-apply", view=apply, role="operator", method="POST"),
    Page(path="what-if-stream", view=new_stream, role="operator", method="POST"),
)
