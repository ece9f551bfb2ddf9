"""What the pages say, over a directory and over a server, without any script."""

from __future__ import annotations

import csv
import io
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest
from starlette.responses import Response

from ptkstore import Store
from ptkstore.api.views import PartitionLine, PlanLine, PlanView
from ptkstore.api.views.remedies import Remedy
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.console.page.listing import listed
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.spreadsheet import csv_file
from ptkstore.console.page.streaming import StreamedEvent, tell
from ptkstore.console.page.wording import amount, duration, moment, percent, whole
from ptkstore.console.pages import PAGES
from ptkstore.console.pages import plan as plan_page
from ptkstore.console.pages.plan_changes import changes
from ptkstore.drawing.needed_svg import draw_needed
from ptkstore.drawing.plan_svg import draw, idle_share
from tests.console.running import Running, console
from tests.console.stores import MARKUP
from tests.engine.small import CANARY
from tests.pixels import pixels


def words(text: str) -> str:
    """The page as it is read."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text))).replace("\u00a0", " ")


def test_the_overview_tells_of_every_stream(running: Running, store: Store) -> None:
    text = words(running.signed_in().get("overview").text)
    assert "rides ε ≤ 1, δ ≤ 1e-06 per event, renyi" in text
    assert "5 train 1 waiting, 1 rejected, 1 retired" in text
    assert re.search(
        r"2026-01-02 done 5 states published from ≈ [\d,]+ records, plan optimal", text
    )
    assert "4 retired" in text
    assert "the window is 1 d" in text
    assert "rides : 1 PTK rejected" in text
    assert "rides : 1 PTK waits" in text
    page = running.signed_in().get("overview").text
    for status in ("REJECTED", "WAITING"):
        assert f'href="ptks?stream=rides&amp;status={status}"' in page
    assert "quiet" in text
    assert "None declare one in sage.yaml" in text


def test_the_numbers_are_those_of_the_store(embedded: Running, store: Store) -> None:
    text = words(embedded.signed_in().get("overview").text)
    (cycle,) = store.cycles("rides", newest=1)
    budget = store.budget_summary("rides")
    assert f"from ≈ {cycle.dp_records:,} records" in text
    assert f"{budget.blocks_alive} alive {budget.blocks_retired} retired" in text
    plan = store.plan("rides")
    assert plan is not None
    page = words(embedded.signed_in().get("plan?stream=rides").text)
    assert f"Samples held {plan.total_samples:,} of ≈ {plan.available_samples:,} available" in page
    assert f"no plan holds fewer than {plan.lower_bound:,}" in page
    for line in plan.lines:
        promised = store.profile(line.ptk).promised
        assert promised is not None
        found = re.search(
            rf"{line.ptk} ([\d.]+) ([\d,]+) \S+ % ([\d.]+) ≤ ([\d.]+) ([\d.]+) % (\d+)"
            r" ([\d.]+) ([\d,]+)",
            page,
        )
        assert found is not None, line.ptk
        assert float(found[1]) == float(line.epsilon)
        assert int(found[2].replace(",", "")) == line.samples
        assert float(found[3]) == line.target
        assert float(found[4]) == pytest.approx(float(promised), rel=1e-5)
        assert float(found[5]) == pytest.approx(100 * line.used, abs=0.051)
        assert int(found[6]) == len(line.partitions)
        given = plan.given(line.ptk)
        assert given is not None
        assert float(found[7]) == float(given.epsilon)
        assert int(found[8].replace(",", "")) == given.samples


def test_the_plan_tells_what_changed_and_who_is_left_out(running: Running) -> None:
    text = words(running.signed_in().get("plan?stream=rides").text)
    assert "Window that begins 2026-01-02 optimal" in text
    assert "Compared with the window of 2026-01-01" in text
    assert "joining joined" in text
    assert "leaving left" in text
    assert re.search(r"hour-fast changed [\d.]+ → [\d.]+ \d+ → [\d,]+", text)
    assert "too-sharp rejected statistics, target 0.0001" in text
    assert re.search(r"What would admit it: a target of 0\.\d+ instead of 0.0001", text)
    assert "groups waiting clusters" in text
    assert "To be profiled when the next window closes" in text


def test_names_are_links(running: Running) -> None:
    client = running.signed_in()
    page = client.get("plan?stream=rides").text
    for name in ("joining", "leaving", "hour-fast", "too-sharp", "groups"):
        assert f'<a href="ptk?name={name}">{name}</a>' in page, name
    assert '<a href="plan?stream=rides">rides</a>' in client.get("ptks").text
    events = client.get("events").text
    assert '<a href="ptk?name=too-sharp">too-sharp</a>' in events
    assert '<a href="plan?stream=quiet">quiet</a>' in events


def test_what_is_lacking_is_a_picture(embedded: Running, store: Store) -> None:
    """Where no plan fits: what there is beside what would do."""
    text = embedded.signed_in().get("what-if?stream=rides&retarget=hour-speed&to=0.002").text
    picture = re.search(r'<svg class="plan-picture needed".*?</svg>', text, re.S)
    assert picture
    assert re.search(r"20,000 may be held, [\d,]+ would do", words(picture[0]))
    spec = store.stream("rides")
    enough = (
        Remedy(kind="epsilon", field="epsilon", value="4", text=""),
        Remedy(kind="n_max", field="n_max", value=40_000, text=""),
        Remedy(kind="epsilon", ptk="a", field="epsilon", value=9, text=""),
        Remedy(kind="remove", ptk="a", text="<b>"),
    )
    drawn = draw_needed(spec, enough)
    wide = [float(size) for size in re.findall(r'class="before"[^>]* width="([\d.]+)"', drawn)]
    frame = [float(size) for size in re.findall(r'class="ceiling"[^>]* width="([\d.]+)"', drawn)]
    assert [round(part / whole, 2) for part, whole in zip(wide, frame, strict=True)] == [0.25, 0.5]
    assert "1 is promised, 4 would do" in drawn
    assert draw_needed(spec, enough[2:]) == ""


def test_the_plan_says_why_its_gap_is_what_it_is(shown: tuple[Running, Store]) -> None:
    running, store = shown
    plan = store.plan("rides")
    assert plan is not None
    assert plan.lower_bound is not None
    text = words(running.signed_in().get("plan?stream=rides").text)
    assert re.search(r"Why the gap is [\d.]+ %", text)
    assert plan.gap_reason in text
    assert f"No plan holds fewer than {plan.lower_bound} samples" in plan.gap_reason


def test_a_gap_without_a_reason_is_not_explained_and_words_are_escaped(
    embedded: Running, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = store.plan("rides")
    assert plan is not None
    client = embedded.signed_in()
    poor = replace(plan, gap=0.02, gap_reason="Room is taken by <b>greedy</b> (812).")
    monkeypatch.setattr(plan_page, "newest_plan", lambda _visit, _stream: poor)
    page = client.get("plan?stream=rides").text
    assert "Why the gap is 2.00 % Room is taken by" in words(page)
    assert "&lt;b&gt;greedy&lt;/b&gt; (812)" in page
    older = replace(plan, gap_reason="")
    monkeypatch.setattr(plan_page, "newest_plan", lambda _visit, _stream: older)
    assert "Why the gap" not in words(client.get("plan?stream=rides").text)


def test_the_picture_of_the_plan_is_a_file_for_reports(running: Running, store: Store) -> None:
    client = running.signed_in()
    page = client.get("plan?stream=rides").text
    assert 'href="plan.svg?stream=rides" download' in page
    assert 'href="plan.png?stream=rides" download' in page
    svg, png = client.get("plan.svg?stream=rides"), client.get("plan.png?stream=rides")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert svg.headers["content-disposition"] == 'attachment; filename="plan-rides.svg"'
    assert svg.text == store.plan_picture("rides")
    assert png.headers["content-type"] == "image/png"
    assert png.headers["content-disposition"] == 'attachment; filename="plan-rides.png"'
    size = re.search(r'width="(\d+)" height="(\d+)"', svg.text)
    assert size is not None
    found = pixels(png.data)
    assert found.shape == (2 * int(size[2]), 2 * int(size[1]), 3)
    assert found.min() < 100
    for path in (
        "plan.svg?stream=quiet",
        "plan.png?stream=quiet",
        "plan.svg?stream=nowhere",
        "plan.png?stream=nowhere",
    ):
        assert client.get(path).status == 404


def test_without_the_package_no_png_is_offered(
    embedded: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    client = embedded.signed_in()
    page = client.get("plan?stream=rides").text
    assert "plan.svg" in page
    assert "plan.png" not in page
    assert "PACKAGE_MISSING" in client.get("plan.png?stream=rides").text


def test_nothing_raw_is_shown(running: Running) -> None:
    client = running.signed_in()
    for path in ("overview", "plan?stream=rides", "plan.csv?stream=rides"):
        assert CANARY.split("-")[1] not in client.get(path).text


def test_a_stream_without_a_plan_says_how_one_is_made(running: Running) -> None:
    text = words(running.signed_in().get("plan?stream=quiet").text)
    assert "No window has run yet" in text
    assert "sage plan --stream quiet" in text


def test_an_empty_store_teaches(empty_store: Store) -> None:
    with console(DirectorySource(empty_store, "x")) as running:
        client = running.signed_in()
        assert "sage init -t taxi taxi" in words(client.get("overview").text)
        assert "No streams, so no plan" in words(client.get("plan").text)


def test_lists_are_searched_sorted_and_turned(embedded: Running) -> None:
    client = embedded.signed_in()

    def names(query: str) -> list[str]:
        part = (
            client.get(f"plan?stream=rides&{query}")
            .text.partition('id="ptks"')[2]
            .partition("</table>")[0]
        )
        return re.findall(r'<th scope="row"><a href="[^"]*">([\w-]+)', part)

    every = ["hour-counts", "hour-fast", "hour-speed", "hour-spread", "joining"]
    assert names("") == names("sort=ptk") == names("sort=nonsense") == every
    assert names("sort=-ptk") == every[::-1]
    assert names("find=SP") == ["hour-speed", "hour-spread"]
    assert names("find=hour+ed") == ["hour-speed"]
    assert names("sort=target") == [
        "hour-counts",
        "hour-speed",
        "joining",
        "hour-fast",
        "hour-spread",
    ]
    for page in ("0", "-1", "x", "99999999999999999999", "%C2%B2"):
        assert names(f"page={page}") == every
    nothing = client.get("plan?stream=rides&find=zzz").text
    assert "No PTKs match “zzz”" in nothing


def test_what_is_searched_for_is_escaped(running: Running) -> None:
    client = running.signed_in()
    answer = client.get("plan?stream=rides&find=%3Cscript%3Ealert(1)%3C/script%3E&sort=%22%3E")
    assert answer.status == 200
    assert MARKUP not in answer.text
    assert "&lt;script&gt;" in answer.text
    answer = client.get("plan?stream=%3Cscript%3Ealert(1)%3C/script%3E")
    assert answer.status == 404
    assert MARKUP not in answer.text


def test_a_long_list_is_turned_page_by_page(empty_store: Store) -> None:
    def page(visit: Visit) -> Response:
        found = listed(
            visit, range(95), anchor="a", text=str, orders={"size": int}, size=20, keep=("stream",)
        )
        rows = " ".join(map(str, found.rows))
        return Response(
            f"{rows}|{found.page}|{found.pages}|{found.first}|{found.found}|{dict(found.query)}"
        )

    with console(
        DirectorySource(empty_store, "x"), pages=(*PAGES, Page(path="list", view=page))
    ) as running:
        client = running.signed_in()
        assert client.get("list?page=5&stream=s").text.split("|")[1:] == [
            "5",
            "5",
            "81",
            "95",
            "{'stream': 's'}",
        ]
        assert client.get("list?page=9").text.startswith("80 81")
        assert client.get("list?find=9&sort=-size&page=1").text.startswith("94 93 92 91 90 89")
        assert client.get("list?find=none").text == "|1|1|0|0|{}"


def test_the_plan_as_a_file(running: Running, store: Store) -> None:
    answer = running.signed_in().get("plan.csv?stream=rides")
    assert answer.headers["content-type"].startswith("text/csv")
    assert re.fullmatch(
        r'attachment; filename="plan-rides-\d+\.csv"', answer.headers["content-disposition"]
    )
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["ptk"] for row in rows] == [
        "hour-counts",
        "hour-fast",
        "hour-speed",
        "hour-spread",
        "joining",
    ]
    assert all(float(row["epsilon"]) > 0 and int(row["samples"]) > 0 for row in rows)
    assert running.signed_in().get("plan.csv?stream=quiet").status == 404
    assert running.signed_in().get("plan.csv?stream=nowhere").status == 404


def test_a_file_carries_no_formula() -> None:
    answer = csv_file(
        'a"b\r\nc', ("x",), [("=1+1",), ("@cmd",), ("-2.5e-3",), ("+x",), (None,), ("plain",)]
    )
    cells = ["x", "'=1+1", "'@cmd", "-2.5e-3", "'+x", "", "plain"]
    assert bytes(answer.body).decode().split() == [f'"{one}"' for one in cells]
    assert answer.headers["content-disposition"] == 'attachment; filename="a-b--c.csv"'


@pytest.mark.parametrize(
    ("path", "status", "reason", "advice"),
    [
        ("nowhere", 404, "PAGE_UNKNOWN", "navigation"),
        ("plan?stream=nowhere", 404, "STREAM_UNKNOWN", "overview"),
    ],
)
def test_errors_say_what_to_do(
    running: Running, path: str, status: int, reason: str, advice: str
) -> None:
    answer = running.signed_in().get(path)
    assert answer.status == status
    assert reason in answer.text
    assert advice in answer.text
    assert 'aria-label="Pages"' in answer.text


def test_a_bug_tells_nothing_but_that_it_is_one(
    empty_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_visit: Visit) -> Response:
        raise ValueError(CANARY)

    with console(
        DirectorySource(empty_store, "x"), pages=(*PAGES, Page(path="broken", view=broken))
    ) as running:
        answer = running.signed_in().get("broken")
    assert answer.status == 500
    assert "INTERNAL_ERROR" in answer.text
    assert CANARY not in answer.text + caplog.text
    assert "ValueError at " in caplog.text
    assert "test_pages.py" in caplog.text


def test_a_server_that_is_away(served: tuple[Store, str], tokens: dict[str, str]) -> None:
    class Impatient(ServerSource):
        def for_token(self, token: str) -> Store:
            return Store(self.place, token=token, timeout_seconds=0.3)

    with console(Impatient("127.0.0.1:9")) as running:
        client = running.client()
        answer = client.post(
            "sign-in", {"csrf": client.get("sign-in").csrf, "token": tokens["reader"]}
        )
    assert answer.status == 503
    assert "sage health" in answer.text


def test_events_are_told_as_they_happen(empty_store: Store) -> None:
    seen = []

    def some(after: int) -> Iterator[StreamedEvent | None]:
        seen.append(after)
        yield StreamedEvent(after + 1, "ptk.state", {"ptk": "a\nb"})
        yield None
        yield StreamedEvent(after + 2, "cycle", [1])

    with console(
        DirectorySource(empty_store, "x"),
        pages=(*PAGES, Page(path="told", view=lambda visit: tell(visit, some))),
    ) as running:
        client = running.signed_in()
        answer = client.get("told")
        again = client.get("told", last_event_id="7")
        client.get("told", last_event_id="x")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text == (
        "retry: 3000\n\n"
        'id: 1\nevent: ptk.state\ndata: {"ptk": "a\\nb"}\n\n'
        ": still here\n\n"
        "id: 2\nevent: cycle\ndata: [1]\n\n"
    )
    assert "id: 8" in again.text
    assert seen == [0, 7, 0]


def test_events_end_with_the_session(empty_store: Store) -> None:
    told = []

    def endless(_after: int) -> Iterator[StreamedEvent | None]:
        while True:
            told.append(1)
            yield None

    def events(visit: Visit) -> Response:
        visit.leave()
        return tell(visit, endless)

    with console(
        DirectorySource(empty_store, "x"), pages=(*PAGES, Page(path="told", view=events))
    ) as running:
        assert running.signed_in().get("told").text == "retry: 3000\n\n"
    assert len(told) == 1


def plan_of(lines: int, partitions: int) -> PlanView:
    """A plan in which each PTK spans a few partitions."""
    used = 0.9 * partitions / lines / 3
    made = [
        PlanLine(
            f"ptk-{k:05}",
            "0.05",
            100 + k,
            0.01,
            0.1,
            tuple((k + step) % partitions for step in range(3)),
            used,
        )
        for k in range(lines)
    ]
    cuts = tuple(PartitionLine(100 + k, 3, 0.9) for k in range(partitions))
    total = sum(one.samples for one in cuts)
    return PlanView("s", 3, "OPTIMAL", total, total, "strip", 0.5, tuple(made), partitions=cuts)


@pytest.mark.parametrize(("lines", "partitions"), [(3, 3), (40, 12), (600, 300), (5000, 2000)])
def test_a_picture_stays_small(lines: int, partitions: int) -> None:
    plan = plan_of(lines, partitions)
    text = draw(plan, "1")
    assert len(text) < 100_000
    assert "style=" not in text
    assert f"{lines:,} PTKs in {partitions:,} partitions" in text
    assert idle_share(plan) == pytest.approx(0.1)


def test_a_picture_is_to_scale() -> None:
    lines = (
        PlanLine("a", "0.5", 300, 0.1, 0.1, (0, 1), 0.5),
        PlanLine("b", "0.25", 100, 0.1, 0.1, (1,), 0.25),
    )
    cuts = (PartitionLine(200, 1, 0.5), PartitionLine(100, 2, 0.75))
    plan = PlanView("s", 3, "OPTIMAL", 300, 300, "strip", 0.5, lines, partitions=cuts)
    text = draw(plan, "1")
    bars = re.findall(
        r'class="bar k\d+" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', text
    )
    (ax, ay, aw, ah), (bx, by, bw, bh) = (tuple(map(float, one)) for one in bars)
    # One bar across both partitions, and another on top of it in the second, a third of the width.
    assert aw == pytest.approx(3 * bw, abs=0.2)
    assert ah == pytest.approx(2 * bh, abs=0.2)
    assert bx == pytest.approx(ax + 2 * aw / 3, abs=0.2)
    assert by + bh == pytest.approx(ay, abs=0.2)
    assert idle_share(plan) == pytest.approx(1 - (0.5 * 200 + 0.75 * 100) / 300)
    assert draw(PlanView("s", 3, "INFEASIBLE", None, 300, "strip", 0.5, ()), "1") == ""


def test_the_ceiling_of_a_picture_is_e_and_the_counts_are_a_strip_below() -> None:
    lines, cuts = (PlanLine("a", "0.8", 300, 0.1, 0.1, (0,), 1.0),), (PartitionLine(300, 1, 1.0),)
    plan = PlanView(
        "s", 3, "OPTIMAL", 300, 300, "strip", 0.5, lines, partitions=cuts, spent_before=0.2
    )
    text = draw(plan, "1")
    (ceiling,) = re.findall(r'class="ceiling" d="M[\d.]+ ([\d.]+)H', text)
    (ground,) = re.findall(r'class="axis" d="M[\d.]+ [\d.]+V([\d.]+)H', text)
    ((strip_top, strip_tall),) = re.findall(
        r'class="before" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', text
    )
    ((bar_top, bar_tall),) = re.findall(
        r'class="bar k0" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', text
    )
    whole_height = float(ground) - float(ceiling)
    assert strip_top == ceiling
    assert float(strip_tall) == pytest.approx(0.2 * whole_height)
    assert float(bar_tall) == pytest.approx(0.8 * whole_height)
    # A plan that uses all that was left reaches up to the strip and not to E.
    assert float(bar_top) == pytest.approx(float(ceiling) + float(strip_tall))
    assert ">E = 1<" in text
    assert ">published counts: 20.00% of E<" in text
    unknown = draw(replace(plan, spent_before=None), "1")
    assert ">rest of E<" in unknown
    assert "E = 1" not in unknown


def test_the_counts_of_a_plan_cost_what_the_stream_says(embedded: Running, store: Store) -> None:
    plan, spec = store.plan("rides"), store.stream("rides")
    assert plan is not None
    assert plan.spent_before is not None
    # Renyi: a count's cost at the order that the plan counts in, of the capacity there.
    privacy_filter = spec.policy.filter()
    shares = [
        cost / most
        for cost, most in zip(
            privacy_filter.demand(spec.count_release().cost), privacy_filter.capacity, strict=True
        )
        if most
    ]
    assert min(abs(one - plan.spent_before) for one in shares) < 1e-9
    assert 0 < plan.spent_before < 0.5
    page = embedded.signed_in().get("plan?stream=rides").text
    assert f"published counts: {plan.spent_before:.2%} of E" in page
    picture = store.plan_picture("rides")
    assert picture is not None
    assert ">E = 1<" in picture
    assert "spent before on published counts (grey)" in picture


def test_names_in_a_picture_are_escaped() -> None:
    lines = (PlanLine(MARKUP, "0.5", 300, 0.1, 0.1, (0,), 0.5),)
    plan = PlanView(
        MARKUP,
        3,
        "OPTIMAL",
        300,
        300,
        "strip",
        0.5,
        lines,
        partitions=(PartitionLine(300, 1, 0.5),),
    )
    assert "<script" not in draw(plan, "1")


def test_what_changed() -> None:
    def plan(**lines: tuple[str, int]) -> PlanView:
        made = tuple(
            PlanLine(name, eps, samples, 0.1, 0.1) for name, (eps, samples) in lines.items()
        )
        return PlanView("s", 1, "OPTIMAL", 1, 1, "", 0.0, made)

    found = changes(
        plan(a=("1", 5), b=("1", 5), c=("1", 5), d=("1", 9)),
        plan(b=("1", 6), c=("1", 5), d=("2", 3), e=("1", 1)),
    )
    assert [one.ptk for one in found.joined] == ["e"]
    assert [one.ptk for one in found.left] == ["a"]
    assert [(old.samples, new.samples) for old, new in found.moved] == [(5, 6), (9, 3)]
    assert found.same == 1
    assert not found.nothing
    assert changes(plan(a=("1", 5)), plan(a=("1", 5))).nothing


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (duration(0), "0 s"), (duration(0.0004), "1 ms"), (duration(0.25), "250 ms"), (duration(59.6), "1 min"),
        (duration(90_000), "1 d 1 h"), (duration(86_400 * 30), "30 d"), (duration(None), "–"),
        (percent(0), "0 %"), (percent(0.00001), "< 1 %"), (percent(0.00001, 2), "< 0.01 %"), (percent(0.5, 1), "50.0 %"),
        (percent(1), "100 %"), (percent(None), "–"),
        (amount("0.03125"), "0.03125"), (amount("1e-6"), "1e-06"), (amount(""), "–"), (amount("0.333333"), "0.3333"),
        (whole(1234567), "1,234,567"), (whole(None), "–"),
        (moment(0), "1970-01-01"), (moment(1_767_225_660_000), "2026-01-01 00:01"), (moment(None), "–"),
    ],
)  # fmt: skip
def test_how_numbers_read(told: str, text: str) -> None:
    assert told.replace("\u00a0", " ") == text


def test_what_is_remembered_is_asked_for_once_and_forgotten_after_an_action(
    embedded: Running, store: Store
) -> None:
    calls = itertools.count(1)

    def page(visit: Visit) -> Response:
        return Response(str(visit.session.remember("x", 100.0, lambda: next(calls))))

    def act(visit: Visit) -> Response:
        return visit.go("count")

    pages = (*PAGES, Page(path="count", view=page), Page(path="act", view=act, method="POST"))
    with console(DirectorySource(store, "x"), pages=pages) as running:
        client, other = running.signed_in(), running.signed_in()
        assert [client.get("count").text, client.get("count").text, other.get("count").text] == [
            "1",
            "1",
            "2",
        ]
        client.post("act", {"csrf": client.get("overview").csrf})
        assert client.get("count").text == "3"
